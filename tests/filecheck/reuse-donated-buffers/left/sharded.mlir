// RUN: xdsl-opt %s -p reuse-donated-buffers --allow-unregistered-dialect 2>&1 | filecheck %s

"builtin.module"() ({
  "test.mesh"() {sym_name = "mesh", mesh = #sdy.mesh<["x"=2]>} : () -> ()
  "func.func"() <{sym_name = "main", function_type = (tensor<4x4xf32>) -> tensor<4x4xf32>,
      arg_attrs = [{jax.buffer_donor = true, sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}]}> ({
  ^bb0(%a: tensor<4x4xf32>):
    %r = "test.op"() : () -> tensor<4x4xf32>
    "func.return"(%r) : (tensor<4x4xf32>) -> ()
  }) : () -> ()
}) : () -> ()

// CHECK: argument 0 of @main is sharded, P('x', None) over (x: 2), and serves nothing else: what that takes on one device is not known
