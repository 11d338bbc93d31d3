// RUN: xdsl-opt %s -p materialize-to-aliasing-output 2>&1 | filecheck %s

// XLA would refuse two arguments for one result.

func.func @main(%stale: tensor<2xf32> {tf.aliasing_output = 0 : i32}, %a: tensor<2xf32>) -> tensor<2xf32> {
  %r = "test.op"() : () -> tensor<2xf32>
  %m = bufferization.materialize_in_destination %r in %a : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  func.return %m : tensor<2xf32>
}

// CHECK: argument 0 of @main loses tf.aliasing_output = 0: another argument is materialized into with that result
// CHECK-NOT: bufferization.materialize_in_destination
