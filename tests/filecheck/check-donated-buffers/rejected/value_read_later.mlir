// RUN: xdsl-opt %s -p check-donated-buffers --verify-diagnostics | filecheck %s

func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "test.op"() : () -> tensor<4xf32>
  %1 = bufferization.materialize_in_destination %0 in %a : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = "test.pureop"() : () -> tensor<4xf32>
  %3 = bufferization.materialize_in_destination %2 in %a : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %1 : tensor<4xf32>
}

// CHECK: 'func.return' reads result 0 of 'test.op' in argument 0, but result 0 of 'test.pureop' was written there before.
