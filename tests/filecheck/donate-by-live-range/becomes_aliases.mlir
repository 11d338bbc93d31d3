// RUN: xdsl-opt %s -p donate-by-live-range,materialize-to-aliasing-output --allow-unregistered-dialect | filecheck %s

func.func @main(%a: tensor<4xf32> {tf.aliasing_output = 0 : i32}, %b: tensor<4xf32> {tf.aliasing_output = 1 : i32}, %c: tensor<4xf32> {tf.aliasing_output = 2 : i32}) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %r = "stablehlo.tanh"(%b) : (tensor<4xf32>) -> tensor<4xf32>
  %s = "stablehlo.sine"(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %t = "test.op"(%c) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %r, %s, %t : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// CHECK:       func.func @main(%a: tensor<4xf32> {tf.aliasing_output = 1 : i32}, %b: tensor<4xf32> {tf.aliasing_output = 0 : i32}, %c: tensor<4xf32> {jax.buffer_donor = true})
// CHECK:         func.return %r, %s, %t
