// RUN: xdsl-opt %s -p check-donated-buffers --verify-diagnostics | filecheck %s

func.func @main() -> tensor<4xf32> {
  %0 = "test.op"() : () -> tensor<4xf32>
  %e = arith.constant dense<0.0> : tensor<4xf32>
  %1 = bufferization.materialize_in_destination %0 in %e : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %1 : tensor<4xf32>
}

// CHECK: in function @main: 'bufferization.materialize_in_destination' writes a constant.
