// RUN: xdsl-opt %s -p reuse-donated-buffers,check-donated-buffers | filecheck %s

// Both are there at once, though nothing reads the first one.

func.func @main(%a: tensor<4xf32> {jax.buffer_donor = true}) -> tensor<i8> {
  %0, %1 = "test.op"() : () -> (tensor<4xf32>, tensor<4xf32>)
  %2 = "test.op"(%1) : (tensor<4xf32>) -> tensor<i8>
  func.return %2 : tensor<i8>
}

// CHECK:         %0, %1 = "test.op"()
// CHECK-NEXT:    bufferization.materialize_in_destination %0 in %a
// CHECK-NOT:     bufferization
