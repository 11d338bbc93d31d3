// RUN: xdsl-opt %s -p jax-use-donated-arguments | filecheck %s

func.func @main(%a: tensor<2xi32> {tf.aliasing_output = 0 : i32}) -> tensor<2xf32> {
  %r = "test.op"(%a) : (tensor<2xi32>) -> tensor<2xf32>
  func.return %r : tensor<2xf32>
}

// CHECK:       func.func @main(%a: tensor<2xi32> {tf.aliasing_output = 0 : i32})
// CHECK-NEXT:    %r = "test.op"(%a)
// CHECK-NEXT:    func.return %r
