"""Operations of MLIR's math dialect that are composite functions."""

from __future__ import annotations

import numpy as np
import pytest

import pdojo
from pdojo.dialect.semantics.interpreter import interpret
from pdojo.dialect.syntax import names_of
from pdojo.frontends.linalg.formulas import OPERATIONS
from pdojo.math.composites import COMPOSITES

TYPES = {"f64": np.float64, "f32": np.float32, "f16": np.float16}


def function_of(operation: str, dtype: str) -> str:
    """A function of two arrays with the operation twice: as the last value of a body, and as one that others need."""
    one = len(COMPOSITES[OPERATIONS[operation]].operands) == 1
    operands = f"(%a) : ({dtype}) -> {dtype}" if one else f"(%a, %b) : ({dtype}, {dtype}) -> {dtype}"
    shape, identity = f"tensor<9x{dtype}>", "affine_map<(d0) -> (d0)>"
    lines = [f"func.func @f(%x: {shape}, %y: {shape}) -> ({shape}, {shape}) {{", f"%e = tensor.empty() : {shape}"]
    for name, last in (("%p", "%c"), ("%q", "%d")):
        maps = f'indexing_maps = [{identity}, {identity}, {identity}], iterator_types = ["parallel"]'
        lines += [
            f"{name} = linalg.generic {{{maps}}} ins(%x, %y : {shape}, {shape}) outs(%e : {shape}) {{",
            f"^bb0(%a: {dtype}, %b: {dtype}, %o: {dtype}):",
            f'%c = "{operation}"{operands}',
            f"%d = arith.addf %c, %b : {dtype}",
            f"linalg.yield {last} : {dtype}",
            f"}} -> {shape}",
        ]
    return "\n".join([*lines, f"func.return %p, %q : {shape}, {shape}", "}"])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_composites_are_statements(operation: str, dtype: str) -> None:
    record, kind = COMPOSITES[OPERATIONS[operation]], TYPES[dtype]
    kernel = pdojo.parse(function_of(operation, dtype))
    x = np.array([-0.0, 0.5, -0.9, 1, 1.5, 3, 40, np.inf, np.nan]).astype(kind)
    y = np.array([1, -2, 0, 4, -0.0, np.inf, 7, 8, 9]).astype(kind)
    names = names_of(kernel.arg_names)
    found = interpret(kernel, dict(zip(names, (x, y), strict=False)))
    operands = [each.astype(np.float64) for each in (x, y)[: len(record.operands)]]
    exact = record.exact(*operands).astype(kind)
    eps = float(np.finfo(kind).eps)
    np.testing.assert_allclose(found[names[2]], exact, rtol=4 * eps, atol=0)
    np.testing.assert_allclose(found[names[3]], (exact + y).astype(kind), rtol=4 * eps, atol=4 * eps)
