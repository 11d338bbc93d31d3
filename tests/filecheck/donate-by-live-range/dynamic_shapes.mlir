// RUN: xdsl-opt %s -p donate-by-live-range | filecheck %s

// The pair that stands there is known to fit at run time; no other is.

func.func @main(%a: tensor<?xf32> {tf.aliasing_output = 1 : i32}, %b: tensor<?xf32> {jax.buffer_donor = true}) -> (tensor<?xf32>, tensor<?xf32>) {
  %r, %s = "test.op"() : () -> (tensor<?xf32>, tensor<?xf32>)
  func.return %r, %s : tensor<?xf32>, tensor<?xf32>
}

// CHECK:       func.func @main(%a: tensor<?xf32>, %b: tensor<?xf32> {jax.buffer_donor = true})
// CHECK:         [[M:%\d+]] = bufferization.materialize_in_destination %s in %a
// CHECK-NEXT:    func.return %r, [[M]]
