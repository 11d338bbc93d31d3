// RUN: xdsl-opt %s -p reuse-donated-buffers,check-donated-buffers --allow-unregistered-dialect | filecheck %s

// A constant is stored with the program, and what a call gives was written by its callee.

func.func @main(%a: tensor<4xf32> {jax.buffer_donor = true}) -> tensor<i8> {
  %0 = "stablehlo.constant"() {value = dense<1.0> : tensor<4xf32>} : () -> tensor<4xf32>
  %1 = func.call @callee() : () -> tensor<4xf32>
  %2 = "test.op"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<i8>
  func.return %2 : tensor<i8>
}

// CHECK-NOT:   bufferization
func.func private @callee() -> tensor<4xf32>
