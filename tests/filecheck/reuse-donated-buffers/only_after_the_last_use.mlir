// RUN: xdsl-opt %s -p reuse-donated-buffers,check-donated-buffers --allow-unregistered-dialect | filecheck %s

// %0 comes before the last use of %a, and %4 while %3 is still there.

func.func @main(%a: tensor<4xf32> {jax.buffer_donor = true}) -> (tensor<i8>, tensor<i8>) {
  %0 = "test.op"() : () -> tensor<4xf32>
  %1 = "stablehlo.dot_general"(%a, %0) : (tensor<4xf32>, tensor<4xf32>) -> tensor<i8>
  %2 = "test.op"() : () -> tensor<4xf32>
  %3 = "stablehlo.dot_general"(%2) : (tensor<4xf32>) -> tensor<4xf32>
  %4 = "stablehlo.dot_general"(%2, %3) : (tensor<4xf32>, tensor<4xf32>) -> tensor<i8>
  func.return %1, %4 : tensor<i8>, tensor<i8>
}

// CHECK:         %0 = "test.op"() : () -> tensor<4xf32>
// CHECK-NEXT:    %1 = "stablehlo.dot_general"(%a, %0)
// CHECK-NEXT:    %2 = "test.op"() : () -> tensor<4xf32>
// CHECK-NEXT:    %3 = bufferization.materialize_in_destination %2 in %a
// CHECK-NEXT:    %4 = "stablehlo.dot_general"(%3) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:    %5 = "stablehlo.dot_general"(%3, %4)
