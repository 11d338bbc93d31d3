// RUN: xdsl-opt %s -p reuse-donated-buffers,reuse-donated-buffers,check-donated-buffers --allow-unregistered-dialect | filecheck %s

func.func @main(%a: tensor<4xf32> {tf.aliasing_output = 0 : i32}, %b: tensor<4xf32> {jax.buffer_donor = true}) -> tensor<4xf32> {
  %0 = "test.op"(%a, %b) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = "stablehlo.sine"(%0) : (tensor<4xf32>) -> tensor<4xf32>
  %2 = "test.op"(%1) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %2 : tensor<4xf32>
}

// CHECK:       func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
// CHECK-NEXT:    %0 = "test.op"(%a, %b)
// CHECK-NEXT:    %1 = "stablehlo.sine"(%0)
// CHECK-NEXT:    %2 = bufferization.materialize_in_destination %1 in %b
// CHECK-NEXT:    %3 = "test.op"(%2)
// CHECK-NEXT:    %4 = bufferization.materialize_in_destination %3 in %a
// CHECK-NEXT:    func.return %4
