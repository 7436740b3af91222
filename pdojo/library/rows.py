"""Kernels whose first size only counts independent rows: a chunk of rows and a single row then serve any number."""

from __future__ import annotations

import re
from collections.abc import Callable

from pdojo.dialect.affine import Expr, var
from pdojo.dialect.notation import print_notation
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.view.build import nest_of
from pdojo.dialect.view.nest import Index, Leaf, Scope

_PROBES = (104729, 104743)
"""Two numbers of rows that occur nowhere else in a kernel's text; larger ones are tried if they do."""


def rows_problem(at: Callable[[int], KernelOp]) -> str | None:
    """The reason why the rows of a kernel are not independent; None if they are.

    `at` gives the kernel for a number of rows. The kernel for n rows then computes, for each row, the same as the
    kernel for one row: (1) n occurs in the program only as extent of outermost scopes and of dimension 0; (2) in such a
    scope with variable i, every array with rows is accessed at row i, and i is used nowhere else; (3) all other nests
    access no array with rows, and all arrays that a nest with rows writes have rows.
    """
    first, second = (_clear(at, probe) for probe in _PROBES)
    if _without(*first) != _without(*second):
        return "other sizes follow from the number of rows"
    kernel, rows = first
    nest = nest_of(kernel)
    arrays = [array for array in nest.arrays.values() if array.shape and array.shape[0] == rows]
    roots = [root for root in nest.children if isinstance(root, Scope) and root.extent == rows]
    buffers = {array.buffer for array in arrays}
    if len(_token(rows).findall(print_notation(kernel))) != len(buffers) + len(roots):
        return "the number of rows occurs elsewhere than as outermost extent and as dimension 0"
    names = {array.name for array in arrays}
    for root in nest.children:
        problem = _problem(root, names, is_row=root in roots)
        if problem is not None:
            return problem
    outputs = [array.name for array in nest.arrays.values() if array.intent is not None and array.name not in names]
    written = {leaf.output.array.name for leaf in nest.leaves}
    fixed = next((name for name in outputs if name in written), None)
    return None if fixed is None else f"array '{fixed}' is written and has no dimension of rows"


def _clear(at: Callable[[int], KernelOp], probe: int) -> tuple[KernelOp, int]:
    """The kernel for a number of rows that is like `probe` and not among the kernel's own numbers."""
    own = {int(number) for number in re.findall(r"(?<![\w.])\d+", print_notation(at(1)))}
    while probe in own:
        probe += 2
    return at(probe), probe


def _without(kernel: KernelOp, rows: int) -> str:
    return _token(rows).sub("#", print_notation(kernel))


def _token(number: int) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w.]){number}(?![\w.])")


def _problem(root: Scope | Leaf, names: set[str], *, is_row: bool) -> str | None:
    """The reason why a top-level nest does not run over rows, or mixes rows."""
    leaves = root.leaves if isinstance(root, Scope) else [root]
    for leaf in leaves:
        for access in leaf.accesses:
            name, index = access.array.name, access.index
            has_rows = name in names
            if has_rows and not (is_row and index[0] == var(0)):
                return f"array '{name}' is accessed at other rows than the scope's"
            rest = index[1:] if has_rows else index
            if is_row and _uses(rest):
                return f"array '{name}' has the row as another index"
        if is_row and leaf.output.array.name not in names:
            return f"array '{leaf.output.array.name}' collects values of several rows"
        values = [each.expression for each in leaf.inputs if isinstance(each, Index)]
        if is_row and _uses(values):
            return "the number of a row is used as a value"
    scopes = root.scopes if isinstance(root, Scope) else []
    if is_row and any(_uses(scope.guard) for scope in scopes):
        return "a guard depends on the row"
    return None


def _uses(expressions: tuple[Expr, ...] | list[Expr]) -> bool:
    """Whether an expression contains the variable of the outermost scope."""
    return any(0 in expression.variables() for expression in expressions)
