// RUN: xdsl-opt %s -p check-donated-buffers --allow-unregistered-dialect | filecheck %s

// CHECK-LABEL: @one_after_the_other
func.func @one_after_the_other(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.sine"(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = bufferization.materialize_in_destination %0 in %a : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = "test.op"(%1) : (tensor<4xf32>) -> tensor<i8>
  %3 = "test.op"(%2) : (tensor<i8>) -> tensor<4xf32>
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
  %0 = "test.op"(%a) : (tensor<4xf32>) -> tensor<4xf32>
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
  %0 = "test.op"(%a) : (tensor<4xf32>) -> tensor<2x2xi32>
  "test.op"(%a) : (tensor<4xf32>) -> ()
  %1 = builtin.unrealized_conversion_cast %a : tensor<4xf32> to tensor<2x2xi32>
  %2 = bufferization.materialize_in_destination %0 in %1 : (tensor<2x2xi32>, tensor<2x2xi32>) -> tensor<2x2xi32>
  // CHECK: func.return %2
  func.return %2 : tensor<2x2xi32>
}
