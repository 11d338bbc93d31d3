// RUN: xdsl-opt %s -p "jax-use-donated-arguments{remove_matched_outputs=true}" --print-op-generic | filecheck %s

// One result is left, and two attribute dictionaries: MLIR refuses the function.

"builtin.module"() ({
  "func.func"() <{arg_attrs = [{tf.aliasing_output = 0 : i32}], function_type = (tensor<2xf32>) -> (tensor<2xf32>, tensor<i8>), res_attrs = [{jax.result_info = "[0]"}, {jax.result_info = "[1]"}], sym_name = "main"}> ({
  ^bb0(%a: tensor<2xf32>):
    %r, %s = "test.op"(%a) : (tensor<2xf32>) -> (tensor<2xf32>, tensor<i8>)
    "func.return"(%r, %s) : (tensor<2xf32>, tensor<i8>) -> ()
  }) : () -> ()
}) : () -> ()

// CHECK: function_type = (tensor<2xf32>) -> tensor<i8>, {{.*}}res_attrs = [{jax.result_info = "[0]"}, {jax.result_info = "[1]"}]
