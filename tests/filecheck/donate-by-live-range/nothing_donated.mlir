// RUN: xdsl-opt %s -p donate-by-live-range | filecheck %s

// CHECK:       func.func @blocks(%a: tensor<4xf32>)
// CHECK-NOT:   bufferization
func.func @blocks(%a: tensor<4xf32>) -> tensor<4xf32> {
  "test.termop"()[^next] : () -> ()
^next:
  func.return %a : tensor<4xf32>
}

func.func @declared(tensor<4xf32> {tf.aliasing_output = 0 : i32}) -> tensor<4xf32>
