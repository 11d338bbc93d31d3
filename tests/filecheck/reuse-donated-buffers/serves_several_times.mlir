// RUN: xdsl-opt %s -p reuse-donated-buffers,check-donated-buffers | filecheck %s

// Two values between the argument and the result, each from where it is made to its last use.

func.func @main(%a: tensor<4xf32> {tf.aliasing_output = 0 : i32}) -> tensor<4xf32> {
  %0 = "test.op"(%a) : (tensor<4xf32>) -> tensor<i8>
  %1 = "test.op"(%0) : (tensor<i8>) -> tensor<4xf32>
  %2 = "test.op"(%1) : (tensor<4xf32>) -> tensor<i8>
  %3 = "test.op"(%2) : (tensor<i8>) -> tensor<4xf32>
  %4 = "test.op"(%3) : (tensor<4xf32>) -> tensor<i8>
  %5 = "test.op"(%4) : (tensor<i8>) -> tensor<4xf32>
  func.return %5 : tensor<4xf32>
}

// CHECK:       func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
// CHECK-NEXT:    [[A:%\d+]] = "test.op"(%a)
// CHECK-NEXT:    [[V:%\d+]] = "test.op"([[A]])
// CHECK-NEXT:    [[M:%\d+]] = bufferization.materialize_in_destination [[V]] in %a : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:    [[B:%\d+]] = "test.op"([[M]])
// CHECK-NEXT:    [[W:%\d+]] = "test.op"([[B]])
// CHECK-NEXT:    [[N:%\d+]] = bufferization.materialize_in_destination [[W]] in %a
// CHECK-NEXT:    [[C:%\d+]] = "test.op"([[N]])
// CHECK-NEXT:    [[X:%\d+]] = "test.op"([[C]])
// CHECK-NEXT:    [[O:%\d+]] = bufferization.materialize_in_destination [[X]] in %a
// CHECK-NEXT:    func.return [[O]]
