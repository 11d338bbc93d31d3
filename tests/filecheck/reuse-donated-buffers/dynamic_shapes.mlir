// RUN: xdsl-opt %s -p reuse-donated-buffers,check-donated-buffers | filecheck %s

// %1 may be larger than %a at run time.

func.func @main(%a: tensor<?xf32> {tf.aliasing_output = 0 : i32}) -> tensor<?xf32> {
  %0 = "test.op"(%a) : (tensor<?xf32>) -> tensor<i8>
  %1 = "test.op"(%0) : (tensor<i8>) -> tensor<?xf32>
  %2 = "test.op"(%1) : (tensor<?xf32>) -> tensor<?xf32>
  func.return %2 : tensor<?xf32>
}

// CHECK:         %1 = "test.op"(%0)
// CHECK-NEXT:    %2 = "test.op"(%1)
// CHECK-NEXT:    %3 = bufferization.materialize_in_destination %2 in %a
// CHECK-NEXT:    func.return %3
