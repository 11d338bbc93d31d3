// RUN: xdsl-opt %s -p reuse-donated-buffers,check-donated-buffers --allow-unregistered-dialect | filecheck %s

// An elementwise operation writes over what it reads; a product cannot, so its result has a buffer of its own.

func.func @main(%a: tensor<4x4xf32> {tf.aliasing_output = 0 : i32}) -> tensor<4x4xf32> {
  %0 = "stablehlo.sine"(%a) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = "stablehlo.dot_general"(%0, %0) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = "stablehlo.tanh"(%1) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  func.return %2 : tensor<4x4xf32>
}

// CHECK:         %0 = "stablehlo.sine"(%a)
// CHECK-NEXT:    %1 = bufferization.materialize_in_destination %0 in %a
// CHECK-NEXT:    %2 = "stablehlo.dot_general"(%1, %1)
// CHECK-NEXT:    %3 = "stablehlo.tanh"(%2)
// CHECK-NEXT:    %4 = bufferization.materialize_in_destination %3 in %a
// CHECK-NEXT:    func.return %4
