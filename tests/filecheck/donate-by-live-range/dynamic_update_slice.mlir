// RUN: xdsl-opt %s -p donate-by-live-range --allow-unregistered-dialect | filecheck %s

// It updates its first operand in place, and no other.

func.func @main(%a: tensor<4xf32> {tf.aliasing_output = 0 : i32}, %b: tensor<4xf32> {tf.aliasing_output = 1 : i32}, %i: tensor<i32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %r = "stablehlo.dynamic_update_slice"(%b, %a, %i) : (tensor<4xf32>, tensor<4xf32>, tensor<i32>) -> tensor<4xf32>
  %s = "stablehlo.negate"(%a) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %r, %s : tensor<4xf32>, tensor<4xf32>
}

// CHECK:       bufferization.materialize_in_destination %r in %b
// CHECK-NEXT:  bufferization.materialize_in_destination %s in %a
