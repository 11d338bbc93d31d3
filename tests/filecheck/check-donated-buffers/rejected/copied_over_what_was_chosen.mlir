// RUN: xdsl-opt %s -p check-donated-buffers --verify-diagnostics | filecheck %s

// What is chosen may be the other tensor, and is then copied over the argument.

func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>, %c: i1) -> tensor<4xf32> {
  %r = arith.select %c, %a, %b : tensor<4xf32>
  %1 = bufferization.materialize_in_destination %r in %a : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  "test.op"(%a) : (tensor<4xf32>) -> ()
  func.return %1 : tensor<4xf32>
}

// CHECK: 'test.op' reads argument 0, but result 0 of 'arith.select' was written there before.
