// RUN: xdsl-opt %s -p jax-use-donated-arguments | filecheck %s

func.func @main(%a: tensor<2xf32> {tf.aliasing_output = 0 : i32}) -> (tensor<2xf32>, tensor<2xf32>) {
  %r = "test.op"(%a) : (tensor<2xf32>) -> tensor<2xf32>
  func.return %r, %a : tensor<2xf32>, tensor<2xf32>
}

// CHECK:       [[M:%\d+]] = bufferization.materialize_in_destination %r in %a
// CHECK-NEXT:  func.return [[M]], %a
