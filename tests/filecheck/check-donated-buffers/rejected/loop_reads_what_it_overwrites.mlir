// RUN: xdsl-opt %s -p check-donated-buffers --verify-diagnostics --allow-unregistered-dialect | filecheck %s

// The carry is written over %a in each iteration, and the next one reads it.

func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %1 = "stablehlo.while"(%a) ({
  ^cond(%c: tensor<4xf32>):
    %p = "test.op"() : () -> tensor<i1>
    "stablehlo.return"(%p) : (tensor<i1>) -> ()
  }, {
  ^body(%x: tensor<4xf32>):
    %y = "stablehlo.add"(%x, %a) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    "stablehlo.return"(%y) : (tensor<4xf32>) -> ()
  }) : (tensor<4xf32>) -> tensor<4xf32>
  %2 = bufferization.materialize_in_destination %1 in %a : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %2 : tensor<4xf32>
}

// CHECK: 'stablehlo.add' reads argument 0, but result 0 of 'stablehlo.while' was written there before.
