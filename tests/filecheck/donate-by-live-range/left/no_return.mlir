// RUN: xdsl-opt %s -p donate-by-live-range 2>&1 | filecheck %s

func.func @main(%a: tensor<4xf32> {tf.aliasing_output = 0 : i32}) -> tensor<4xf32> {
  "test.termop"() : () -> ()
}

// CHECK: donate-by-live-range: @main does not end in func.return: its donated arguments are left
