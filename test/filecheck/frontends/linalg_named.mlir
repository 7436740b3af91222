// Named operations: maps and casts of the program, functions by kind, bodies of one function.
// RUN: pdojo-opt %s | filecheck %s --check-prefix=PRINTED
// RUN: pdojo-opt %s | pdojo-opt -p convert-linalg-to-pdojo | filecheck %s
// RUN: pdojo-opt %s -p convert-linalg-to-pdojo | filecheck %s

#lhs = affine_map<(d0, d1, d2) -> (d0, d2)>
#rhs = affine_map<(d0, d1, d2) -> (d1, d2)>
#row = affine_map<(d0, d1, d2) -> (d2)>
#out = affine_map<(d0, d1, d2) -> (d0, d1)>

// The second matrix is transposed.
// CHECK-LABEL: pdojo.kernel @transposed(
// CHECK:         pdojo.scope [[I:%.*]] = 3 {
// CHECK-NEXT:      pdojo.scope [[J:%.*]] = 4 {
// CHECK:             pdojo.scope [[K:%.*]] = 5 {
// CHECK-NEXT:          pdojo.op {{.*}} = arith.mulf(%a{{\[}}[[I]], [[K]]], %b{{\[}}[[J]], [[K]]])
// PRINTED:     linalg.matmul indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>] ins(
func.func @transposed(%a : tensor<3x5xf32>, %b : tensor<4x5xf32>, %c : tensor<3x4xf32>) -> tensor<3x4xf32> {
  %y = linalg.matmul indexing_maps = [#lhs, #rhs, #out]
      ins(%a, %b : tensor<3x5xf32>, tensor<4x5xf32>) outs(%c : tensor<3x4xf32>) -> tensor<3x4xf32>
  func.return %y : tensor<3x4xf32>
}

// One row stands for all; bytes are without signs.
// CHECK-LABEL: pdojo.kernel @bytes(
// CHECK:         pdojo.op {{.*}} = arith.extui(%a{{\[}}[[K:%.*]]])
// CHECK:         pdojo.op {{.*}} = arith.extui(%b
// PRINTED:     linalg.matmul indexing_maps = [{{.*}}] {cast = #linalg.type_fn<cast_unsigned>} ins(
func.func @bytes(%a : tensor<5xi8>, %b : tensor<4x5xi8>, %c : tensor<3x4xi32>) -> tensor<3x4xi32> {
  %y = linalg.matmul indexing_maps = [#row, #rhs, #out] {cast = #linalg.type_fn<cast_unsigned>}
      ins(%a, %b : tensor<5xi8>, tensor<4x5xi8>) outs(%c : tensor<3x4xi32>) -> tensor<3x4xi32>
  func.return %y : tensor<3x4xi32>
}

// CHECK-LABEL: pdojo.kernel @inner(
// CHECK:         pdojo.scope [[I:%.*]] = 3 {
// CHECK:           pdojo.scope [[K:%.*]] = 5 {
// CHECK-NEXT:        pdojo.op {{.*}} = arith.mulf(%a{{\[}}[[I]], [[K]]], %b{{\[}}[[I]], [[K]]])
// PRINTED:     linalg.contract indexing_maps = [
func.func @inner(%a : tensor<3x5xf32>, %b : tensor<3x5xf32>, %c : tensor<3xf32>) -> tensor<3xf32> {
  %y = linalg.contract indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>,
                                        affine_map<(d0, d1) -> (d0)>]
      ins(%a, %b : tensor<3x5xf32>, tensor<3x5xf32>) outs(%c : tensor<3xf32>) -> tensor<3xf32>
  func.return %y : tensor<3xf32>
}

// CHECK-LABEL: pdojo.kernel @zero_points(
// CHECK:         arith.subi({{%.*}}, %p{{\[\]}})
// CHECK:         arith.subi({{%.*}}, %q{{\[\]}})
// PRINTED:     linalg.quantized_matmul ins(
func.func @zero_points(%a : tensor<3x5xi8>, %b : tensor<5x4xi8>, %p : i32, %q : i32, %c : tensor<3x4xi32>) -> tensor<3x4xi32> {
  %y = linalg.quantized_matmul ins(%a, %b, %p, %q : tensor<3x5xi8>, tensor<5x4xi8>, i32, i32)
      outs(%c : tensor<3x4xi32>) -> tensor<3x4xi32>
  func.return %y : tensor<3x4xi32>
}

// CHECK-LABEL: pdojo.kernel @columns(
// CHECK:         pdojo.op %y{{\[}}[[I:%.*]], [[J:%.*]]] = arith.subf(%a{{\[}}[[I]], [[J]]], %b{{\[}}[[J]]])
// PRINTED:     linalg.elementwise kind = #linalg.elementwise_kind<sub> indexing_maps = [
func.func @columns(%a : tensor<3x4xf32>, %b : tensor<4xf32>) -> tensor<3x4xf32> {
  %e = tensor.empty() : tensor<3x4xf32>
  %y = linalg.elementwise kind=#linalg.elementwise_kind<sub>
      indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>]
      ins(%a, %b : tensor<3x4xf32>, tensor<4xf32>) outs(%e : tensor<3x4xf32>) -> tensor<3x4xf32>
  func.return %y : tensor<3x4xf32>
}

// CHECK-LABEL: pdojo.kernel @bodies(
// CHECK:         pdojo.op {{.*}} = arith.mulf(%a{{.*}}, %b{{.*}})
// CHECK:         pdojo.op %y{{.*}} max=
// PRINTED:     linalg.map ins(%a, %b : tensor<3x4xf32>, tensor<3x4xf32>) outs(
// PRINTED:     linalg.reduce ins({{.*}} : tensor<3x4xf32>) outs(%c : tensor<4xf32>) dimensions = [0]
func.func @bodies(%a : tensor<3x4xf32>, %b : tensor<3x4xf32>, %c : tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<3x4xf32>
  %m = linalg.map { arith.mulf } ins(%a, %b : tensor<3x4xf32>, tensor<3x4xf32>) outs(%e : tensor<3x4xf32>)
  %y = linalg.reduce { arith.maximumf } ins(%m : tensor<3x4xf32>) outs(%c : tensor<4xf32>) dimensions = [0]
  func.return %y : tensor<4xf32>
}
