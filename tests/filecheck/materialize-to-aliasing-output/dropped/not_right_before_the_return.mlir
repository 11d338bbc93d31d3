// RUN: xdsl-opt %s -p materialize-to-aliasing-output 2>&1 | filecheck %s

// An alias says where a result ends up, not when it is written: what stands after the write would be lost.

func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {
  %r = "test.op"() : () -> tensor<2xf32>
  %m = bufferization.materialize_in_destination %r in %a : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  "test.op"(%a) : (tensor<2xf32>) -> ()
  func.return %m : tensor<2xf32>
}

// CHECK: it does not stand right before the return
// CHECK-NOT: bufferization.materialize_in_destination
