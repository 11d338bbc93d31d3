// RUN: xdsl-opt %s -p donate-by-live-range --allow-unregistered-dialect | filecheck %s

// No buffer is taken before its last use, whoever asks for it.

func.func @main(%a: tensor<4xf32> {tf.aliasing_output = 1 : i32}) -> (tensor<4xf32>, tensor<4xf32>) {
  %r = "stablehlo.sine"(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %s = "stablehlo.dot_general"(%a, %r) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %r, %s : tensor<4xf32>, tensor<4xf32>
}

// CHECK:       func.func @main(%a: tensor<4xf32> {jax.buffer_donor = true})
// CHECK-NOT:   bufferization
