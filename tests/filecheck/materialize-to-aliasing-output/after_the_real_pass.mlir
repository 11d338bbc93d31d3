// RUN: xdsl-opt %s -p jax-use-donated-arguments,materialize-to-aliasing-output | filecheck %s

// What JAX lowered comes back as it was when the pass pairs as JAX does.

func.func public @main(%w: tensor<2x3xf32> {tf.aliasing_output = 0 : i32}, %x: tensor<4xf32>, %n: tensor<i32> {tf.aliasing_output = 1 : i32}) -> (tensor<2x3xf32>, tensor<i32>) {
  %new, %next = "test.op"(%w, %x, %n) : (tensor<2x3xf32>, tensor<4xf32>, tensor<i32>) -> (tensor<2x3xf32>, tensor<i32>)
  func.return %new, %next : tensor<2x3xf32>, tensor<i32>
}

// CHECK:       func.func public @main(%w: tensor<2x3xf32> {tf.aliasing_output = 0 : i32}, %x: tensor<4xf32>, %n: tensor<i32> {tf.aliasing_output = 1 : i32})
// CHECK-NEXT:    %new, %next = "test.op"(%w, %x, %n)
// CHECK-NEXT:    func.return %new, %next : tensor<2x3xf32>, tensor<i32>
