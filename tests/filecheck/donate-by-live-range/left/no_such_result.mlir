// RUN: xdsl-opt %s -p donate-by-live-range 2>&1 | filecheck %s

func.func @main(%a: tensor<4xf32> {tf.aliasing_output = 1 : i32}) -> tensor<4xf32> {
  func.return %a : tensor<4xf32>
}

// CHECK: Argument 0 has tf.aliasing_output = 1, but there is no result 1
