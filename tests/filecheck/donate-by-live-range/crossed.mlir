// RUN: xdsl-opt %s -p donate-by-live-range --allow-unregistered-dialect | filecheck %s

// Each result is written by the only reader of the argument that gives its buffer.

func.func @main(%a: tensor<4xf32> {tf.aliasing_output = 0 : i32}, %b: tensor<4xf32> {tf.aliasing_output = 1 : i32}) -> (tensor<4xf32>, tensor<4xf32>) {
  %r = "stablehlo.tanh"(%b) : (tensor<4xf32>) -> tensor<4xf32>
  %s = "stablehlo.sine"(%a) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %r, %s : tensor<4xf32>, tensor<4xf32>
}

// CHECK:       func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>)
// CHECK:         [[M:%\d+]] = bufferization.materialize_in_destination %r in %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:    [[N:%\d+]] = bufferization.materialize_in_destination %s in %a
// CHECK-NEXT:    func.return [[M]], [[N]]
