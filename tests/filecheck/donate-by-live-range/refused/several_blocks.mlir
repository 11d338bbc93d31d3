// RUN: xdsl-opt %s -p donate-by-live-range --verify-diagnostics | filecheck %s

func.func @main(%a: tensor<4xf32> {tf.aliasing_output = 0 : i32}) -> tensor<4xf32> {
  "test.termop"()[^next] : () -> ()
^next:
  func.return %a : tensor<4xf32>
}

// CHECK: cannot pair the donated arguments of @main: it has 2 blocks; only one is understood.
