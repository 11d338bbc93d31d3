// RUN: xdsl-opt %s -p donate-by-live-range 2>&1 | filecheck %s

func.func @main(%a: tensor<4xf32> {tf.aliasing_output = 0 : i32}, %b: tensor<4xf32> {tf.aliasing_output = 0 : i32}) -> tensor<4xf32> {
  func.return %a : tensor<4xf32>
}

// CHECK: @main contradicts itself, so its flags are taken as jax.buffer_donor: Arguments 0 and 1 all claim the buffer of result 0
// CHECK: bufferization.materialize_in_destination %a in %a
