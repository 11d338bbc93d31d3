// RUN: xdsl-opt %s -p check-donated-buffers --verify-diagnostics | filecheck %s

func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0, %1 = "test.op"() : () -> (tensor<4xf32>, tensor<4xf32>)
  %2 = bufferization.materialize_in_destination %0 in %a : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %3 = bufferization.materialize_in_destination %1 in %a : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %2 : tensor<4xf32>
}

// CHECK: 'func.return' reads result 0 of 'test.op' in argument 0, but result 1 of 'test.op' was written there before.
