// RUN: xdsl-opt %s -p donate-by-live-range --allow-unregistered-dialect | filecheck %s

// One type, but %a takes 64 bytes a device and %r 32, and of %s nothing is known.

"builtin.module"() ({
  "test.mesh"() {sym_name = "mesh", mesh = #sdy.mesh<["x"=2]>} : () -> ()
  "func.func"() <{sym_name = "main", function_type = (tensor<4x4xf32>, tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>),
      arg_attrs = [{jax.buffer_donor = true, sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>},
                   {jax.buffer_donor = true, sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}],
      res_attrs = [{sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, {}]}> ({
  ^bb0(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>):
    %r, %s = "test.op"() : () -> (tensor<4x4xf32>, tensor<4x4xf32>)
    "func.return"(%r, %s) : (tensor<4x4xf32>, tensor<4x4xf32>) -> ()
  }) : () -> ()
}) : () -> ()

// CHECK:       func.func @main(%a: tensor<4x4xf32> {{{.*}}jax.buffer_donor = true}, %b: tensor<4x4xf32> {sdy.sharding = {{[^,]*, [^,]*, [^,]*}}})
// CHECK:         [[M:%\d+]] = bufferization.materialize_in_destination %r in %b
// CHECK-NEXT:    func.return [[M]], %s
