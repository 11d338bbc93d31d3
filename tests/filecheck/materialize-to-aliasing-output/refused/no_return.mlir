// RUN: xdsl-opt %s -p materialize-to-aliasing-output --verify-diagnostics | filecheck %s

func.func @main(%a: tensor<2xf32>) {
  %r = "test.op"() : () -> tensor<2xf32>
  %m = bufferization.materialize_in_destination %r in %a : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  "test.termop"(%m) : (tensor<2xf32>) -> ()
}

// CHECK: function @main does not end in func.return
