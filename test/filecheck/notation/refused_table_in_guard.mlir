// RUN: not pdojo-opt %s 2>&1 | filecheck %s

// CHECK: error: a guard may not read a table (here 'idx')
pdojo.kernel @guard(in x %x: memref<8xf32>, out y %y: memref<3xf32>) attributes {tables = {idx = array<i64: 7, 0, 7>}} {
  pdojo.scope %i = 3 where (idx[%i] < 4) {
    pdojo.op %y[%i] = %x[%i]
  }
}
