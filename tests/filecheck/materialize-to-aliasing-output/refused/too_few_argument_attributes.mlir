// RUN: xdsl-opt %s -p materialize-to-aliasing-output --verify-diagnostics | filecheck %s

"builtin.module"() ({
  "func.func"() <{sym_name = "main", function_type = (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>, arg_attrs = [{jax.buffer_donor = true}]}> ({
  ^bb0(%a: tensor<4xf32>, %b: tensor<4xf32>):
    %0 = "test.op"(%a, %b) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %1 = "bufferization.materialize_in_destination"(%0, %b) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    "func.return"(%1) : (tensor<4xf32>) -> ()
  }) : () -> ()
}) : () -> ()

// CHECK: materialize-to-aliasing-output: in function @main: arg_attrs has 1 entries for 2 arguments
