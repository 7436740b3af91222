// RUN: pdojo-opt %s | filecheck %s
// RUN: pdojo-opt %s | pdojo-opt | filecheck %s
// RUN: pdojo-opt %s -t generic | pdojo-opt | filecheck %s
// Every operation of the dialect, with mappings, guards, shared and reused memory, hints and index values.

pdojo.kernel @k(in x %x: memref<8x16xf32>, in w %w: memref<8x16xf32>, out y %y: memref<8x16xf32>, out z %z: memref<8xi32>) attributes{numerics = [#pdojo<numerics reassociate>, #pdojo<numerics contract>]} {
  %p, %q = pdojo.buffer p, q : f32[8, 16] heap
  %r = pdojo.buffer r : f32[16:N] stack
  %d = pdojo.buffer d : f32[8:N2, 16] heap
  pdojo.scope %i0 = 8 : p {
    pdojo.scope %i1 = 16 : v {
      pdojo.op %p[%i0, %i1] = arith.addf(%x[%i0, %i1], 1.000000e+00 : f32)
    }
    pdojo.scope %i1_1 = 16 where (%i0 + %i1_1 <= 19) {
      pdojo.op %q[%i0, %i1_1] = math.fma(%x[%i0, %i1_1], %w[%i0, %i1_1], %p[%i0, %i1_1])
    }
    pdojo.scope %i1_2 = 4 : u {
      pdojo.scope %i2 = 4 {
        pdojo.op %y[%i0, %i1_2 * 4 + %i2] = %q[%i0, %i1_2 * 4 + %i2]{nontemporal}
      }
    }
    pdojo.op %z[%i0] = index(%i0) : i32
  }
  pdojo.scope %i0_1 = 8 {
    pdojo.scope %i1_3 = 16 {
      pdojo.op %d[%i0_1, %i1_3] = %x[%i0_1, %i1_3]
    }
    pdojo.scope %i1_4 = 16 {
      pdojo.op %y[%i0_1, %i1_4] fma= arith.mulf(%d[%i0_1, %i1_4], %w[%i0_1, %i1_4])
    }
  }
}

func.func @caller(%x: memref<8x16xf32>, %w: memref<8x16xf32>, %y: memref<8x16xf32>, %z: memref<8xi32>) {
  pdojo.call @k(%x, %w, %y, %z) : memref<8x16xf32>, memref<8x16xf32>, memref<8x16xf32>, memref<8xi32>
  func.return
}

// CHECK:        pdojo.kernel @k(in x %x: memref<8x16xf32>, in w %w: memref<8x16xf32>, out y %y: memref<8x16xf32>, out z %z: memref<8xi32>) attributes{numerics = [#pdojo<numerics reassociate>, #pdojo<numerics contract>]} {
// CHECK-NEXT:     %p, %q = pdojo.buffer p, q : f32[8, 16] heap
// CHECK-NEXT:     %r = pdojo.buffer r : f32[16:N] stack
// CHECK-NEXT:     %d = pdojo.buffer d : f32[8:N2, 16] heap
// CHECK-NEXT:     pdojo.scope %i0 = 8 : p {
// CHECK-NEXT:       pdojo.scope %i1 = 16 : v {
// CHECK-NEXT:         pdojo.op %p[%i0, %i1] = arith.addf(%x[%i0, %i1], 1.000000e+00 : f32)
// CHECK-NEXT:       }
// CHECK-NEXT:       pdojo.scope %i1_1 = 16 where (%i0 + %i1_1 <= 19) {
// CHECK-NEXT:         pdojo.op %q[%i0, %i1_1] = math.fma(%x[%i0, %i1_1], %w[%i0, %i1_1], %p[%i0, %i1_1])
// CHECK-NEXT:       }
// CHECK-NEXT:       pdojo.scope %i1_2 = 4 : u {
// CHECK-NEXT:         pdojo.scope %i2 = 4 {
// CHECK-NEXT:           pdojo.op %y[%i0, %i1_2 * 4 + %i2] = %q[%i0, %i1_2 * 4 + %i2]{nontemporal}
// CHECK-NEXT:         }
// CHECK-NEXT:       }
// CHECK-NEXT:       pdojo.op %z[%i0] = index(%i0) : i32
// CHECK-NEXT:     }
// CHECK-NEXT:     pdojo.scope %i0_1 = 8 {
// CHECK-NEXT:       pdojo.scope %i1_3 = 16 {
// CHECK-NEXT:         pdojo.op %d[%i0_1, %i1_3] = %x[%i0_1, %i1_3]
// CHECK-NEXT:       }
// CHECK-NEXT:       pdojo.scope %i1_4 = 16 {
// CHECK-NEXT:         pdojo.op %y[%i0_1, %i1_4] fma= arith.mulf(%d[%i0_1, %i1_4], %w[%i0_1, %i1_4])
// CHECK-NEXT:       }
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK:        pdojo.call @k(%x, %w, %y, %z)
