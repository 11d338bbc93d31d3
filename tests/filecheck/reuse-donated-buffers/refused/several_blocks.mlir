// RUN: xdsl-opt %s -p reuse-donated-buffers --verify-diagnostics | filecheck %s

func.func @main(%a: tensor<4xf32> {tf.aliasing_output = 0 : i32}) -> tensor<4xf32> {
  "test.termop"()[^next] : () -> ()
^next:
  func.return %a : tensor<4xf32>
}

// CHECK: cannot reuse the donated buffers of @main: it has 2 blocks; only one is understood.
