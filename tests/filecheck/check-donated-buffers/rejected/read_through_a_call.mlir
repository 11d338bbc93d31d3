// RUN: xdsl-opt %s -p check-donated-buffers --verify-diagnostics | filecheck %s

func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %r = func.call @same(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %0 = "test.op"() : () -> tensor<4xf32>
  %1 = bufferization.materialize_in_destination %0 in %a : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  "test.op"(%r) : (tensor<4xf32>) -> ()
  func.return %1 : tensor<4xf32>
}
func.func private @same(%a: tensor<4xf32>) -> tensor<4xf32> {
  func.return %a : tensor<4xf32>
}

// CHECK: 'test.op' reads argument 0, but result 0 of 'test.op' was written there before.
