// The same program goes through every form of input and output.
// RUN: pdojo-opt %S/Inputs/softmax.pdojo > %t.mlir
// RUN: filecheck %s < %t.mlir
// RUN: pdojo-opt %t.mlir -t generic | filecheck %s --check-prefix=GENERIC
// RUN: pdojo-opt %t.mlir -t generic | pdojo-opt - | filecheck %s
// RUN: pdojo-opt %t.mlir -t notation | diff - %S/Inputs/softmax.pdojo
// RUN: pdojo-opt --input-format=notation < %S/Inputs/softmax.pdojo | diff - %t.mlir
// RUN: pdojo-opt %t.mlir -o %t.out
// RUN: diff %t.mlir %t.out
// RUN: pdojo-opt %t.mlir -t llvm | filecheck %s --check-prefix=LLVM
// RUN: pdojo-opt %t.mlir -t asm | filecheck %s --check-prefix=ASM
// RUN: xdsl-opt %t.mlir -t notation | diff - %S/Inputs/softmax.pdojo

// CHECK:       pdojo.kernel @softmax(in x %x: memref<24x512xf32>, out y %y: memref<24x512xf32>) {
// CHECK:         pdojo.scope %i0 = 24 {
// CHECK-NEXT:      pdojo.op %m[%i0] = -inf : f32

// GENERIC:     "pdojo.kernel"() <{
// GENERIC:       "pdojo.buffer"()

// LLVM:        define {{.*}}softmax
// ASM:         softmax:
