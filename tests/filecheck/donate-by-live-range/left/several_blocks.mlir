// RUN: xdsl-opt %s -p donate-by-live-range 2>&1 | filecheck %s

func.func @main(%a: tensor<4xf32> {tf.aliasing_output = 0 : i32}) -> tensor<4xf32> {
  "test.termop"()[^next] : () -> ()
^next:
  func.return %a : tensor<4xf32>
}

// CHECK: donate-by-live-range: @main has 2 blocks, only one is understood: its donated arguments are left
// CHECK: func.func @main(%a: tensor<4xf32> {tf.aliasing_output = 0 : i32})
