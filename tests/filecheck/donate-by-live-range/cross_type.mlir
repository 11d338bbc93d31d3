// RUN: xdsl-opt %s -p "donate-by-live-range{cross-type=true}" | filecheck %s

// First what has one type, then what takes as many bytes.

func.func @main(%a: tensor<4xf32> {jax.buffer_donor = true}, %b: tensor<4xf32> {jax.buffer_donor = true}, %c: tensor<3xf32> {jax.buffer_donor = true}) -> (tensor<2x2xi32>, tensor<4xf32>, tensor<f32>) {
  %r, %s, %t = "test.op"() : () -> (tensor<2x2xi32>, tensor<4xf32>, tensor<f32>)
  func.return %r, %s, %t : tensor<2x2xi32>, tensor<4xf32>, tensor<f32>
}

// CHECK:       func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>, %c: tensor<3xf32> {jax.buffer_donor = true})
// CHECK:         [[D:%\d+]] = builtin.unrealized_conversion_cast %b : tensor<4xf32> to tensor<2x2xi32>
// CHECK-NEXT:    [[M:%\d+]] = bufferization.materialize_in_destination %r in [[D]]
// CHECK-NEXT:    [[N:%\d+]] = bufferization.materialize_in_destination %s in %a
// CHECK-NEXT:    func.return [[M]], [[N]], %t
