// RUN: xdsl-opt %s -p jax-use-donated-arguments | filecheck %s

func.func @main(%a: tensor<2xf32> {tf.aliasing_output = 0 : i32}) -> tensor<2xf32> {
  "test.termop"()[^next] : () -> ()
^next:
  %r = "test.op"(%a) : (tensor<2xf32>) -> tensor<2xf32>
  func.return %r : tensor<2xf32>
}

// CHECK-NOT: bufferization
