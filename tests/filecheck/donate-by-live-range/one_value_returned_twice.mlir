// RUN: xdsl-opt %s -p donate-by-live-range --allow-unregistered-dialect | filecheck %s

// Each result gets a buffer of its own.

func.func @main(%a: tensor<4xf32> {tf.aliasing_output = 0 : i32}, %b: tensor<4xf32> {tf.aliasing_output = 1 : i32}) -> (tensor<4xf32>, tensor<4xf32>) {
  %r = "stablehlo.add"(%a, %b) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %r, %r : tensor<4xf32>, tensor<4xf32>
}

// CHECK:       [[M:%\d+]] = bufferization.materialize_in_destination %r in %a
// CHECK-NEXT:  [[N:%\d+]] = bufferization.materialize_in_destination %r in %b
// CHECK-NEXT:  func.return [[M]], [[N]]
