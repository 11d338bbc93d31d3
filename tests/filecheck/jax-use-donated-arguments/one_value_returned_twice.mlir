// RUN: xdsl-opt %s -p jax-use-donated-arguments | filecheck %s

// Written twice into the last donor, returned from there for both; the first donor stays unused.

func.func @main(%a: tensor<2xf32> {tf.aliasing_output = 0 : i32}, %b: tensor<2xf32> {tf.aliasing_output = 1 : i32}) -> (tensor<2xf32>, tensor<2xf32>) {
  %r = "test.op"() : () -> tensor<2xf32>
  func.return %r, %r : tensor<2xf32>, tensor<2xf32>
}

// CHECK:       func.func @main(%a: tensor<2xf32> {tf.aliasing_output = 0 : i32}, %b: tensor<2xf32>)
// CHECK-NEXT:    %r = "test.op"()
// CHECK-NEXT:    %{{.*}} = bufferization.materialize_in_destination %r in %b
// CHECK-NEXT:    [[M:%\d+]] = bufferization.materialize_in_destination %r in %b
// CHECK-NEXT:    func.return [[M]], [[M]]
