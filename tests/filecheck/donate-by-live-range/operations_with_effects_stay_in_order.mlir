// RUN: xdsl-opt %s -p donate-by-live-range --allow-unregistered-dialect | filecheck %s

// What may have effects cannot be reordered, so %a is read after %r was made; what is pure can be.

// CHECK-LABEL: @effects(%a: tensor<4xf32> {jax.buffer_donor = true})
func.func @effects(%a: tensor<4xf32> {tf.aliasing_output = 0 : i32}) -> tensor<4xf32> {
  %r = "test.op"() : () -> tensor<4xf32>
  "test.op"(%a) : (tensor<4xf32>) -> ()
  func.return %r : tensor<4xf32>
}

// CHECK-LABEL: @pure(%a: tensor<4xf32>)
// CHECK:         bufferization.materialize_in_destination %r in %a
func.func @pure(%a: tensor<4xf32> {tf.aliasing_output = 0 : i32}) -> (tensor<4xf32>, tensor<i8>) {
  %r = "test.pureop"() : () -> tensor<4xf32>
  %s = "stablehlo.dot_general"(%a) : (tensor<4xf32>) -> tensor<i8>
  func.return %r, %s : tensor<4xf32>, tensor<i8>
}
