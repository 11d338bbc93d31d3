// RUN: xdsl-opt %s -p jax-use-donated-arguments | filecheck %s

// The second materialization reads what the first one overwrites.

func.func @main(%a: tensor<2xf32> {tf.aliasing_output = 0 : i32}, %b: tensor<2xf32> {tf.aliasing_output = 1 : i32}) -> (tensor<2xf32>, tensor<2xf32>) {
  func.return %b, %a : tensor<2xf32>, tensor<2xf32>
}

// CHECK:       bufferization.materialize_in_destination %b in %a
// CHECK-NEXT:  bufferization.materialize_in_destination %a in %b
