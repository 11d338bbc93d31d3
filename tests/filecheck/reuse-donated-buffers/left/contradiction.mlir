// RUN: xdsl-opt %s -p reuse-donated-buffers 2>&1 | filecheck %s

func.func @main(%a: tensor<4xf32> {tf.aliasing_output = 0 : i32}, %b: tensor<4xf32> {tf.aliasing_output = 0 : i32}) -> tensor<4xf32> {
  func.return %a : tensor<4xf32>
}

// CHECK: Arguments 0 and 1 all claim the buffer of result 0
