// RUN: xdsl-opt %s -p jax-use-donated-arguments | filecheck %s

// xDSL's own pass: JAX pairs crosswise (the per-device shapes say so), the pass pairs in order.

func.func @main(%a: tensor<2xf32> {tf.aliasing_output = 1 : i32}, %b: tensor<2xf32> {tf.aliasing_output = 0 : i32}) -> (tensor<2xf32>, tensor<2xf32>) {
  %r, %s = "test.op"() : () -> (tensor<2xf32>, tensor<2xf32>)
  func.return %r, %s : tensor<2xf32>, tensor<2xf32>
}

// CHECK:       [[M:%\d+]] = bufferization.materialize_in_destination %r in %a
// CHECK-NEXT:  [[N:%\d+]] = bufferization.materialize_in_destination %s in %b
// CHECK-NEXT:  func.return [[M]], [[N]]
