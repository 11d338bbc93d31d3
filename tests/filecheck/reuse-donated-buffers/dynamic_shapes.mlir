// RUN: xdsl-opt %s -p reuse-donated-buffers,check-donated-buffers --allow-unregistered-dialect | filecheck %s

// %1 may be larger than %a at run time.

func.func @main(%a: tensor<?xf32> {tf.aliasing_output = 0 : i32}) -> tensor<?xf32> {
  %0 = "stablehlo.dot_general"(%a) : (tensor<?xf32>) -> tensor<i8>
  %1 = "stablehlo.dot_general"(%0) : (tensor<i8>) -> tensor<?xf32>
  %2 = "stablehlo.dot_general"(%1) : (tensor<?xf32>) -> tensor<?xf32>
  func.return %2 : tensor<?xf32>
}

// CHECK:         %1 = "stablehlo.dot_general"(%0)
// CHECK-NEXT:    %2 = "stablehlo.dot_general"(%1)
// CHECK-NEXT:    %3 = bufferization.materialize_in_destination %2 in %a
// CHECK-NEXT:    func.return %3
