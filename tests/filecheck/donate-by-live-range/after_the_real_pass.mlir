// RUN: xdsl-opt %s -p jax-use-donated-arguments,donate-by-live-range | filecheck %s

// What has a buffer already keeps it.

func.func @main(%a: tensor<4xf32> {tf.aliasing_output = 0 : i32}, %b: tensor<4xi8> {jax.buffer_donor = true}) -> (tensor<4xf32>, tensor<4xi8>) {
  %r, %s = "test.op"() : () -> (tensor<4xf32>, tensor<4xi8>)
  func.return %r, %s : tensor<4xf32>, tensor<4xi8>
}

// CHECK:       [[M:%\d+]] = bufferization.materialize_in_destination %r in %a
// CHECK-NEXT:  [[N:%\d+]] = bufferization.materialize_in_destination %s in %b
// CHECK-NEXT:  func.return [[M]], [[N]]
