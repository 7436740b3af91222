// The pass fails for the first operation that no kernel can express, and says where it is.
// RUN: pdojo-opt %s -p convert-linalg-to-pdojo --split-input-file --verify-diagnostics | filecheck %s
// RUN: not pdojo-opt %s -p convert-linalg-to-pdojo --split-input-file

// CHECK: linalg_refused.mlir:13:5: error: function 'gather': 'tensor.extract' reads an element at a position that depends on data; kernels have no indirection
#one = affine_map<(d0) -> (d0)>
func.func @gather(%x : tensor<8xf32>, %i : tensor<4xi64>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %y = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
      ins(%i : tensor<4xi64>) outs(%e : tensor<4xf32>) {
  ^bb0(%k : i64, %o : f32):
    %p = arith.index_cast %k : i64 to index
    %v = tensor.extract %x[%p] : tensor<8xf32>
    linalg.yield %v : f32
  } -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// -----
// CHECK: linalg_refused.mlir:21:1: error: function 'dynamic': has the type tensor<?xf32>, whose sizes are not all known; kernels have static sizes
func.func @dynamic(%x : tensor<?xf32>) -> tensor<?xf32> {
  func.return %x : tensor<?xf32>
}

// -----
// CHECK: linalg_refused.mlir:27:1: error: function 'complex': has elements of type complex<f32>; kernels have f64, f32, f16, bf16, i64, i32, i16, i8, i1
func.func @complex(%x : tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>> {
  func.return %x : tensor<4xcomplex<f32>>
}

// -----
// CHECK: linalg_refused.mlir:33:1: error: function 'none': has the type tensor<0xf32> without elements; arrays of kernels have at least one
func.func @none(%x : tensor<0xf32>) -> tensor<0xf32> {
  func.return %x : tensor<0xf32>
}

// -----
// CHECK: linalg_refused.mlir:45:5: error: function 'unknown': 'math.cbrt' is no operation that kernels have
#one = affine_map<(d0) -> (d0)>
func.func @unknown(%x : tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %y = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
      ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%a : f32, %o : f32):
    %v = math.cbrt %a : f32
    linalg.yield %v : f32
  } -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// -----
// CHECK: linalg_refused.mlir:55:3: error: function 'unspecified': 'linalg.matmul' accumulates into output 0, whose elements are unspecified
func.func @unspecified(%x : tensor<4x4xf32>) -> tensor<4x4xf32> {
  %e = tensor.empty() : tensor<4x4xf32>
  %y = linalg.matmul ins(%x, %x : tensor<4x4xf32>, tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  func.return %y : tensor<4x4xf32>
}

// -----
// CHECK: linalg_refused.mlir:64:3: error: function 'overlap': 'linalg.generic' reads other elements of a memref that it writes
#one = affine_map<(d0) -> (d0)>
#back = affine_map<(d0) -> (3 - d0)>
func.func @overlap(%x : memref<4xf32>) {
  linalg.generic {indexing_maps = [#back, #one], iterator_types = ["parallel"]}
      ins(%x : memref<4xf32>) outs(%x : memref<4xf32>) {
  ^bb0(%a : f32, %o : f32):
    linalg.yield %a : f32
  }
  func.return
}

// -----
// CHECK: linalg_refused.mlir:79:5: error: function 'loaded': 'memref.load' reads a memref that the operation around it writes
#one = affine_map<(d0) -> (d0)>
func.func @loaded(%x : memref<4xf32>) {
  linalg.generic {indexing_maps = [#one], iterator_types = ["parallel"]} outs(%x : memref<4xf32>) {
  ^bb0(%o : f32):
    %i = linalg.index 0 : index
    %v = memref.load %x[%i] : memref<4xf32>
    linalg.yield %v : f32
  }
  func.return
}

// -----
// CHECK: linalg_refused.mlir:88:3: error: function 'resource': 'arith.constant' has numbers that are not in the text; kernels have no constant arrays: make it an argument
func.func @resource() -> tensor<4xf32> {
  %c = arith.constant dense_resource<weights> : tensor<4xf32>
  func.return %c : tensor<4xf32>
}

// -----
// CHECK: linalg_refused.mlir:94:1: error: function 'layout': has the type memref<4xf32, strided<[2]>>; arguments of kernels are row-major, in the default memory space
func.func @layout(%x : memref<4xf32, strided<[2]>>) {
  %c = arith.constant 0.0 : f32
  linalg.fill ins(%c : f32) outs(%x : memref<4xf32, strided<[2]>>)
  func.return
}

// -----
// CHECK: linalg_refused.mlir:103:3: error: function 'branch': 'scf.if' is no operation that kernels have
func.func @branch(%x : tensor<4xf32>, %c : i1) -> tensor<4xf32> {
  %y = scf.if %c -> (tensor<4xf32>) {
    scf.yield %x : tensor<4xf32>
  } else {
    scf.yield %x : tensor<4xf32>
  }
  func.return %y : tensor<4xf32>
}

// -----
// CHECK: linalg_refused.mlir:115:3: error: function 'calls': 'func.call' calls 'elsewhere', which is no function of this module with a body
func.func private @elsewhere(tensor<4xf32>) -> tensor<4xf32>
func.func @calls(%x : tensor<4xf32>) -> tensor<4xf32> {
  %y = func.call @elsewhere(%x) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// -----
// CHECK: linalg_refused.mlir:121:1: error: function 'itself': calls itself
func.func @itself(%x : tensor<4xf32>) -> tensor<4xf32> {
  %y = func.call @itself(%x) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// -----
// CHECK: linalg_refused.mlir:132:3: error: function 'store': 'memref.store' writes a single element; kernels are made from linalg operations
func.func @store(%x : memref<4xf32>) {
  %c = arith.constant 0.0 : f32
  %i = arith.constant 1 : index
  linalg.fill ins(%c : f32) outs(%x : memref<4xf32>)
  memref.store %c, %x[%i] : memref<4xf32>
  func.return
}

// -----
// CHECK: linalg_refused.mlir:141:1: error: function 'second': has the type tensor<?xf32>, whose sizes are not all known; kernels have static sizes
func.func @first(%x : tensor<4xf32>) -> tensor<4xf32> {
  func.return %x : tensor<4xf32>
}
func.func @second(%x : tensor<?xf32>) -> tensor<?xf32> {
  func.return %x : tensor<?xf32>
}
