// RUN: xdsl-opt %s -p donate-by-live-range --allow-unregistered-dialect | filecheck %s

// What dies in a private function is for its callers to say.

func.func @main(%a: tensor<4xf32> {tf.aliasing_output = 0 : i32}, %b: tensor<4xf32> {tf.aliasing_output = 1 : i32}, %p: tensor<i1>) -> (tensor<4xf32>, tensor<4xf32>) {
  %r = func.call @negated(%b) : (tensor<4xf32>) -> tensor<4xf32>
  %s = "stablehlo.if"(%p) ({
    %x = "stablehlo.sine"(%a) : (tensor<4xf32>) -> tensor<4xf32>
    "stablehlo.return"(%x) : (tensor<4xf32>) -> ()
  }, {
    "stablehlo.return"(%a) : (tensor<4xf32>) -> ()
  }) : (tensor<i1>) -> tensor<4xf32>
  func.return %r, %s : tensor<4xf32>, tensor<4xf32>
}

// CHECK:       bufferization.materialize_in_destination %r in %b
// CHECK-NEXT:  bufferization.materialize_in_destination %s in %a

// CHECK:       func.func private @negated(%c: tensor<4xf32> {tf.aliasing_output = 0 : i32})
// CHECK-NOT:   bufferization
func.func private @negated(%c: tensor<4xf32> {tf.aliasing_output = 0 : i32}) -> tensor<4xf32> {
  %n = "stablehlo.negate"(%c) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %n : tensor<4xf32>
}
