// RUN: xdsl-opt %s -p check-donated-buffers --verify-diagnostics --allow-unregistered-dialect | filecheck %s

// A public function writes the buffer of whoever calls it, which reads it afterwards.

func.func @main(%a: tensor<4xf32> {jax.buffer_donor = true}) -> tensor<4xf32> {
  %0 = func.call @writes(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "stablehlo.add"(%0, %a) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %1 : tensor<4xf32>
}
func.func public @writes(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.sine"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = bufferization.materialize_in_destination %0 in %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %1 : tensor<4xf32>
}

// CHECK: in function @main: 'stablehlo.add' reads argument 0, but result 0 of 'stablehlo.sine' was written there before.
