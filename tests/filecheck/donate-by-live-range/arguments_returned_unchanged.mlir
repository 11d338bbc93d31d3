// RUN: xdsl-opt %s -p donate-by-live-range --allow-unregistered-dialect | filecheck %s

// Nothing is overwritten that is returned.

// CHECK-LABEL: @swapped
// CHECK:       bufferization.materialize_in_destination %b in %b
// CHECK-NEXT:  bufferization.materialize_in_destination %a in %a
func.func @swapped(%a: tensor<4xf32> {tf.aliasing_output = 0 : i32}, %b: tensor<4xf32> {tf.aliasing_output = 1 : i32}) -> (tensor<4xf32>, tensor<4xf32>) {
  func.return %b, %a : tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: @beside_its_update
// CHECK:       [[M:%\d+]] = bufferization.materialize_in_destination %a in %a
// CHECK-NEXT:  func.return %r, [[M]]
func.func @beside_its_update(%a: tensor<4xf32> {tf.aliasing_output = 0 : i32}) -> (tensor<4xf32>, tensor<4xf32>) {
  %r = "stablehlo.negate"(%a) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %r, %a : tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: @not_donated
// CHECK:       [[M:%\d+]] = bufferization.materialize_in_destination %x in %a
// CHECK-NEXT:  func.return [[M]]
func.func @not_donated(%a: tensor<4xf32> {tf.aliasing_output = 0 : i32}, %x: tensor<4xf32>) -> tensor<4xf32> {
  func.return %x : tensor<4xf32>
}
