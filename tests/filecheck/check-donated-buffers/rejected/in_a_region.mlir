// RUN: xdsl-opt %s -p check-donated-buffers --verify-diagnostics | filecheck %s

func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  "test.op"() ({
    %0 = "test.op"() : () -> tensor<4xf32>
    %1 = bufferization.materialize_in_destination %0 in %a : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    "test.termop"() : () -> ()
  }) : () -> ()
  func.return %a : tensor<4xf32>
}

// CHECK: 'test.op' cannot be followed: something is materialized in its regions.
