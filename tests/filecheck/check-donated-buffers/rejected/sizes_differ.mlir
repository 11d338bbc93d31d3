// RUN: xdsl-opt %s -p check-donated-buffers --verify-diagnostics | filecheck %s

func.func @main(%a: tensor<4xf32>) -> tensor<4xi8> {
  %0 = "test.op"() : () -> tensor<4xi8>
  %1 = builtin.unrealized_conversion_cast %a : tensor<4xf32> to tensor<4xi8>
  %2 = bufferization.materialize_in_destination %0 in %1 : (tensor<4xi8>, tensor<4xi8>) -> tensor<4xi8>
  func.return %2 : tensor<4xi8>
}

// CHECK: tensor<4xi8> is written into argument 0, tensor<4xf32>.
