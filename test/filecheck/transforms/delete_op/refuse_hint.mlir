// RUN: pdojo-opt %s --machine toy --apply=delete_op@t --verify-diagnostics | filecheck %s

// CHECK: error: delete_op@t is refused: the op could not be restored: hint 'weight' has value 1.000000e+00 : f32; the notation writes flags, i64, i1 and strings

pdojo.kernel @k(in x %x : memref<8xf32>, out y %y : memref<8xf32>) {
  %t = pdojo.buffer t : f32[8] heap
  pdojo.scope %i = 8 {
    pdojo.op %t[%i] = %x[%i]{weight = 1.0 : f32}
  }
  pdojo.scope %i = 8 {
    pdojo.op %y[%i] = %x[%i]
  }
}
