// RUN: xdsl-opt %s -p "donate-by-live-range{cross-type=true},materialize-to-aliasing-output" | filecheck %s

func.func @main(%a: tensor<4xf32> {jax.buffer_donor = true}) -> tensor<2x2xi32> {
  %r = "test.op"(%a) : (tensor<4xf32>) -> tensor<2x2xi32>
  %s = "test.op"() : () -> tensor<i8>
  func.return %r : tensor<2x2xi32>
}

// CHECK:       func.func @main(%a: tensor<4xf32> {jax.buffer_donor = true})
// CHECK-NOT:   cast

func.func @free(%a: tensor<4xf32> {jax.buffer_donor = true}) -> tensor<2x2xi32> {
  %r = "test.op"() : () -> tensor<2x2xi32>
  func.return %r : tensor<2x2xi32>
}

// CHECK:       func.func @free(%a: tensor<4xf32> {tf.aliasing_output = 0 : i32})
// CHECK-NOT:   cast
