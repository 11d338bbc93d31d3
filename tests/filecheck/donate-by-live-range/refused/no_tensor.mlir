// RUN: xdsl-opt %s -p donate-by-live-range --verify-diagnostics | filecheck %s

func.func @main(%a: memref<4xf32> {jax.buffer_donor = true}) -> tensor<4xf32> {
  %r = "test.op"() : () -> tensor<4xf32>
  func.return %r : tensor<4xf32>
}

// CHECK: donated argument 0 is memref<4xf32>, which is no tensor.
