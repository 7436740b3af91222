"""Tensors, memrefs and scalars as functions of their indices, and the scopes over which indices run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.ir import Block

from pdojo.dialect.affine import Expr, const, var
from pdojo.dialect.ops import ScopeOp
from pdojo.dialect.rewriting import substitute_input
from pdojo.dialect.view.nest import Access, Array, Input

Place: TypeAlias = tuple[Array, tuple[Expr, ...]]
"""An array and the index of one of its elements."""


@dataclass(frozen=True, slots=True)
class Elements:
    """The elements of an SSA value: the one at i0, i1 ... is `element`, with `var(d)` as index d."""

    dtype: str
    shape: tuple[int, ...]
    element: Input | None
    """None: the elements are unspecified, as after `tensor.empty`."""

    @staticmethod
    def of(array: Array) -> Elements:
        """The elements of an array."""
        return Elements(array.dtype, array.shape, Access(array, tuple(var(d) for d in range(len(array.shape)))))

    @property
    def rank(self) -> int:
        """The number of indices."""
        return len(self.shape)

    def view(self, shape: Sequence[int], index: Sequence[Expr]) -> Elements:
        """The elements at `index`, over the indices of `shape`."""
        if self.element is None:
            return Elements(self.dtype, tuple(shape), None)
        return Elements(self.dtype, tuple(shape), substitute_input(self.element, dict(enumerate(index)), shape))


class Iterations:
    """Scopes that open inside one another."""

    def __init__(self, block: Block) -> None:
        self.block = block
        """The block of the innermost scope."""
        self.chain: list[ScopeOp] = []

    @property
    def extents(self) -> list[int]:
        """The extents of the open scopes, outermost first."""
        return [scope.count for scope in self.chain]

    def enter(self, extent: int) -> Expr:
        """Open a scope; returns its iteration. A single iteration is 0 and needs no scope."""
        if extent == 1:
            return const(0)
        scope = ScopeOp(extent)
        self.block.add_op(scope)
        self.chain.append(scope)
        self.block = scope.body.block
        return var(len(self.chain) - 1)

    def enter_all(self, shape: Sequence[int]) -> list[Expr]:
        """Open a scope for each dimension; returns the index of an element."""
        return [self.enter(extent) for extent in shape]

    def at(self, elements: Elements, index: Sequence[Expr]) -> Input:
        """The element at an index over the open scopes."""
        assert elements.element is not None
        return substitute_input(elements.element, dict(enumerate(index)), self.extents)
