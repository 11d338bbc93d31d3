// RUN: xdsl-opt %s -p donate-by-live-range 2>&1 | filecheck %s

func.func @main(%a: tensor<4xf32> {tf.aliasing_output = 0 : i32, jax.buffer_donor = true}) -> tensor<4xf32> {
  func.return %a : tensor<4xf32>
}

// CHECK: Argument 0 has both tf.aliasing_output = 0 and jax.buffer_donor: keep one of them.
