// RUN: pdojo-opt %s -p convert-pdojo-to-loops | filecheck %s

// A guard is a comparison around the body. Quotients round down: (i - 5) floordiv 4 is (i + 3) floordiv 4 - 2.
pdojo.kernel @shift(in x %x : memref<20xf32>, out y %y : memref<20xf32>) {
  pdojo.scope %i = 2 {
    pdojo.scope %j = 16 where (%i * 16 + %j < 20, %j >= 0) {
      pdojo.op %y[%i * 16 + %j] = %x[(%i * 16 + %j + 3) mod 20]
    }
  }
  pdojo.scope %i = 20 {
    pdojo.op %y[%i] += arith.mulf(index((%i - 5) floordiv 4) : f32, index((%i - 5) mod 4) : f32)
  }
}

// CHECK:       func.func @shift
// CHECK:         scf.for [[I:%.*]] = {{.*}} {
// CHECK-NEXT:      scf.for [[J:%.*]] = {{.*}} {
// CHECK-NEXT:        [[A:%.*]] = arith.muli [[I]], {{%.*}} : index
// CHECK-NEXT:        [[B:%.*]] = arith.addi [[A]], [[J]] : index
// CHECK-NEXT:        [[G:%.*]] = arith.cmpi sle, [[B]], {{%.*}} : index
// CHECK-NEXT:        [[H:%.*]] = arith.cmpi sge, [[J]], {{%.*}} : index
// CHECK-NEXT:        [[GH:%.*]] = arith.andi [[G]], [[H]] : i1
// CHECK-NEXT:        scf.if [[GH]] {
// CHECK:               arith.remsi
// CHECK:           scf.for [[K:%.*]] = {{.*}} {
// CHECK-NEXT:        [[N:%.*]] = arith.addi [[K]], {{%.*}} : index
// CHECK-NEXT:        [[Q:%.*]] = arith.divsi [[N]], {{%.*}} : index
// CHECK-NEXT:        [[R:%.*]] = arith.addi [[Q]], {{%.*}} : index
// CHECK-NEXT:        [[S:%.*]] = arith.index_cast [[R]] : index to i64
// CHECK-NEXT:        arith.sitofp [[S]] : i64 to f32
