// RUN: xdsl-opt %s -p donate-by-live-range,check-donated-buffers | filecheck %s
// RUN: xdsl-opt %s -p donate-by-live-range,donate-by-live-range,check-donated-buffers | filecheck %s

// %a is read after the update, so that is made on a copy, and %a is free for the sum.

func.func public @main(%a: tensor<4xf32> {tf.aliasing_output = 0 : i32}, %b: tensor<4xf32> {tf.aliasing_output = 1 : i32}, %x: tensor<1xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %updated = tensor.insert_slice %x into %a[0] [1] [1] : tensor<1xf32> into tensor<4xf32>
  %sum = arith.addf %updated, %a : tensor<4xf32>
  func.return %sum, %updated : tensor<4xf32>, tensor<4xf32>
}

// CHECK:       func.func public @main(%a: tensor<4xf32>, %b: tensor<4xf32>, %x: tensor<1xf32>)
// CHECK:       [[S:%\d+]] = bufferization.materialize_in_destination %sum in %a
// CHECK-NEXT:  [[R:%\d+]] = bufferization.materialize_in_destination %updated in %b
// CHECK-NEXT:  func.return [[S]], [[R]]
