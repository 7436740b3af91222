// A host function that adds the softmax of its input to the input; the softmax is a pdojo kernel.

pdojo.kernel @softmax(in x %x : memref<4x8xf32>, out y %y : memref<4x8xf32>) {
  %m = pdojo.buffer m : f32[4] heap
  %e = pdojo.buffer e : f32[4, 8] heap
  %s = pdojo.buffer s : f32[4] heap
  pdojo.scope %i = 4 {
    pdojo.op %m[%i] = -inf : f32
    pdojo.scope %j = 8 {
      pdojo.op %m[%i] max= %x[%i, %j]
    }
  }
  pdojo.scope %i = 4 {
    pdojo.op %s[%i] = 0.0 : f32
    pdojo.scope %j = 8 {
      pdojo.op %e[%i, %j] = arith.subf(%x[%i, %j], %m[%i])
      pdojo.op %e[%i, %j] = math.exp(%e[%i, %j])
      pdojo.op %s[%i] += %e[%i, %j]
    }
    pdojo.scope %j = 8 {
      pdojo.op %y[%i, %j] = arith.divf(%e[%i, %j], %s[%i])
    }
  }
}

func.func @layer(%x : memref<4x8xf32>, %y : memref<4x8xf32>) {
  %p = memref.alloc() : memref<4x8xf32>
  pdojo.call @softmax(%x, %p) : memref<4x8xf32>, memref<4x8xf32>
  linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]
  } ins(%x, %p : memref<4x8xf32>, memref<4x8xf32>) outs(%y : memref<4x8xf32>) {
  ^bb0(%a : f32, %b : f32, %c : f32):
    %sum = arith.addf %a, %b : f32
    linalg.yield %sum : f32
  }
  memref.dealloc %p : memref<4x8xf32>
  func.return
}
