// RUN: not pdojo-opt %s 2>&1 | filecheck %s
// What the notation refuses, MLIR does not let in.

// CHECK:      refused_dependent_iteration.mlir:10:5: error: dependent iteration is not supported: the statement reads 'z' where another iteration writes it (write of z[{0}+1] at iteration (0) and read of z[{0}] at iteration (1))
// CHECK-NEXT:   10 |     pdojo.op %z[%i + 1] = arith.mulf(%z[%i], %y[%i])
// CHECK:      hint: accumulate with += *= max= ..., or write the result to another array
pdojo.kernel @recurrence(in y %y: memref<8xf32>, out z %z: memref<8xf32>) {
  pdojo.op %z[0] = 1.000000e+00 : f32
  pdojo.scope %i = 7 {
    pdojo.op %z[%i + 1] = arith.mulf(%z[%i], %y[%i])
  }
}
