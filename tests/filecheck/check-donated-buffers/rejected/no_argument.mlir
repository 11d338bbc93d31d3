// RUN: xdsl-opt %s -p check-donated-buffers --verify-diagnostics | filecheck %s

func.func @main() -> tensor<4xf32> {
  %0, %e = "test.op"() : () -> (tensor<4xf32>, tensor<4xf32>)
  %1 = bufferization.materialize_in_destination %0 in %e : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %1 : tensor<4xf32>
}

// CHECK: a materialization has a destination that is no argument of the function.
