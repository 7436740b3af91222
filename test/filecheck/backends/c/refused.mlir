// RUN: not pdojo-opt %s -t c 2>&1 | filecheck %s

pdojo.kernel @copy(in x %x: memref<4xf32>, out y %y: memref<4xf32>) {
  pdojo.scope %i = 4 {
    pdojo.op %y[%i] = %x[%i]
  }
}

func.func @main(%x : memref<4xf32>, %y : memref<4xf32>) {
  pdojo.call @copy(%x, %y) : memref<4xf32>, memref<4xf32>
  func.return
}

// CHECK: error: 'copy' is called from host IR, which the target pdojo-c does not print; use convert-pdojo-to-loops
