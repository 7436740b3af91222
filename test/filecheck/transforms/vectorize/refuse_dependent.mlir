// RUN: pdojo-opt %s --machine toy --apply=vectorize@y:0 --verify-diagnostics | filecheck %s

// The notation excludes dependent iterations; the dialect can express them.
pdojo.kernel @recurrence(inout y %y: memref<8xf32>) {
  pdojo.scope %i = 4 {
    pdojo.op %y[%i + 1] = %y[%i]
  }
}

// CHECK:      error: vectorize@y:0 is refused: a lane reads what an earlier lane writes
// CHECK-NEXT:   witness: write of y[{0}+1] at iteration (0) and read of y[{0}] at iteration (1)
