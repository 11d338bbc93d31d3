// RUN: xdsl-opt %s -p donate-by-live-range | filecheck %s

// %a is still read once %r is there: it is left to XLA.

func.func @main(%a: tensor<4xf32> {tf.aliasing_output = 0 : i32}) -> (tensor<4xf32>, tensor<i8>) {
  %r = "test.op"(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %s = "test.op"(%a, %r) : (tensor<4xf32>, tensor<4xf32>) -> tensor<i8>
  func.return %r, %s : tensor<4xf32>, tensor<i8>
}

// CHECK:       func.func @main(%a: tensor<4xf32> {jax.buffer_donor = true})
// CHECK-NOT:   bufferization
