// RUN: xdsl-opt %s -p reuse-donated-buffers,check-donated-buffers --allow-unregistered-dialect | filecheck %s

// What the loop gives lives where it started, so that is placed, and nothing else may have the buffer until the end.

func.func @main(%a: tensor<4xf32> {tf.aliasing_output = 0 : i32}, %b: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.add"(%a, %b) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = "stablehlo.while"(%0) ({
  ^cond(%c: tensor<4xf32>):
    %p = "test.op"(%c) : (tensor<4xf32>) -> tensor<i1>
    "stablehlo.return"(%p) : (tensor<i1>) -> ()
  }, {
  ^body(%x: tensor<4xf32>):
    %y = "test.op"(%x) : (tensor<4xf32>) -> tensor<4xf32>
    "stablehlo.return"(%y) : (tensor<4xf32>) -> ()
  }) : (tensor<4xf32>) -> tensor<4xf32>
  %2 = "test.op"() : () -> tensor<4xf32>
  %3 = "test.op"(%2) : (tensor<4xf32>) -> tensor<i8>
  func.return %1 : tensor<4xf32>
}

// CHECK:         %0 = "stablehlo.add"(%a, %b)
// CHECK-NEXT:    %1 = bufferization.materialize_in_destination %0 in %a
// CHECK-NEXT:    [[L:%\d+]] = "stablehlo.while"(%1)
// CHECK:         [[V:%\d+]] = "test.op"() : () -> tensor<4xf32>
// CHECK-NEXT:    "test.op"([[V]])
// CHECK-NEXT:    [[M:%\d+]] = bufferization.materialize_in_destination [[L]] in %a
// CHECK-NEXT:    func.return [[M]]
