// Named operations that are refused: the message names the map or the property.
// RUN: pdojo-opt %s -p convert-linalg-to-pdojo --split-input-file --verify-diagnostics | filecheck %s
// RUN: not pdojo-opt %s -p convert-linalg-to-pdojo --split-input-file

// CHECK: linalg_named_refused.mlir:10:3: error: indexing map 0, (d0, d1, d2) -> (d0, d1): operand 0 of 'linalg.matmul' has no dimension d1
#lhs = affine_map<(d0, d1, d2) -> (d0, d1)>
#rhs = affine_map<(d0, d1, d2) -> (d2, d1)>
#out = affine_map<(d0, d1, d2) -> (d0, d1)>
func.func @columns(%a : tensor<3x4xf32>, %b : tensor<5x4xf32>, %c : tensor<3x4xf32>) -> tensor<3x4xf32> {
  %y = linalg.matmul indexing_maps = [#lhs, #rhs, #out]
      ins(%a, %b : tensor<3x4xf32>, tensor<5x4xf32>) outs(%c : tensor<3x4xf32>) -> tensor<3x4xf32>
  func.return %y : tensor<3x4xf32>
}

// -----
// CHECK: linalg_named_refused.mlir:21:3: error: indexing map 0, (d0, d1, d2) -> ((d0 + d2)): an index is one iteration, and no two indices are the same
#lhs = affine_map<(d0, d1, d2) -> (d0 + d2)>
#rhs = affine_map<(d0, d1, d2) -> (d2, d1)>
#out = affine_map<(d0, d1, d2) -> (d0, d1)>
func.func @windows(%a : tensor<7xf32>, %b : tensor<5x4xf32>, %c : tensor<3x4xf32>) -> tensor<3x4xf32> {
  %y = linalg.matmul indexing_maps = [#lhs, #rhs, #out]
      ins(%a, %b : tensor<7xf32>, tensor<5x4xf32>) outs(%c : tensor<3x4xf32>) -> tensor<3x4xf32>
  func.return %y : tensor<3x4xf32>
}

// -----
// CHECK: linalg_named_refused.mlir:29:3: error: no iteration is summed: each indexes the output
func.func @outer(%a : tensor<3xf32>, %b : tensor<4xf32>, %c : tensor<3x4xf32>) -> tensor<3x4xf32> {
  %y = linalg.contract indexing_maps = [affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d1)>,
                                        affine_map<(d0, d1) -> (d0, d1)>]
      ins(%a, %b : tensor<3xf32>, tensor<4xf32>) outs(%c : tensor<3x4xf32>) -> tensor<3x4xf32>
  func.return %y : tensor<3x4xf32>
}

// -----
// CHECK: linalg_named_refused.mlir:38:3: error: 'linalg.matvec' has no 'cast'
func.func @cast(%a : tensor<3x5xi8>, %b : tensor<5xi8>, %c : tensor<3xi32>) -> tensor<3xi32> {
  %y = linalg.matvec {cast = #linalg.type_fn<cast_unsigned>}
      ins(%a, %b : tensor<3x5xi8>, tensor<5xi8>) outs(%c : tensor<3xi32>) -> tensor<3xi32>
  func.return %y : tensor<3xi32>
}
