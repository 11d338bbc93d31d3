// RUN: xdsl-opt %s -p reuse-donated-buffers,check-donated-buffers --allow-unregistered-dialect | filecheck %s

func.func @main(%a: tensor<4xf32> {jax.buffer_donor = true}, %b: tensor<8xi8> {jax.buffer_donor = true}) -> tensor<i8> {
  %0 = "stablehlo.dot_general"(%a) : (tensor<4xf32>) -> tensor<8xi8>
  %1 = "stablehlo.dot_general"(%0) : (tensor<8xi8>) -> tensor<4xf32>
  %2 = "stablehlo.dot_general"(%1) : (tensor<4xf32>) -> tensor<i8>
  func.return %2 : tensor<i8>
}

// CHECK:       func.func @main(%a: tensor<4xf32>, %b: tensor<8xi8>)
// CHECK:         %1 = bufferization.materialize_in_destination %0 in %b
// CHECK:         %3 = bufferization.materialize_in_destination %2 in %a
