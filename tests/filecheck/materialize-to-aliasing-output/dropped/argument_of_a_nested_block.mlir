// RUN: xdsl-opt %s -p materialize-to-aliasing-output 2>&1 | filecheck %s

func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {
  %r = "test.op"() ({
  ^body(%inner: tensor<2xf32>):
    %m = bufferization.materialize_in_destination %a in %inner : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    "test.termop"(%m) : (tensor<2xf32>) -> ()
  }) : () -> tensor<2xf32>
  func.return %r : tensor<2xf32>
}

// CHECK: destination is not an argument of the function
// CHECK-NOT: bufferization.materialize_in_destination
