// RUN: xdsl-opt %s -p materialize-to-aliasing-output --verify-diagnostics | filecheck %s

// XLA would refuse two arguments for one result.

func.func @main(%stale: tensor<2xf32> {tf.aliasing_output = 0 : i32}, %a: tensor<2xf32>) -> tensor<2xf32> {
  %r = "test.op"() : () -> tensor<2xf32>
  %m = bufferization.materialize_in_destination %r in %a : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  func.return %m : tensor<2xf32>
}

// CHECK: in function @main, argument 0 claims result 0 by tf.aliasing_output, and so does argument 1 by its materialization; strip the stale flag first
