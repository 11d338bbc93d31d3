// RUN: xdsl-opt %s -p check-donated-buffers --allow-unregistered-dialect | filecheck %s

// CHECK-LABEL: @one_after_the_other
func.func @one_after_the_other(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.sine"(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = bufferization.materialize_in_destination %0 in %a : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = "stablehlo.dot_general"(%1) : (tensor<4xf32>) -> tensor<i8>
  %3 = "stablehlo.dot_general"(%2) : (tensor<i8>) -> tensor<4xf32>
  %4 = bufferization.materialize_in_destination %3 in %a : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  // CHECK: func.return %4
  func.return %4 : tensor<4xf32>
}

// CHECK-LABEL: @never_read_again
func.func @never_read_again(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0, %1 = "test.op"() : () -> (tensor<4xf32>, tensor<4xf32>)
  %2 = bufferization.materialize_in_destination %0 in %a : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  "test.op"(%2) : (tensor<4xf32>) -> ()
  %3 = bufferization.materialize_in_destination %1 in %a : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  // CHECK: func.return %3
  func.return %3 : tensor<4xf32>
}

// CHECK-LABEL: @copied_there_later
func.func @copied_there_later(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.dot_general"(%a) : (tensor<4xf32>) -> tensor<4xf32>
  "test.op"(%a, %0) : (tensor<4xf32>, tensor<4xf32>) -> ()
  %1 = bufferization.materialize_in_destination %0 in %a : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  // CHECK: func.return %1
  func.return %1 : tensor<4xf32>
}

// CHECK-LABEL: @itself
func.func @itself(%a: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = bufferization.materialize_in_destination %a in %a : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  // CHECK: func.return %0, %a
  func.return %0, %a : tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: @another_type
func.func @another_type(%a: tensor<4xf32>) -> tensor<2x2xi32> {
  %0 = "stablehlo.dot_general"(%a) : (tensor<4xf32>) -> tensor<2x2xi32>
  "test.op"(%a) : (tensor<4xf32>) -> ()
  %1 = builtin.unrealized_conversion_cast %a : tensor<4xf32> to tensor<2x2xi32>
  %2 = bufferization.materialize_in_destination %0 in %1 : (tensor<2x2xi32>, tensor<2x2xi32>) -> tensor<2x2xi32>
  // CHECK: func.return %2
  func.return %2 : tensor<2x2xi32>
}

// CHECK-LABEL: @nothing_materialized_in_several_blocks
func.func @nothing_materialized_in_several_blocks(%a: tensor<4xf32> {tf.aliasing_output = 0 : i32}) -> tensor<4xf32> {
  "test.termop"()[^next] : () -> ()
^next:
  // CHECK: func.return %a
  func.return %a : tensor<4xf32>
}

// CHECK-LABEL: @branches_that_give_other_values
func.func @branches_that_give_other_values(%a: tensor<4xf32>, %b: tensor<4xf32>, %c: i1) -> tensor<4xf32> {
  %r, %n = scf.if %c -> (tensor<4xf32>, index) {
    %s, %m = "stablehlo.dot_general"(%a) : (tensor<4xf32>) -> (tensor<4xf32>, index)
    scf.yield %s, %m : tensor<4xf32>, index
  } else {
    %m = "test.op"(%a) : (tensor<4xf32>) -> index
    scf.yield %b, %m : tensor<4xf32>, index
  }
  %0 = "test.op"() : () -> tensor<4xf32>
  %1 = bufferization.materialize_in_destination %0 in %a : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  "test.op"(%r, %n) : (tensor<4xf32>, index) -> ()
  // CHECK: func.return %1
  func.return %1 : tensor<4xf32>
}

// CHECK-LABEL: @chosen_element_by_element
func.func @chosen_element_by_element(%a: tensor<4xf32>, %b: tensor<4xf32>, %c: tensor<4xi1>) -> tensor<4xf32> {
  %r = "stablehlo.select"(%c, %a, %b) : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %0 = "test.op"() : () -> tensor<4xf32>
  %1 = bufferization.materialize_in_destination %0 in %a : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  "test.op"(%r) : (tensor<4xf32>) -> ()
  // CHECK: func.return %1
  func.return %1 : tensor<4xf32>
}
