// RUN: pdojo-opt %s -p convert-pdojo-to-gpu | filecheck %s
// RUN: xdsl-opt %s -p convert-pdojo-to-gpu,canonicalize,cse | filecheck %s

// A kernel becomes a function of its name, a call becomes a call of the function.
// CHECK:       func.func @scale(%x: memref<8xf32>, %y: memref<8xf32>) {
// CHECK:         "gpu.launch"
// CHECK:       func.func @twice
// CHECK:         func.call @scale(%x, %t) : (memref<8xf32>, memref<8xf32>) -> ()
// CHECK-NEXT:    func.call @scale(%t, %y) : (memref<8xf32>, memref<8xf32>) -> ()
// CHECK-NOT:   pdojo
pdojo.kernel @scale(in x %x : memref<8xf32>, out y %y : memref<8xf32>) {
  pdojo.scope %i = 2 : g {
    pdojo.scope %j = 4 : b {
      pdojo.op %y[%i * 4 + %j] = arith.mulf(%x[%i * 4 + %j], 2.0 : f32)
    }
  }
}

func.func @twice(%x : memref<8xf32>, %y : memref<8xf32>) {
  %t = "gpu.alloc"() <{operandSegmentSizes = array<i32: 0, 0, 0>}> : () -> memref<8xf32>
  pdojo.call @scale(%x, %t) : memref<8xf32>, memref<8xf32>
  pdojo.call @scale(%t, %y) : memref<8xf32>, memref<8xf32>
  "gpu.dealloc"(%t) {operandSegmentSizes = array<i32: 0, 1>} : (memref<8xf32>) -> ()
  func.return
}
