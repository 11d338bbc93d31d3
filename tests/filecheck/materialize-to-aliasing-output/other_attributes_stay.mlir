// RUN: xdsl-opt %s -p materialize-to-aliasing-output | filecheck %s

func.func @main(%a: tensor<2xf32> {jax.name = "a"}, %b: tensor<3xf32> {jax.buffer_donor = true}) -> (tensor<2xf32> {jax.result_info = "result"}) {
  %r = "test.op"(%a) : (tensor<2xf32>) -> tensor<2xf32>
  %m = bufferization.materialize_in_destination %r in %a : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  func.return %m : tensor<2xf32>
}

// CHECK:  func.func @main(%a: tensor<2xf32> {jax.name = "a", tf.aliasing_output = 0 : i32}, %b: tensor<3xf32> {jax.buffer_donor = true}) -> (tensor<2xf32> {jax.result_info = "result"})
