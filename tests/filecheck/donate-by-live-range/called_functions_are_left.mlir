// RUN: xdsl-opt %s -p donate-by-live-range,check-donated-buffers --allow-unregistered-dialect 2>&1 | filecheck %s

// CHECK: donate-by-live-range: @step is called in this module
// CHECK: @main(%a: tensor<4xf32>)
// CHECK: bufferization.materialize_in_destination %0 in %a
// CHECK: @step(%x: tensor<4xf32> {tf.aliasing_output = 0 : i32})
// CHECK-NOT: bufferization
func.func @main(%a: tensor<4xf32> {jax.buffer_donor = true}) -> tensor<4xf32> {
  %0 = func.call @step(%a) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
func.func public @step(%x: tensor<4xf32> {tf.aliasing_output = 0 : i32}) -> tensor<4xf32> {
  %0 = "stablehlo.sine"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
