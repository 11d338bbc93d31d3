// RUN: xdsl-opt %s -p reuse-donated-buffers,check-donated-buffers | filecheck %s

// What one condition chooses, or a branch yields, is one of the tensors it sees: no buffer of its own, and the buffer
// of the argument is not free while that is read.

func.func @choice(%a: tensor<4xf32> {jax.buffer_donor = true}, %b: tensor<4xf32>, %c: i1) -> tensor<i8> {
  %r = arith.select %c, %a, %b : tensor<4xf32>
  %0 = "test.op"(%b) : (tensor<4xf32>) -> tensor<4xf32>
  "test.op"(%r) : (tensor<4xf32>) -> ()
  %1 = "test.op"(%0) : (tensor<4xf32>) -> tensor<4xf32>
  %2 = "test.op"(%1) : (tensor<4xf32>) -> tensor<i8>
  func.return %2 : tensor<i8>
}

// CHECK-LABEL: @choice
// CHECK-NEXT:    %r = arith.select
// CHECK-NEXT:    %0 = "test.op"(%b)
// CHECK-NEXT:    "test.op"(%r)
// CHECK-NEXT:    %1 = "test.op"(%0)
// CHECK-NEXT:    bufferization.materialize_in_destination %1 in %a
// CHECK-NOT:     bufferization

func.func @branch(%a: tensor<4xf32> {jax.buffer_donor = true}, %b: tensor<4xf32>, %c: i1) -> tensor<i8> {
  %r = scf.if %c -> (tensor<4xf32>) {
    scf.yield %a : tensor<4xf32>
  } else {
    scf.yield %b : tensor<4xf32>
  }
  %0 = "test.op"(%b) : (tensor<4xf32>) -> tensor<4xf32>
  "test.op"(%r) : (tensor<4xf32>) -> ()
  %1 = "test.op"(%0) : (tensor<4xf32>) -> tensor<4xf32>
  %2 = "test.op"(%1) : (tensor<4xf32>) -> tensor<i8>
  func.return %2 : tensor<i8>
}

// CHECK-LABEL: @branch
// CHECK:         %0 = "test.op"(%b)
// CHECK-NEXT:    "test.op"(%r)
// CHECK-NEXT:    %1 = "test.op"(%0)
// CHECK-NEXT:    bufferization.materialize_in_destination %1 in %a
// CHECK-NOT:     bufferization
