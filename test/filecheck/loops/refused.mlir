// RUN: pdojo-opt %s -p convert-pdojo-to-loops --split-input-file --verify-diagnostics | filecheck %s

// CHECK: error: kernel 'grid': a scope of extent 4 has mapping 'g', which has no loop form (loops know seq, u, p, v, f, s, m); apply unmap to it first
pdojo.kernel @grid(in x %x : memref<4xf32>, out y %y : memref<4xf32>) {
  pdojo.scope %i = 4 : g {
    pdojo.op %y[%i] = %x[%i]
  }
}

// -----
// CHECK: error: kernel 'block': a scope of extent 4 has mapping 'g', which has no loop form (loops know seq, u, p, v, f, s, m); apply unmap to it first
pdojo.kernel @block(in x %x : memref<4x2xf32>, out y %y : memref<4x2xf32>) {
  pdojo.scope %i = 4 : g {
    pdojo.scope %j = 2 : b {
      pdojo.op %y[%i, %j] = %x[%i, %j]
    }
  }
}

// -----
// CHECK: error: kernel 'shared': buffer 't' lives in shared memory, which only graphics processors have; apply set_location to it first
pdojo.kernel @shared(in x %x : memref<4xf32>, out y %y : memref<4xf32>) {
  %t = pdojo.buffer t : f32[4] shared
  pdojo.scope %i = 4 {
    pdojo.op %t[%i] = %x[%i]
    pdojo.op %y[%i] = %t[%i]
  }
}

// -----
// CHECK: error: 'arith.remf' has no operation in xDSL's arith and math dialects, so no loop form
pdojo.kernel @remainder(in x %x : memref<4xf32>, out y %y : memref<4xf32>) {
  pdojo.scope %i = 4 {
    pdojo.op %y[%i] = arith.remf(%x[%i], 2.0 : f32)
  }
}
