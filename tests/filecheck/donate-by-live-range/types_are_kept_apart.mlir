// RUN: xdsl-opt %s -p donate-by-live-range | filecheck %s

func.func @main(%a: tensor<4xf32> {jax.buffer_donor = true}) -> (tensor<2x2xi32>, tensor<2x2xf32>) {
  %r, %s = "test.op"() : () -> (tensor<2x2xi32>, tensor<2x2xf32>)
  func.return %r, %s : tensor<2x2xi32>, tensor<2x2xf32>
}

// CHECK-NOT:   bufferization
