// RUN: xdsl-opt %s -p materialize-to-aliasing-output | filecheck %s

// One buffer can be one result only: the first position gets it.

func.func @main(%a: tensor<2xf32>) -> (tensor<i8>, tensor<2xf32>, tensor<2xf32>) {
  %c, %r = "test.op"() : () -> (tensor<i8>, tensor<2xf32>)
  %m = bufferization.materialize_in_destination %r in %a : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  func.return %c, %m, %m : tensor<i8>, tensor<2xf32>, tensor<2xf32>
}

// CHECK:       func.func @main(%a: tensor<2xf32> {tf.aliasing_output = 1 : i32})
// CHECK:         func.return %c, %r, %r
