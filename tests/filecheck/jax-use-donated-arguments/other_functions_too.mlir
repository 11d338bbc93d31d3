// RUN: xdsl-opt %s -p jax-use-donated-arguments | filecheck %s

func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {
  %r = func.call @callee(%a) : (tensor<2xf32>) -> tensor<2xf32>
  func.return %r : tensor<2xf32>
}

// CHECK:       func.func private @callee(%a: tensor<2xf32>) -> tensor<2xf32> {
// CHECK-NEXT:    %r = "test.op"()
// CHECK-NEXT:    %0 = bufferization.materialize_in_destination %r in %a
func.func private @callee(%a: tensor<2xf32> {tf.aliasing_output = 0 : i32}) -> tensor<2xf32> {
  %r = "test.op"() : () -> tensor<2xf32>
  func.return %r : tensor<2xf32>
}
