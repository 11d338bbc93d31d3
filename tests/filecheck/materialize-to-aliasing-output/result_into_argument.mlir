// RUN: xdsl-opt %s -p materialize-to-aliasing-output | filecheck %s

func.func @main(%w: tensor<2x3xf32>, %x: tensor<4xf32>) -> tensor<2x3xf32> {
  %new = "test.op"(%w, %x) : (tensor<2x3xf32>, tensor<4xf32>) -> tensor<2x3xf32>
  %m = bufferization.materialize_in_destination %new in %w : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %m : tensor<2x3xf32>
}

// CHECK:       func.func @main(%w: tensor<2x3xf32> {tf.aliasing_output = 0 : i32}, %x: tensor<4xf32>) -> tensor<2x3xf32> {
// CHECK-NEXT:    %new = "test.op"(%w, %x) : (tensor<2x3xf32>, tensor<4xf32>) -> tensor<2x3xf32>
// CHECK-NEXT:    func.return %new : tensor<2x3xf32>
// CHECK-NEXT:  }
