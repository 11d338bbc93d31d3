// RUN: xdsl-opt %s -p materialize-to-aliasing-output | filecheck %s

// A result and its argument need not stand at the same position.

func.func @main(%a: tensor<2xf32>, %b: tensor<2xf32>) -> (tensor<i8>, tensor<2xf32>, tensor<2xf32>) {
  %r:3 = "test.op"() : () -> (tensor<i8>, tensor<2xf32>, tensor<2xf32>)
  %m = bufferization.materialize_in_destination %r#1 in %b : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %n = bufferization.materialize_in_destination %r#2 in %a : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  func.return %r#0, %m, %n : tensor<i8>, tensor<2xf32>, tensor<2xf32>
}

// CHECK:       func.func @main(%a: tensor<2xf32> {tf.aliasing_output = 2 : i32}, %b: tensor<2xf32> {tf.aliasing_output = 1 : i32})
// CHECK-NEXT:    %r, %r_1, %r_2 = "test.op"()
// CHECK-NEXT:    func.return %r, %r_1, %r_2
