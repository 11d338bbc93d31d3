// RUN: xdsl-opt %s -p materialize-to-aliasing-output 2>&1 | filecheck %s

func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {
  %r, %d = "test.op"() : () -> (tensor<2xf32>, tensor<2xf32>)
  %m = bufferization.materialize_in_destination %r in %d : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  func.return %m : tensor<2xf32>
}

// CHECK: is not aliased, and a materialization dropped: destination is not an argument of the function
// CHECK-NOT: bufferization.materialize_in_destination
