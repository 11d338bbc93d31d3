// RUN: xdsl-opt %s -p check-donated-buffers --verify-diagnostics --allow-unregistered-dialect | filecheck %s

func.func @main(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = "stablehlo.dot_general"(%a, %a) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = bufferization.materialize_in_destination %0 in %a : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  func.return %1 : tensor<4x4xf32>
}

// CHECK: 'stablehlo.dot_general' reads argument 0 while it writes its result 0 there.
