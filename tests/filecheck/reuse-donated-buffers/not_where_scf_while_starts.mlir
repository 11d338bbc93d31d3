// RUN: xdsl-opt %s -p reuse-donated-buffers,check-donated-buffers --allow-unregistered-dialect | filecheck %s

// One-shot bufferization refuses a loop that starts in a buffer which it did not make; the result is moved at the end.

func.func @main(%a: tensor<4xf32> {tf.aliasing_output = 0 : i32}) -> tensor<4xf32> {
  %0 = "stablehlo.sine"(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = scf.while (%x = %0) : (tensor<4xf32>) -> tensor<4xf32> {
    %p = "test.op"() : () -> i1
    scf.condition(%p) %x : tensor<4xf32>
  } do {
  ^body(%y: tensor<4xf32>):
    %z = "stablehlo.sine"(%y) : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %z : tensor<4xf32>
  }
  func.return %1 : tensor<4xf32>
}

// CHECK:         %0 = "stablehlo.sine"(%a)
// CHECK-NEXT:    %1 = scf.while
// CHECK:         bufferization.materialize_in_destination %1 in %a
