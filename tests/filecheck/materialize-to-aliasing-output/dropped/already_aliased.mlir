// RUN: xdsl-opt %s -p materialize-to-aliasing-output 2>&1 | filecheck %s

func.func @main(%a: tensor<2xf32> {tf.aliasing_output = 0 : i32}) -> tensor<2xf32> {
  %r = "test.op"() : () -> tensor<2xf32>
  %m = bufferization.materialize_in_destination %r in %a : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  func.return %m : tensor<2xf32>
}

// CHECK: destination, argument 0, already has tf.aliasing_output
// CHECK-NOT: bufferization.materialize_in_destination
