// RUN: xdsl-opt %s -p jax-use-donated-arguments | filecheck %s

func.func @main(%a: tensor<2xf32> {jax.buffer_donor = true}) -> tensor<2xf32> {
  %r = "test.op"() : () -> tensor<2xf32>
  func.return %r : tensor<2xf32>
}

// CHECK:       func.func @main(%a: tensor<2xf32> {jax.buffer_donor = true})
// CHECK-NEXT:    %r = "test.op"()
// CHECK-NEXT:    func.return %r
