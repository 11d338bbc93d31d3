// RUN: xdsl-opt %s -p jax-use-donated-arguments,reuse-donated-buffers,check-donated-buffers --allow-unregistered-dialect | filecheck %s

// The result has its buffer from its definition on, and a value has it before.

func.func @main(%a: tensor<4xf32> {tf.aliasing_output = 0 : i32}) -> tensor<4xf32> {
  %0 = "stablehlo.dot_general"(%a) : (tensor<4xf32>) -> tensor<i8>
  %1 = "stablehlo.dot_general"(%0) : (tensor<i8>) -> tensor<4xf32>
  %2 = "stablehlo.dot_general"(%1) : (tensor<4xf32>) -> tensor<i8>
  %3 = "stablehlo.dot_general"(%2) : (tensor<i8>) -> tensor<4xf32>
  %4 = "stablehlo.dot_general"(%2, %0) : (tensor<i8>, tensor<i8>) -> tensor<i8>
  func.return %3 : tensor<4xf32>
}

// CHECK:         %2 = bufferization.materialize_in_destination %1 in %a
// CHECK-NEXT:    %3 = "stablehlo.dot_general"(%2)
// CHECK-NEXT:    %4 = "stablehlo.dot_general"(%3)
// CHECK-NEXT:    %5 = bufferization.materialize_in_destination %4 in %a
// CHECK-NEXT:    %6 = "stablehlo.dot_general"(%3, %0)
// CHECK-NEXT:    func.return %5
