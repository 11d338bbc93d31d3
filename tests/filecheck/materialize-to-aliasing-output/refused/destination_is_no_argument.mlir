// RUN: xdsl-opt %s -p materialize-to-aliasing-output --verify-diagnostics | filecheck %s

func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {
  %r, %d = "test.op"() : () -> (tensor<2xf32>, tensor<2xf32>)
  %m = bufferization.materialize_in_destination %r in %d : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  func.return %m : tensor<2xf32>
}

// CHECK: cannot turn 'bufferization.materialize_in_destination' into an alias: destination is not an argument of the function
