"""`convert-linalg-to-pdojo`: the kernels of functions of linalg compute what NumPy computes."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.parser import Parser
from xdsl.universe import Universe

import pdojo
from pdojo.dialect.notation import print_notation
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.semantics.interpreter import interpret
from pdojo.dialect.syntax import names_of
from pdojo.dialect.view.build import nest_of
from pdojo.errors import ConversionError, InvalidKernel, NotationError
from pdojo.frontends.linalg.convert import ConvertLinalgToPdojoPass

MAPS = """
#id = affine_map<(d0, d1) -> (d0, d1)>
#swap = affine_map<(d0, d1) -> (d1, d0)>
#row = affine_map<(d0, d1) -> (d0)>
#column = affine_map<(d0, d1) -> (d1)>
#none = affine_map<(d0, d1) -> ()>
#first = affine_map<(d0, d1) -> (d0, 0)>
#sum = affine_map<(d0, d1) -> (d0 + d1)>
#strided = affine_map<(d0, d1) -> (d0 * 2 + d1)>
#one = affine_map<(d0) -> (d0)>
#back = affine_map<(d0) -> (7 - d0)>
"""
PARALLEL = 'iterator_types = ["parallel", "parallel"]'
REDUCTION = 'iterator_types = ["parallel", "reduction"]'


Meaning: TypeAlias = (
    Callable[[], Any] | Callable[[Any], Any] | Callable[[Any, Any], Any] | Callable[[Any, Any, Any], Any]
)


@dataclass(frozen=True)
class Case:
    """A function and its meaning."""

    text: str
    meaning: Meaning
    shapes: Sequence[tuple[int, ...]]
    dtype: str = "float32"
    """The element type of the arguments."""

    def arguments(self) -> list[NDArray[Any]]:
        rng = np.random.default_rng(7)
        if self.dtype == "bool":
            return [rng.integers(0, 2, shape).astype(bool) for shape in self.shapes]
        if np.dtype(self.dtype).kind == "i":
            return [rng.integers(-100, 100, shape).astype(self.dtype) for shape in self.shapes]
        return [rng.normal(size=shape).astype(self.dtype) for shape in self.shapes]


def results(kernel: KernelOp, *arguments: NDArray[Any]) -> list[NDArray[Any]]:
    """The arrays that a kernel writes, by the interpreter."""
    names = names_of(kernel.arg_names)
    read = {name for name, intent in zip(names, kernel.arg_intents.data, strict=True) if intent.data.value != "out"}
    found = interpret(kernel, {n: a for n, a in zip(names, arguments, strict=False) if n in read})
    return [found[name] for name in names if name in found]


ELEMENTWISE = f"""
func.func @f(%x: tensor<4x8xf32>, %b: tensor<8xf32>) -> tensor<4x8xf32> {{
  %half = arith.constant 5.0e-01 : f32
  %e = tensor.empty() : tensor<4x8xf32>
  %y = linalg.generic {{indexing_maps = [#id, #column, #id], {PARALLEL}}}
      ins(%x, %b : tensor<4x8xf32>, tensor<8xf32>) outs(%e : tensor<4x8xf32>) {{
  ^bb0(%a: f32, %c: f32, %o: f32):
    %s = arith.addf %a, %c : f32
    %t = math.exp %s : f32
    %u = arith.mulf %t, %half : f32
    %v = arith.addf %u, %s : f32
    linalg.yield %v : f32
  }} -> tensor<4x8xf32>
  func.return %y : tensor<4x8xf32>
}}
"""
INITIAL = f"""
func.func @f(%x: tensor<4x8xf32>, %i: tensor<4xf32>) -> tensor<4xf32> {{
  %y = linalg.generic {{indexing_maps = [#id, #row], {REDUCTION}}}
      ins(%x : tensor<4x8xf32>) outs(%i : tensor<4xf32>) {{
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %o, %a : f32
    linalg.yield %s : f32
  }} -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}}
"""
ARGMAX = f"""
func.func @f(%x: tensor<4x8xf32>) -> (tensor<4xf32>, tensor<4xi32>) {{
  %low = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0 : i32
  %e = tensor.empty() : tensor<4xf32>
  %k = tensor.empty() : tensor<4xi32>
  %e0 = linalg.fill ins(%low : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %k0 = linalg.fill ins(%zero : i32) outs(%k : tensor<4xi32>) -> tensor<4xi32>
  %y, %i = linalg.generic {{indexing_maps = [#id, #row, #row], {REDUCTION}}}
      ins(%x : tensor<4x8xf32>) outs(%e0, %k0 : tensor<4xf32>, tensor<4xi32>) {{
  ^bb0(%a: f32, %m: f32, %n: i32):
    %j = linalg.index 1 : index
    %p = arith.index_cast %j : index to i32
    %c = arith.cmpf ogt, %a, %m : f32
    %s = arith.select %c, %a, %m : f32
    %t = arith.select %c, %p, %n : i32
    linalg.yield %s, %t : f32, i32
  }} -> tensor<4xf32>, tensor<4xi32>
  func.return %y, %i : tensor<4xf32>, tensor<4xi32>
}}
"""
SWAPPED = f"""
func.func @f(%x: tensor<3x4xf32>, %i: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>) {{
  %y, %z = linalg.generic {{indexing_maps = [#id, #row, #row], {REDUCTION}}}
      ins(%x : tensor<3x4xf32>) outs(%i, %i : tensor<3xf32>, tensor<3xf32>) {{
  ^bb0(%a: f32, %m: f32, %n: f32):
    %s = arith.addf %n, %a : f32
    %t = arith.mulf %m, %a : f32
    linalg.yield %s, %t : f32, f32
  }} -> tensor<3xf32>, tensor<3xf32>
  func.return %y, %z : tensor<3xf32>, tensor<3xf32>
}}
"""
SCATTERED = f"""
func.func @f(%x: tensor<4x3xf32>, %i: tensor<6xf32>) -> tensor<6xf32> {{
  %y = linalg.generic {{indexing_maps = [#id, #sum], {PARALLEL}}}
      ins(%x : tensor<4x3xf32>) outs(%i : tensor<6xf32>) {{
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %o, %a : f32
    linalg.yield %s : f32
  }} -> tensor<6xf32>
  func.return %y : tensor<6xf32>
}}
"""
WINDOW = f"""
func.func @f(%x: tensor<9xf32>) -> tensor<4xf32> {{
  %zero = arith.constant 0.0 : f32
  %w = tensor.empty() : tensor<3xf32>
  %e = tensor.empty() : tensor<4xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %y = linalg.generic {{indexing_maps = [#strided, #column, #row], {REDUCTION}}}
      ins(%x, %w : tensor<9xf32>, tensor<3xf32>) outs(%z : tensor<4xf32>) {{
  ^bb0(%a: f32, %unused: f32, %o: f32):
    %s = arith.addf %o, %a : f32
    linalg.yield %s : f32
  }} -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}}
"""
IOTA = f"""
func.func @f() -> tensor<4x8xi32> {{
  %e = tensor.empty() : tensor<4x8xi32>
  %y = linalg.generic {{indexing_maps = [#id], {PARALLEL}}} outs(%e : tensor<4x8xi32>) {{
  ^bb0(%o: i32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %c = arith.constant 10 : index
    %m = arith.muli %i, %c : index
    %s = arith.addi %m, %j : index
    %v = arith.index_cast %s : index to i32
    linalg.yield %v : i32
  }} -> tensor<4x8xi32>
  func.return %y : tensor<4x8xi32>
}}
"""
MASKED = f"""
func.func @f(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {{
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x4xf32>
  %y = linalg.generic {{indexing_maps = [#id, #id], {PARALLEL}}}
      ins(%x : tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) {{
  ^bb0(%a: f32, %o: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %c = arith.cmpi sle, %j, %i : index
    %s = arith.select %c, %a, %zero : f32
    linalg.yield %s : f32
  }} -> tensor<4x4xf32>
  func.return %y : tensor<4x4xf32>
}}
"""
REVERSED = """
func.func @f(%x: tensor<8xf32>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %r = linalg.generic {indexing_maps = [#back, #one], iterator_types = ["parallel"]}
      ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<8xf32>
  %y = linalg.add ins(%r, %x : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  func.return %y : tensor<8xf32>
}
"""
EXTRACTED = """
func.func @f(%x: tensor<8xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %y = linalg.generic {indexing_maps = [#one], iterator_types = ["parallel"]} outs(%e : tensor<4xf32>) {
  ^bb0(%o: f32):
    %i = linalg.index 0 : index
    %two = arith.constant 2 : index
    %k = arith.divui %i, %two : index
    %a = tensor.extract %x[%k] : tensor<8xf32>
    %b = math.absf %a : f32
    linalg.yield %b : f32
  } -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}
"""
MATMUL = """
func.func @f(%x: tensor<4x6xf32>, %w: tensor<6x5xf32>, %c: tensor<4x5xf32>) -> tensor<4x5xf32> {
  %y = linalg.matmul ins(%x, %w : tensor<4x6xf32>, tensor<6x5xf32>) outs(%c : tensor<4x5xf32>) -> tensor<4x5xf32>
  func.return %y : tensor<4x5xf32>
}
"""
CONV = """
func.func @f(%x: tensor<1x2x7x7xf32>, %w: tensor<3x2x3x3xf32>) -> tensor<1x3x3x3xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x3x3x3xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<1x3x3x3xf32>) -> tensor<1x3x3x3xf32>
  %y = linalg.conv_2d_nchw_fchw {dilations = dense<1> : tensor<2xi64>, strides = dense<2> : tensor<2xi64>}
      ins(%x, %w : tensor<1x2x7x7xf32>, tensor<3x2x3x3xf32>) outs(%z : tensor<1x3x3x3xf32>) -> tensor<1x3x3x3xf32>
  func.return %y : tensor<1x3x3x3xf32>
}
"""
DIMENSIONS = """
func.func @f(%x: tensor<4x8xf32>) -> tensor<8x4xf32> {
  %e = tensor.empty() : tensor<8x4xf32>
  %t = linalg.transpose ins(%x : tensor<4x8xf32>) outs(%e : tensor<8x4xf32>) permutation = [1, 0]
  %zero = arith.constant 0.0 : f32
  %r = tensor.empty() : tensor<4xf32>
  %r0 = linalg.fill ins(%zero : f32) outs(%r : tensor<4xf32>) -> tensor<4xf32>
  %s = linalg.reduce ins(%x : tensor<4x8xf32>) outs(%r0 : tensor<4xf32>) dimensions = [1]
    (%a: f32, %o: f32) {
      %c = arith.addf %a, %o : f32
      linalg.yield %c : f32
    }
  %b = linalg.broadcast ins(%s : tensor<4xf32>) outs(%e : tensor<8x4xf32>) dimensions = [0]
  %y = linalg.mul ins(%t, %b : tensor<8x4xf32>, tensor<8x4xf32>) outs(%e : tensor<8x4xf32>) -> tensor<8x4xf32>
  func.return %y : tensor<8x4xf32>
}
"""
RESHAPED = """
func.func @f(%x: tensor<4x6xf32>) -> tensor<3x8xf32> {
  %e = tensor.empty() : tensor<4x6xf32>
  %a = linalg.exp ins(%x : tensor<4x6xf32>) outs(%e : tensor<4x6xf32>) -> tensor<4x6xf32>
  %c = tensor.collapse_shape %a [[0, 1]] : tensor<4x6xf32> into tensor<24xf32>
  %y = tensor.expand_shape %c [[0, 1]] output_shape [3, 8] : tensor<24xf32> into tensor<3x8xf32>
  func.return %y : tensor<3x8xf32>
}
"""
SLICED = """
func.func @f(%x: tensor<6x8xf32>, %z: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %s = tensor.extract_slice %x[1, 2] [2, 3] [2, 1] : tensor<6x8xf32> to tensor<2x3xf32>
  %y = tensor.insert_slice %s into %z[1, 0] [2, 3] [1, 2] : tensor<2x3xf32> into tensor<4x8xf32>
  func.return %y : tensor<4x8xf32>
}
"""
ROW = """
func.func @f(%x: tensor<6x8xf32>) -> tensor<8xf32> {
  %s = tensor.extract_slice %x[3, 0] [1, 8] [1, 1] : tensor<6x8xf32> to tensor<8xf32>
  %e = tensor.empty() : tensor<8xf32>
  %y = linalg.exp ins(%s : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  func.return %y : tensor<8xf32>
}
"""
PADDED = """
func.func @f(%x: tensor<3x4xf32>) -> tensor<5x7xf32> {
  %one = arith.constant 1.0 : f32
  %y = tensor.pad %x low[1, 2] high[1, 1] {
  ^bb0(%i: index, %j: index):
    tensor.yield %one : f32
  } : tensor<3x4xf32> to tensor<5x7xf32>
  func.return %y : tensor<5x7xf32>
}
"""
JOINED = """
func.func @f(%x: tensor<2x4xf32>, %y: tensor<3x4xf32>) -> tensor<5x4xf32> {
  %z = tensor.concat dim(0) %x, %y : (tensor<2x4xf32>, tensor<3x4xf32>) -> tensor<5x4xf32>
  func.return %z : tensor<5x4xf32>
}
"""
CONSTANTS = """
func.func @f(%x: tensor<2x3xi32>) -> (tensor<2x3xi32>, tensor<2x3xi32>, tensor<3xi1>) {
  %p = arith.constant dense<[[1, 3, 5], [11, 13, 15]]> : tensor<2x3xi32>
  %q = arith.constant dense<[[7, 0, -5], [1, 1, 2]]> : tensor<2x3xi32>
  %b = arith.constant dense<[true, false, false]> : tensor<3xi1>
  %e = tensor.empty() : tensor<2x3xi32>
  %s = linalg.add ins(%x, %p : tensor<2x3xi32>, tensor<2x3xi32>) outs(%e : tensor<2x3xi32>) -> tensor<2x3xi32>
  %t = linalg.mul ins(%x, %q : tensor<2x3xi32>, tensor<2x3xi32>) outs(%e : tensor<2x3xi32>) -> tensor<2x3xi32>
  func.return %s, %t, %b : tensor<2x3xi32>, tensor<2x3xi32>, tensor<3xi1>
}
"""
CALLED = """
func.func private @double(%x: tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %y = linalg.add ins(%x, %x : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}
func.func @f(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %a = func.call @double(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %b = func.call @double(%a) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %b, %a, %b : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
"""
SCALARS = """
func.func @f(%x: tensor<4xf32>, %s: f32, %r: tensor<f32>) -> (tensor<4xf32>, f32, tensor<4xf32>) {
  %q = tensor.extract %r[] : tensor<f32>
  %t = arith.mulf %s, %q : f32
  %e = tensor.empty() : tensor<4xf32>
  %f = linalg.fill ins(%t : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %y = linalg.add ins(%x, %f : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  func.return %y, %t, %x : tensor<4xf32>, f32, tensor<4xf32>
}
"""
MEMREFS = f"""
func.func @f(%x: memref<4x8xf32>, %a: memref<4xf32>, %y: memref<4xf32>) {{
  %zero = arith.constant 0.0 : f32
  %t = memref.alloc() : memref<4xf32>
  linalg.fill ins(%zero : f32) outs(%t : memref<4xf32>)
  linalg.generic {{indexing_maps = [#id, #row], {REDUCTION}}}
      ins(%x : memref<4x8xf32>) outs(%t : memref<4xf32>) {{
  ^bb0(%p: f32, %o: f32):
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32
  }}
  linalg.add ins(%t, %a : memref<4xf32>, memref<4xf32>) outs(%a : memref<4xf32>)
  "memref.copy"(%t, %y) : (memref<4xf32>, memref<4xf32>) -> ()
  memref.dealloc %t : memref<4xf32>
  func.return
}}
"""
SUBVIEWS = """
func.func @f(%x: memref<4x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %s = memref.subview %x[1, 2] [2, 3] [1, 2] : memref<4x8xf32> to memref<2x3xf32, strided<[8, 2], offset: 10>>
  linalg.fill ins(%zero : f32) outs(%s : memref<2x3xf32, strided<[8, 2], offset: 10>>)
  func.return
}
"""
LOADED = """
func.func @f(%x: memref<4xf32>, %s: memref<f32>, %y: memref<4xf32>) {
  %v = memref.load %s[] : memref<f32>
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%s : memref<f32>)
  linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
      ins(%x : memref<4xf32>) outs(%y : memref<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %b = arith.mulf %a, %v : f32
    linalg.yield %b : f32
  }
  func.return
}
"""


def argmax(x: NDArray[Any]) -> list[NDArray[Any]]:
    return [x.max(1), x.argmax(1).astype(np.int32)]


def swapped(x: NDArray[Any], i: NDArray[Any]) -> list[NDArray[Any]]:
    y = z = i
    for column in x.T:
        y, z = z + column, y * column
    return [y, z]


def scattered(x: NDArray[Any], i: NDArray[Any]) -> NDArray[Any]:
    y = i.copy()
    for (k, j), value in np.ndenumerate(x):
        y[k + j] += value
    return y


def conv(x: NDArray[Any], w: NDArray[Any]) -> NDArray[Any]:
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (2, 3))[:, :, ::2, ::2]
    return np.einsum("nchwij,fcij->nfhw", windows, w)


def sliced(x: NDArray[Any], z: NDArray[Any]) -> NDArray[Any]:
    y = z.copy()
    y[1:3, 0:6:2] = x[1:5:2, 2:5]
    return y


def zeroed(x: NDArray[Any]) -> NDArray[Any]:
    y = x.copy()
    y[1:3, 2:7:2] = 0
    return y


def constants(x: NDArray[Any]) -> list[NDArray[Any]]:
    p, q = [[1, 3, 5], [11, 13, 15]], [[7, 0, -5], [1, 1, 2]]
    return [x + np.array(p, "i4"), x * np.array(q, "i4"), np.array([True, False, False])]


F = np.float32
CASES = {
    "elementwise": Case(ELEMENTWISE, lambda x, b: np.exp(x + b) * F(0.5) + (x + b), [(4, 8), (8,)]),
    "initial values": Case(INITIAL, lambda x, i: i + x.sum(1), [(4, 8), (4,)]),
    "two results": Case(ARGMAX, argmax, [(4, 8)]),
    "results that need each other": Case(SWAPPED, swapped, [(3, 4), (3,)]),
    "accumulation at sums of indices": Case(SCATTERED, scattered, [(4, 3), (6,)]),
    "strided window": Case(WINDOW, lambda x: np.array([x[2 * k : 2 * k + 3].sum() for k in range(4)], F), [(9,)]),
    "iota": Case(IOTA, lambda: np.add.outer(np.arange(4) * 10, np.arange(8)).astype("i4"), []),
    "mask": Case(MASKED, np.tril, [(4, 4)]),
    "reversed": Case(REVERSED, lambda x: x[::-1] + x, [(8,)]),
    "extracted": Case(EXTRACTED, lambda x: abs(x[[0, 0, 1, 1]]), [(8,)]),
    "matmul": Case(MATMUL, lambda x, w, c: c + x @ w, [(4, 6), (6, 5), (4, 5)]),
    "conv": Case(CONV, conv, [(1, 2, 7, 7), (3, 2, 3, 3)]),
    "transpose, reduce, broadcast": Case(DIMENSIONS, lambda x: x.T * x.sum(1), [(4, 8)]),
    "collapse and expand": Case(RESHAPED, lambda x: np.exp(x).reshape(3, 8), [(4, 6)]),
    "slices": Case(SLICED, sliced, [(6, 8), (4, 8)]),
    "rank-reducing slice": Case(ROW, lambda x: np.exp(x[3]), [(6, 8)]),
    "pad": Case(PADDED, lambda x: np.pad(x, [(1, 1), (2, 1)], constant_values=1), [(3, 4)]),
    "concat": Case(JOINED, lambda x, y: np.concatenate([x, y]), [(2, 4), (3, 4)]),
    "constants": Case(CONSTANTS, constants, [(2, 3)], "int32"),
    "calls": Case(CALLED, lambda x: [4 * x, 2 * x, 4 * x], [(4,)]),
    "scalars": Case(SCALARS, lambda x, s, r: [x + s * r, s * r, x], [(4,), (), ()]),
    "memrefs": Case(MEMREFS, lambda x, a, _: [x.sum(1) + a, x.sum(1)], [(4, 8), (4,), (4,)]),
    "loaded before it is written": Case(LOADED, lambda x, s, _: [np.zeros((), F), x * s], [(4,), (), (4,)]),
    "subviews": Case(SUBVIEWS, zeroed, [(4, 8)]),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_meaning(case: Case) -> None:
    kernel = pdojo.parse(MAPS + case.text)
    arguments = case.arguments()
    expected = cast(Any, case.meaning)(*[argument.copy() for argument in arguments])
    found = results(kernel, *arguments)
    wanted = cast("list[Any]", expected if isinstance(expected, list) else [expected])
    assert len(found) == len(wanted)
    for have, want in zip(found, wanted, strict=True):
        assert have.shape == np.shape(want)
        np.testing.assert_allclose(have, want, rtol=2e-6, atol=1e-6)


def test_intents_of_memrefs() -> None:
    kernel = pdojo.parse(MAPS + MEMREFS)
    assert [intent.data.value for intent in kernel.arg_intents.data] == ["in", "inout", "out"]
    kernel = pdojo.parse(MAPS + SUBVIEWS)
    assert [intent.data.value for intent in kernel.arg_intents.data] == ["inout"]


def test_bodies_are_perfect_nests() -> None:
    expected = """\
kernel f(x, b) -> (y)
x f32 [4, 8] heap
b f32 [8] heap
y f32 [4, 8] heap
t f32 [4:N, 8:N] stack
t1 f32 [4:N, 8:N] stack
t2 f32 [4:N, 8:N] stack

4 8
| t[{0},{1}] = x[{0},{1}] + b[{1}]
| t1[{0},{1}] = exp(t[{0},{1}])
| t2[{0},{1}] = t1[{0},{1}] * 0.5
| y[{0},{1}] = t2[{0},{1}] + t[{0},{1}]
"""
    assert print_notation(pdojo.parse(MAPS + ELEMENTWISE)) == expected


BITS = """
func.func @f() -> (tensor<{type}>, tensor<3x{type}>, tensor<2xi32>) {{
  %a = arith.constant dense<{low}> : tensor<{type}>
  %b = arith.constant dense<[{high}, {nan}, 1.5]> : tensor<3x{type}>
  %c = arith.constant dense<[0x10, 0x7F800000]> : tensor<2xi32>
  func.return %a, %b, %c : tensor<{type}>, tensor<3x{type}>, tensor<2xi32>
}}
"""
PATTERNS = {
    "f64": ("0xFFF0000000000000", "0x7FF0000000000000", "0x7FF8000000000000"),
    "f32": ("0xFF800000", "0x7F800000", "0x7FC00000"),
    "f16": ("0xFC00", "0x7C00", "0x7E00"),
    "bf16": ("0xFF80", "0x7F80", "0x7FC0"),
}


@pytest.mark.parametrize("dtype", PATTERNS)
def test_hexadecimal_numbers_are_bits(dtype: str) -> None:
    """xDSL 0.74 reads `dense<0xFF800000> : tensor<f32>` as 4286578688."""
    low, high, nan = PATTERNS[dtype]
    a, b, c = results(pdojo.parse(BITS.format(type=dtype, low=low, high=high, nan=nan)))
    if dtype == "bf16":
        a, b = ((values.astype(np.uint32) << 16).view(np.float32) for values in (a, b))
    np.testing.assert_array_equal(a, -np.inf)
    np.testing.assert_array_equal(b, [np.inf, np.nan, 1.5])
    np.testing.assert_array_equal(c, [16, 0x7F800000])


@pytest.mark.parametrize("dtype", PATTERNS)
def test_numbers_that_xdsl_may_have_misread_are_refused(dtype: str) -> None:
    context = Context()
    for name, dialect in Universe.get_multiverse().all_dialects.items():
        context.register_dialect(name, dialect)
    for pattern in PATTERNS[dtype]:
        module = Parser(context, BITS.format(type=dtype, low=pattern, high=1.0, nan=2.0)).parse_module()
        before = str(module)
        with pytest.raises(ConversionError, match=f"{pattern.lower()}, the bits of"):
            ConvertLinalgToPdojoPass().apply(context, module)
        assert str(module) == before


PERMITTED = """
func.func @f(%x: tensor<3xi32>) -> tensor<3xi8> {
  %e = tensor.empty() : tensor<3xi8>
  %y = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>],
                       iterator_types = ["parallel"]} ins(%x : tensor<3xi32>) outs(%e : tensor<3xi8>) {
  ^bb0(%a: i32, %o: i8):
    %one = arith.constant 1 : i32
    %half = "arith.shrui"(%a, %one) <{isExact}> : (i32, i32) -> i32
    %wide = "arith.extui"(%half) <{nonNeg}> : (i32) -> i64
    %sum = "arith.addi"(%wide, %wide) <{overflowFlags = #arith.overflow<nsw>}> : (i64, i64) -> i64
    %low = "arith.trunci"(%sum) <{overflowFlags = #arith.overflow<none>}> : (i64) -> i8
    linalg.yield %low : i8
  } -> tensor<3xi8>
  func.return %y : tensor<3xi8>
}
"""


def test_permissions_that_xdsl_does_not_know_are_left_out() -> None:
    """JAX writes the flags of `arith.trunci`, which xDSL 0.74 does not define."""
    (y,) = results(pdojo.parse(PERMITTED), np.array([2, 154, -2], np.int32))
    np.testing.assert_array_equal(y, np.array([2, -102, -2], np.int8))
    with pytest.raises(InvalidKernel, match="property 'rounding' is not defined"):
        pdojo.parse(PERMITTED.replace("overflowFlags = #arith.overflow<none>", "rounding = 1 : i32"))


def test_too_many_bits() -> None:
    with pytest.raises(NotationError, match=r"3:29: error: 0x1FF800000 has more bits than f32"):
        pdojo.parse(BITS.format(type="f32", low="0x1FF800000", high=1.0, nan=2.0))


CHOSEN = """
func.func @f(%x: tensor<EXTENTxf32>, %z: tensor<EXTENTxf32>) -> tensor<EXTENTxf32> {
  %e = tensor.empty() : tensor<EXTENTxf32>
  %y = linalg.generic {indexing_maps = [#one, #one, #one], iterator_types = ["parallel"]}
      ins(%x, %z : tensor<EXTENTxf32>, tensor<EXTENTxf32>) outs(%e : tensor<EXTENTxf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %i = linalg.index 0 : index
    %k = arith.constant NUMBER : index
    %c = arith.cmpi PREDICATE, LEFT, RIGHT : index
    %s = scf.if %c -> (f32) {
      scf.yield %a : f32
    } else {
      scf.yield %b : f32
    }
    linalg.yield %s : f32
  } -> tensor<EXTENTxf32>
  func.return %y : tensor<EXTENTxf32>
}
"""
COMPARE = {"slt": operator.lt, "sle": operator.le, "sgt": operator.gt, "sge": operator.ge, "eq": operator.eq,
           "ne": operator.ne}  # fmt: skip


def chosen(extent: int, number: int, predicate: str, *, reverse: bool = False) -> str:
    left, right = ("%k", "%i") if reverse else ("%i", "%k")
    words = {"EXTENT": extent, "NUMBER": number, "PREDICATE": predicate, "LEFT": left, "RIGHT": right}
    text = MAPS + CHOSEN
    for word, value in words.items():
        text = text.replace(word, str(value))
    return text


@pytest.mark.parametrize("predicate", COMPARE)
def test_branches_cut_the_iterations_where_a_comparison_changes(predicate: str) -> None:
    x, z = np.arange(6, dtype=F), -np.arange(6, dtype=F) - 1
    for number in range(-1, 8):
        for reverse in (False, True):
            kernel = pdojo.parse(chosen(6, number, predicate, reverse=reverse))
            operands = (number, np.arange(6)) if reverse else (np.arange(6), number)
            np.testing.assert_array_equal(results(kernel, x, z)[0], np.where(COMPARE[predicate](*operands), x, z))


def test_branches_of_a_huge_axis_are_not_tried_one_by_one() -> None:
    kernel = pdojo.parse(chosen(1 << 40, 1 << 39, "eq"))
    assert [scope.extent for scope in nest_of(kernel).scopes] == [1 << 39, (1 << 39) - 1]
