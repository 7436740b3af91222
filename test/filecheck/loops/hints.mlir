// RUN: pdojo-opt %s -p convert-pdojo-to-loops | filecheck %s

// Two arrays of one buffer are one memory; a non-temporal store stays one.
pdojo.kernel @copy(in x %x : memref<4xi32>, out y %y : memref<4xi32>) {
  %a, %b = pdojo.buffer a, b : i32[4] heap
  pdojo.scope %i = 4 {
    pdojo.op %a[%i] = arith.addi(%x[%i], -7 : i32)
    pdojo.op %b[%i] = arith.maxui(%a[%i], index(%i) : i32)
    pdojo.op %y[%i]{nontemporal} = %b[%i]
  }
}

// CHECK:       [[MINUS:%.*]] = arith.constant -7 : i32
// CHECK:       %a = memref.alloc() : memref<4xi32>
// CHECK-NOT:   memref.alloc
// CHECK:         arith.addi {{%.*}}, [[MINUS]] : i32
// CHECK-NEXT:    memref.store {{%.*}}, %a
// CHECK-NEXT:    [[A:%.*]] = memref.load %a
// CHECK-NEXT:    [[I:%.*]] = arith.index_cast {{%.*}} : index to i32
// CHECK-NEXT:    [[M:%.*]] = arith.maxui [[A]], [[I]] : i32
// CHECK-NEXT:    memref.store [[M]], %a
// CHECK:         memref.store {{%.*}}, %y[{{%.*}}] {nontemporal = true}
