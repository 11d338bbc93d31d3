// RUN: xdsl-opt %s -p jax-use-donated-arguments,reuse-donated-buffers 2>&1 | filecheck %s

// The real pass left what cannot be built on.

func.func @main(%a: tensor<4xf32> {tf.aliasing_output = 0 : i32}, %b: tensor<4xf32> {tf.aliasing_output = 1 : i32}) -> (tensor<4xf32>, tensor<4xf32>) {
  func.return %b, %a : tensor<4xf32>, tensor<4xf32>
}

// CHECK: 'bufferization.materialize_in_destination' reads argument 0, but argument 1 was written there before.
