// RUN: xdsl-opt %s -p reuse-donated-buffers,check-donated-buffers | filecheck %s

func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "test.op"(%a) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}

// CHECK-NOT:   bufferization
