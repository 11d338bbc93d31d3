// RUN: xdsl-opt %s -p donate-by-live-range --allow-unregistered-dialect | filecheck %s

// First in, first out would not have paired so: someone wrote it on purpose.

func.func @main(%a: tensor<4xf32> {tf.aliasing_output = 1 : i32}, %b: tensor<4xf32> {tf.aliasing_output = 0 : i32}) -> (tensor<4xf32>, tensor<4xf32>) {
  %r = "stablehlo.tanh"(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %s = "stablehlo.sine"(%b) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %r, %s : tensor<4xf32>, tensor<4xf32>
}

// CHECK:       bufferization.materialize_in_destination %r in %b
// CHECK-NEXT:  bufferization.materialize_in_destination %s in %a
