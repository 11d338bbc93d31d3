// RUN: xdsl-opt %s -p reuse-donated-buffers,check-donated-buffers --allow-unregistered-dialect | filecheck %s

// %0 is the bytes of %a under another type.

func.func @main(%a: tensor<4xf32> {jax.buffer_donor = true}) -> tensor<i8> {
  %0 = "stablehlo.reshape"(%a) : (tensor<4xf32>) -> tensor<2x2xf32>
  %1 = "test.op"() : () -> tensor<4xf32>
  %2 = "test.op"(%0, %1) : (tensor<2x2xf32>, tensor<4xf32>) -> tensor<i8>
  func.return %2 : tensor<i8>
}

// CHECK-NOT:   bufferization
