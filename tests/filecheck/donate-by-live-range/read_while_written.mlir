// RUN: xdsl-opt %s -p donate-by-live-range --allow-unregistered-dialect | filecheck %s

// A product reads all of %a while it writes, so it goes into %b, which is dead.

func.func @main(%a: tensor<4x4xf32> {tf.aliasing_output = 0 : i32}, %b: tensor<4x4xf32> {jax.buffer_donor = true}) -> tensor<4x4xf32> {
  "test.op"(%b) : (tensor<4x4xf32>) -> ()
  %r = "stablehlo.dot_general"(%a, %a) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  func.return %r : tensor<4x4xf32>
}

// CHECK:       func.func @main(%a: tensor<4x4xf32> {jax.buffer_donor = true}, %b: tensor<4x4xf32>)
// CHECK:         bufferization.materialize_in_destination %r in %b
