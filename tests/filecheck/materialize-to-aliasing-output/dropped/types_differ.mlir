// RUN: xdsl-opt %s -p materialize-to-aliasing-output --disable-verify 2>&1 | filecheck %s

func.func @main(%a: tensor<?xf32>) -> tensor<2xf32> {
  %r = "test.op"() : () -> tensor<2xf32>
  %m = "bufferization.materialize_in_destination"(%r, %a) : (tensor<2xf32>, tensor<?xf32>) -> tensor<2xf32>
  func.return %m : tensor<2xf32>
}

// CHECK: source is tensor<2xf32>, but destination, argument 0, is tensor<?xf32>
// CHECK-NOT: bufferization.materialize_in_destination
