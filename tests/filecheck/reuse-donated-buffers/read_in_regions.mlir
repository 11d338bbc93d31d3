// RUN: xdsl-opt %s -p reuse-donated-buffers,check-donated-buffers | filecheck %s

// What a region captures is read by the operation that holds it.

func.func @main(%a: tensor<4xf32> {jax.buffer_donor = true}, %x: tensor<4xf32>) -> tensor<i8> {
  %0 = "test.op"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  "test.op"() ({
    "test.op"(%a) : (tensor<4xf32>) -> ()
    "test.termop"() : () -> ()
  }) : () -> ()
  %1 = "test.op"(%0) : (tensor<4xf32>) -> tensor<4xf32>
  "test.op"() ({
    "test.op"(%1) : (tensor<4xf32>) -> ()
    "test.termop"() : () -> ()
  }) : () -> ()
  %2 = "test.op"() : () -> tensor<i8>
  func.return %2 : tensor<i8>
}

// CHECK:         %0 = "test.op"(%x)
// CHECK-NEXT:    "test.op"()
// CHECK:         %1 = "test.op"(%0)
// CHECK-NEXT:    [[M:%\d+]] = bufferization.materialize_in_destination %1 in %a
// CHECK-NEXT:    "test.op"() ({
// CHECK-NEXT:      "test.op"([[M]])
