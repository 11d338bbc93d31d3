// RUN: xdsl-opt %s -p donate-by-live-range --allow-unregistered-dialect | filecheck %s

// What a loop carries lives where it started.

func.func @main(%a: tensor<4xf32> {tf.aliasing_output = 0 : i32}, %b: tensor<4xf32> {tf.aliasing_output = 1 : i32}) -> (tensor<4xf32>, tensor<4xf32>) {
  %l:2 = "stablehlo.while"(%b, %a) ({
  ^cond(%c0: tensor<4xf32>, %c1: tensor<4xf32>):
    %p = "test.op"(%c0) : (tensor<4xf32>) -> tensor<i1>
    "stablehlo.return"(%p) : (tensor<i1>) -> ()
  }, {
  ^body(%x: tensor<4xf32>, %y: tensor<4xf32>):
    %s:2 = "test.op"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    "stablehlo.return"(%s#0, %s#1) : (tensor<4xf32>, tensor<4xf32>) -> ()
  }) : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  func.return %l#0, %l#1 : tensor<4xf32>, tensor<4xf32>
}

// CHECK:       bufferization.materialize_in_destination %l in %b
// CHECK-NEXT:  bufferization.materialize_in_destination %l_1 in %a
