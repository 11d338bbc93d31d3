// RUN: xdsl-opt %s -p materialize-to-aliasing-output 2>&1 | filecheck %s

func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {
  %r = "test.op"() : () -> tensor<2xf32>
  %m = bufferization.materialize_in_destination %r in %a : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  func.return %r : tensor<2xf32>
}

// CHECK: result is not returned
// CHECK-NOT: bufferization.materialize_in_destination
