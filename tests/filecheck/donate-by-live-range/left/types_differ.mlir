// RUN: xdsl-opt %s -p donate-by-live-range 2>&1 | filecheck %s

func.func @main(%a: tensor<4xf32> {tf.aliasing_output = 0 : i32}) -> tensor<4xi32> {
  %r = "test.op"() : () -> tensor<4xi32>
  func.return %r : tensor<4xi32>
}

// CHECK: Argument 0, tensor<4xf32>, is aliased to result 0, tensor<4xi32>: the types differ.
