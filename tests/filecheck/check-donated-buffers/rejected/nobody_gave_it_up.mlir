// RUN: xdsl-opt %s -p check-donated-buffers --verify-diagnostics --allow-unregistered-dialect | filecheck %s

func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = func.call @writes(%a) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
func.func private @writes(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.sine"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = bufferization.materialize_in_destination %0 in %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %1 : tensor<4xf32>
}

// CHECK: 'bufferization.materialize_in_destination' writes argument 0, which the function has not been given.
