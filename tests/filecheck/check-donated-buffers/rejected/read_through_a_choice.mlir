// RUN: xdsl-opt %s -p check-donated-buffers --verify-diagnostics | filecheck %s

// One condition gives one of two tensors as a whole: it may be the argument, as one-shot bufferization sees it too.

func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>, %c: i1) -> (tensor<4xf32>, tensor<4xf32>) {
  %r = arith.select %c, %b, %a : tensor<4xf32>
  %e = tensor.empty() : tensor<4xf32>
  %0 = linalg.add ins(%b, %b : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %1 = bufferization.materialize_in_destination %0 in %a : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %f = tensor.empty() : tensor<4xf32>
  %2 = linalg.mul ins(%r, %1 : tensor<4xf32>, tensor<4xf32>) outs(%f : tensor<4xf32>) -> tensor<4xf32>
  func.return %1, %2 : tensor<4xf32>, tensor<4xf32>
}

// CHECK: 'linalg.mul' may read argument 0, but result 0 of 'linalg.add' was written there before.
