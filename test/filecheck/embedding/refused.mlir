// RUN: pdojo-opt %s --split-input-file --verify-diagnostics | filecheck %s

// CHECK: refused.mlir:6:3: error: 'missing' is no pdojo.kernel of this module
// CHECK-NEXT: 6 |   pdojo.call @missing(%x) : memref<4xf32>
func.func @host(%x : memref<4xf32>) {
  pdojo.call @missing(%x) : memref<4xf32>
  func.return
}
