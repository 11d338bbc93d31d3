// RUN: xdsl-opt %s -p materialize-to-aliasing-output 2>&1 | filecheck %s

func.func @main(%x: tensor<i8>, %a: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  %r:2 = "test.op"() : () -> (tensor<2xf32>, tensor<2xf32>)
  %m = bufferization.materialize_in_destination %r#0 in %a : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %n = bufferization.materialize_in_destination %r#1 in %a : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  func.return %m, %n : tensor<2xf32>, tensor<2xf32>
}

// CHECK: destination, argument 1, is already written by another materialization
// CHECK-NOT: bufferization.materialize_in_destination
