// RUN: xdsl-opt %s -p check-donated-buffers --verify-diagnostics | filecheck %s

func.func @main(%a: tensor<4xf32>) -> tensor<i8> {
  %0 = "test.op"() : () -> tensor<4xf32>
  %1 = bufferization.materialize_in_destination %0 in %a : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = "test.op"(%1, %a) : (tensor<4xf32>, tensor<4xf32>) -> tensor<i8>
  func.return %2 : tensor<i8>
}

// CHECK: in function @main: 'test.op' reads argument 0, but result 0 of 'test.op' was written there before.
