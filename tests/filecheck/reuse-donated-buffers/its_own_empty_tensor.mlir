// RUN: xdsl-opt %s -p reuse-donated-buffers,check-donated-buffers | filecheck %s

// Bufferization puts %a in place of the empty tensor: it must not do so for %x.

func.func @main(%a: tensor<4xf32> {tf.aliasing_output = 0 : i32}, %f: f32) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %x = linalg.fill ins(%f : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %y = linalg.add ins(%a, %x : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// CHECK:         %e = tensor.empty() : tensor<4xf32>
// CHECK-NEXT:    %x = linalg.fill {{.*}} outs(%e
// CHECK-NEXT:    [[E:%\S+]] = tensor.empty() : tensor<4xf32>
// CHECK-NEXT:    %y = linalg.add {{.*}} outs([[E]] :
// CHECK-NEXT:    [[M:%\d+]] = bufferization.materialize_in_destination %y in %a
// CHECK-NEXT:    func.return [[M]]
