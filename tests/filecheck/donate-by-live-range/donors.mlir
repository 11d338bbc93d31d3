// RUN: xdsl-opt %s -p donate-by-live-range | filecheck %s

func.func @main(%a: tensor<4xf32> {jax.buffer_donor = true}, %b: tensor<4xf32> {jax.buffer_donor = true}, %c: tensor<2x2xf32> {jax.buffer_donor = true}, %d: tensor<4xf32>) -> tensor<4xf32> {
  %r = "test.op"() : () -> tensor<4xf32>
  func.return %r : tensor<4xf32>
}

// CHECK:       func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32> {jax.buffer_donor = true}, %c: tensor<2x2xf32> {jax.buffer_donor = true}, %d: tensor<4xf32>)
// CHECK:         bufferization.materialize_in_destination %r in %a
