// RUN: xdsl-opt %s -p materialize-to-aliasing-output | filecheck %s

// Flags that are there stay, functions of several blocks and declarations too.

// CHECK:  func.func @flags(%a: tensor<2xf32> {tf.aliasing_output = 0 : i32}, %b: tensor<2xf32> {jax.buffer_donor = true}) -> tensor<2xf32>
func.func @flags(%a: tensor<2xf32> {tf.aliasing_output = 0 : i32}, %b: tensor<2xf32> {jax.buffer_donor = true}) -> tensor<2xf32> {
  func.return %a : tensor<2xf32>
}

// CHECK:       func.func @no_attributes(%a: tensor<2xf32>) -> tensor<2xf32> {
func.func @no_attributes(%a: tensor<2xf32>) -> tensor<2xf32> {
  func.return %a : tensor<2xf32>
}

// CHECK:       func.func @blocks(%a: tensor<2xf32>)
func.func @blocks(%a: tensor<2xf32>) -> tensor<2xf32> {
  "test.termop"()[^next] : () -> ()
^next:
  func.return %a : tensor<2xf32>
}

// CHECK:       func.func private @declared(tensor<2xf32>) -> tensor<2xf32>
func.func private @declared(tensor<2xf32>) -> tensor<2xf32>
