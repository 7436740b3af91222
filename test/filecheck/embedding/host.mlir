// A kernel inside a host module, through stock xdsl-opt: moves as passes, then xDSL's own passes.
// RUN: xdsl-opt %S/../../../examples/embedding/host.mlir -p 'pdojo-join-scopes{at="m:0"},pdojo-parallelize{at="m:0"},convert-pdojo-to-loops,convert-linalg-to-loops,canonicalize,cse' | filecheck %s
// RUN: xdsl-opt %S/../../../examples/embedding/host.mlir -p 'convert-pdojo-to-loops{sequential=true},convert-linalg-to-loops,canonicalize,cse,convert-scf-to-cf' | filecheck %s --check-prefix=BRANCHES
// RUN: pdojo-opt %S/../../../examples/embedding/host.mlir --apply=join_scopes@m:0 -p convert-pdojo-to-loops | filecheck %s --check-prefix=MOVED

// CHECK:         func.func @softmax(%x: memref<4x8xf32>, %y: memref<4x8xf32>) {
// CHECK:           "scf.parallel"
// CHECK:             arith.maximumf
// CHECK:             math.exp
// CHECK:         func.func @layer(%x: memref<4x8xf32>, %y: memref<4x8xf32>) {
// CHECK:           func.call @softmax(%x, %p) : (memref<4x8xf32>, memref<4x8xf32>) -> ()
// CHECK-NOT:       linalg
// CHECK-NOT:     pdojo

// BRANCHES-NOT:  scf.
// BRANCHES:      func.func @softmax
// BRANCHES:        cf.cond_br
// BRANCHES:      func.func @layer
// BRANCHES:        func.call @softmax

// MOVED:         func.func @softmax
// MOVED:           scf.for
// MOVED-NOT:     pdojo.
