// A function of tensors becomes a kernel: arguments, then results; one perfect nest for each linalg operation.
// RUN: pdojo-opt %s -p convert-linalg-to-pdojo | filecheck %s
// RUN: xdsl-opt %s -p convert-linalg-to-pdojo | filecheck %s
// RUN: pdojo-opt %s -p convert-linalg-to-pdojo,convert-pdojo-to-loops | filecheck %s --check-prefix=LOOPS

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// The function that is called becomes part of its callers; a copy along a new dimension is an index, not a nest.
func.func private @center(%x : tensor<4x8xf32>, %m : tensor<4xf32>) -> tensor<4x8xf32> {
  %e = tensor.empty() : tensor<4x8xf32>
  %b = linalg.broadcast ins(%m : tensor<4xf32>) outs(%e : tensor<4x8xf32>) dimensions = [1]
  %d = linalg.sub ins(%x, %b : tensor<4x8xf32>, tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  func.return %d : tensor<4x8xf32>
}

// CHECK-NOT:  @center
// CHECK:      pdojo.kernel @shifted(in x %x: memref<4x8xf32>, out y %y: memref<4x8xf32>) {
// CHECK-NEXT:   %m = pdojo.buffer m : f32[4] heap
// CHECK-NEXT:   %d = pdojo.buffer d : f32[4, 8] heap
// CHECK-NEXT:   %t = pdojo.buffer t : f32[4:N, 8:N] stack
// CHECK-NEXT:   pdojo.scope [[I:%.*]] = 4 {
// CHECK-NEXT:     pdojo.op %m{{\[}}[[I]]] = -inf : f32
// CHECK-NEXT:     pdojo.scope [[J:%.*]] = 8 {
// CHECK-NEXT:       pdojo.op %m{{\[}}[[I]]] max= %x{{\[}}[[I]], [[J]]]
// CHECK:        pdojo.scope [[I:%.*]] = 4 {
// CHECK-NEXT:     pdojo.scope [[J:%.*]] = 8 {
// CHECK-NEXT:       pdojo.op %d{{\[}}[[I]], [[J]]] = arith.subf(%x{{\[}}[[I]], [[J]]], %m{{\[}}[[I]]])
// CHECK:        pdojo.scope [[I:%.*]] = 4 {
// CHECK-NEXT:     pdojo.scope [[J:%.*]] = 8 {
// CHECK-NEXT:       pdojo.op %t{{\[}}[[I]], [[J]]] = math.exp(%d{{\[}}[[I]], [[J]]])
// CHECK-NEXT:       pdojo.op %y{{\[}}[[I]], [[J]]] = arith.addf(%t{{\[}}[[I]], [[J]]], index([[J]]) : f32)

// LOOPS:      func.func @shifted(%x: memref<4x8xf32>, %y: memref<4x8xf32>) {
// LOOPS-NOT:    linalg
// LOOPS:          scf.for
func.func @shifted(%x : tensor<4x8xf32>) -> tensor<4x8xf32> {
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<4xf32>
  %i = linalg.fill ins(%low : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %m = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x8xf32>) outs(%i : tensor<4xf32>) {
  ^bb0(%a : f32, %o : f32):
    %c = arith.maximumf %o, %a : f32
    linalg.yield %c : f32
  } -> tensor<4xf32>
  %d = func.call @center(%x, %m) : (tensor<4x8xf32>, tensor<4xf32>) -> tensor<4x8xf32>
  %f = tensor.empty() : tensor<4x8xf32>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%d : tensor<4x8xf32>) outs(%f : tensor<4x8xf32>) {
  ^bb0(%a : f32, %o : f32):
    %j = linalg.index 1 : index
    %k = arith.index_cast %j : index to i32
    %g = arith.sitofp %k : i32 to f32
    %p = math.exp %a : f32
    %s = arith.addf %p, %g : f32
    linalg.yield %s : f32
  } -> tensor<4x8xf32>
  func.return %r : tensor<4x8xf32>
}

// Other functions stay; their calls of a function of memrefs become calls of the kernel.
// CHECK:      pdojo.kernel @zero(out x %x: memref<8xf32>) {
func.func @zero(%x : memref<8xf32>) {
  %c = arith.constant 0.0 : f32
  linalg.fill ins(%c : f32) outs(%x : memref<8xf32>)
  func.return
}

// CHECK:      func.func @host(%x: memref<8xf32>) {
// CHECK-NEXT:   pdojo.call @zero(%x) : memref<8xf32>
// LOOPS:      func.func @host(%x: memref<8xf32>) {
// LOOPS-NEXT:   func.call @zero(%x) : (memref<8xf32>) -> ()
func.func @host(%x : memref<8xf32>) {
  func.call @zero(%x) : (memref<8xf32>) -> ()
  func.return
}
