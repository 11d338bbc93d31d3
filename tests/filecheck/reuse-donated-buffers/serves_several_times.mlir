// RUN: xdsl-opt %s -p reuse-donated-buffers,check-donated-buffers --allow-unregistered-dialect | filecheck %s

// Two values between the argument and the result, each from where it is made to its last use.

func.func @main(%a: tensor<4xf32> {tf.aliasing_output = 0 : i32}) -> tensor<4xf32> {
  %0 = "stablehlo.dot_general"(%a) : (tensor<4xf32>) -> tensor<i8>
  %1 = "stablehlo.dot_general"(%0) : (tensor<i8>) -> tensor<4xf32>
  %2 = "stablehlo.dot_general"(%1) : (tensor<4xf32>) -> tensor<i8>
  %3 = "stablehlo.dot_general"(%2) : (tensor<i8>) -> tensor<4xf32>
  %4 = "stablehlo.dot_general"(%3) : (tensor<4xf32>) -> tensor<i8>
  %5 = "stablehlo.dot_general"(%4) : (tensor<i8>) -> tensor<4xf32>
  func.return %5 : tensor<4xf32>
}

// CHECK:       func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
// CHECK-NEXT:    [[A:%\d+]] = "stablehlo.dot_general"(%a)
// CHECK-NEXT:    [[V:%\d+]] = "stablehlo.dot_general"([[A]])
// CHECK-NEXT:    [[M:%\d+]] = bufferization.materialize_in_destination [[V]] in %a : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:    [[B:%\d+]] = "stablehlo.dot_general"([[M]])
// CHECK-NEXT:    [[W:%\d+]] = "stablehlo.dot_general"([[B]])
// CHECK-NEXT:    [[N:%\d+]] = bufferization.materialize_in_destination [[W]] in %a
// CHECK-NEXT:    [[C:%\d+]] = "stablehlo.dot_general"([[N]])
// CHECK-NEXT:    [[X:%\d+]] = "stablehlo.dot_general"([[C]])
// CHECK-NEXT:    [[O:%\d+]] = bufferization.materialize_in_destination [[X]] in %a
// CHECK-NEXT:    func.return [[O]]
