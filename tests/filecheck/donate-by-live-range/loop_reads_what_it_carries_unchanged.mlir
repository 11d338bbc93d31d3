// RUN: xdsl-opt %s -p donate-by-live-range --allow-unregistered-dialect | filecheck %s

// Every turn reads %a while the other value changes.

func.func @main(%a: tensor<4xf32> {tf.aliasing_output = 0 : i32}, %b: tensor<4xf32>) -> tensor<4xf32> {
  %l:2 = "stablehlo.while"(%a, %b) ({
  ^cond(%c0: tensor<4xf32>, %c1: tensor<4xf32>):
    %p = "test.op"(%c0) : (tensor<4xf32>) -> tensor<i1>
    "stablehlo.return"(%p) : (tensor<i1>) -> ()
  }, {
  ^body(%x: tensor<4xf32>, %y: tensor<4xf32>):
    %s = "stablehlo.add"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    "stablehlo.return"(%x, %s) : (tensor<4xf32>, tensor<4xf32>) -> ()
  }) : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  func.return %l#1 : tensor<4xf32>
}

// CHECK:       func.func @main(%a: tensor<4xf32> {jax.buffer_donor = true}
// CHECK-NOT:   bufferization
