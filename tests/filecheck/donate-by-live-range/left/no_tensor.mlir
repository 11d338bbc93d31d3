// RUN: xdsl-opt %s -p donate-by-live-range 2>&1 | filecheck %s

func.func @main(%a: memref<4xf32> {jax.buffer_donor = true}) -> tensor<4xf32> {
  %r = "test.op"() : () -> tensor<4xf32>
  func.return %r : tensor<4xf32>
}

// CHECK: argument 0 of @main is memref<4xf32>, which no tensor can be written into: left to XLA
// CHECK: func.func @main(%a: memref<4xf32> {jax.buffer_donor = true})
