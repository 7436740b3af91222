"""Instructions that add up products of two operands, found by their semantics in the machine description."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from pdojo.dialect.attributes import Numerics
from pdojo.dialect.functions import byte_width
from pdojo.dialect.intrinsic import Intrinsic
from pdojo.dialect.machines.fragment import Fragment
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.machines.pattern import IntrinsicPattern, pattern_of
from pdojo.dialect.rules.tensor import available
from pdojo.dialect.view.nest import Access, Leaf, Scope
from pdojo.passes.common.builder import PassBuilder
from pdojo.passes.common.contraction import uses


@dataclass(frozen=True, slots=True)
class ProductUnit:
    """An instruction that adds up products, perhaps of numbers that are cast first."""

    intrinsic: Intrinsic
    pattern: IntrinsicPattern
    casts: tuple[Leaf, ...]
    """The statements that cast the factors, in order; none if the factors are read as they are."""
    columns: int
    """Index of the factor that is indexed by the accumulators' innermost dimension."""
    lanes: int
    """Columns of a tile."""
    height: int
    """Rows of a tile; 1 if the meaning has no loop over rows."""
    groups: tuple[int, ...]
    """Extents of the loops over terms, outermost first."""

    @property
    def product(self) -> Leaf:
        """The accumulation in the instruction's meaning."""
        return self.pattern.nest.leaves[-1]

    @property
    def terms(self) -> int:
        """Terms of a sum per instruction."""
        return prod(self.groups)

    @property
    def loops(self) -> int:
        """Number of loops of the meaning."""
        return len(self.product.chain)

    @property
    def work(self) -> int:
        """Products per instruction."""
        return self.terms * self.lanes * self.height

    @property
    def results(self) -> Fragment:
        """The fragment in which a warp holds results."""
        return self.pattern.fragments[self.product.output.array.name]

    def role(self, scope: Scope) -> str:
        """`terms`, `columns` or `rows`: the role of a loop of the meaning."""
        in_columns, in_rows = (uses(self.factor(p), scope) for p in (self.columns, 1 - self.columns))
        return "terms" if in_columns and in_rows else "columns" if in_columns else "rows"

    def factor(self, position: int) -> Access:
        """The operand of a factor in the meaning, narrow if the factor is cast."""
        return self.casts[position].reads[0] if self.casts else self.product.reads[position]

    def layout(self, position: int) -> list[int]:
        """Depths of the loops that index an operand, the longest strides first."""
        access = self.factor(position)
        steps, free = self.pattern.address(access)
        depths = [s.depth for s in self.product.chain if uses(access, s)]
        return sorted(depths, key=lambda d: (d not in free, -steps.coefficient(d)))

    def computes(self, builder: PassBuilder, leaf: Leaf) -> bool:
        """True if the kernel permits the unit's numerics, and a statement is its accumulation of casts of its types."""
        product, program = self.product, builder.game.program
        same = (leaf.accumulate, leaf.contracted, leaf.function) == (
            product.accumulate,
            product.contracted,
            product.function,
        )
        if not same or _dtypes(leaf) != _dtypes(product):
            return False
        for read, cast in zip(leaf.reads, self.casts, strict=False):
            writers = builder.nest.writers[read.array.name]
            if len(writers) != 1 or (writers[0].function, writers[0].accumulate) != (cast.function, None):
                return False
            if _dtypes(writers[0]) != _dtypes(cast):
                return False
        return all(program.permits(Numerics(n)) for n in self.intrinsic.numerics)


def _dtypes(leaf: Leaf) -> list[str]:
    return [access.array.dtype for access in leaf.accesses]


def dot_units(machine: Machine) -> list[ProductUnit]:
    """The machine's dot products of narrow numbers for one thread, the largest first."""
    found = (unit for unit in _units(machine) if unit.casts and all(_widens(cast) for cast in unit.casts))
    return sorted(found, key=lambda u: -u.work)


def matrix_units(machine: Machine) -> list[ProductUnit]:
    """The machine's products of matrices for a warp, in the order of the machine description."""
    return [
        unit
        for unit in _units(machine)
        if unit.intrinsic.threads
        and [unit.role(s) for s in unit.product.chain] == _MATRIX[unit.columns]
        and unit.factor(0).array.dtype == unit.factor(1).array.dtype
    ]


_MATRIX = (["columns", "rows", "terms"], ["rows", "columns", "terms"])
"""The loops of a product of matrices; the first or the second factor has the columns."""


def _widens(leaf: Leaf) -> bool:
    """True if a statement casts to a wider type."""
    return byte_width(leaf.reads[0].array.dtype) < byte_width(leaf.output.array.dtype)


def _units(machine: Machine) -> list[ProductUnit]:
    return [unit for intrinsic in available(machine).values() if (unit := _unit(intrinsic)) is not None]


def _unit(intrinsic: Intrinsic) -> ProductUnit | None:
    """The unit of an intrinsic whose meaning is a sum of products in a perfect nest; None for other intrinsics."""
    pattern = pattern_of(intrinsic)
    *before, last = pattern.nest.leaves
    alone = all(len(s.children) == 1 for s in last.chain[:-1])
    if not alone or last.accumulate is None or len(last.reads) != 2:
        return None
    by_name = {leaf.output.array.name: leaf for leaf in before}
    casts = tuple(by_name[read.array.name] for read in last.reads if read.array.name in by_name)
    plain = all(leaf.accumulate is None and len(leaf.inputs) == len(leaf.reads) == 1 for leaf in casts)
    if not len({leaf.id for leaf in casts}) == len(casts) == len(before) or len(casts) not in (0, 2) or not plain:
        return None
    inner = last.output.index[-1].variables()
    return _shaped(ProductUnit(intrinsic, pattern, casts, 1, 1, 1, ()), set(inner))


def _shaped(unit: ProductUnit, inner: set[int]) -> ProductUnit | None:
    """The unit with its tile: one loop of columns, at most one of rows, the rest of terms; None for other shapes."""
    chain, output = unit.product.chain, unit.product.output
    using = [[s for s in chain if uses(unit.factor(p), s)] for p in (0, 1)]
    summed = [s for s in chain if not uses(output, s)]
    columns = next((p for p in (0, 1) if any(s.depth in inner for s in using[p])), None)
    if columns is None or len(inner) != 1:
        return None
    spatial = [[s for s in using[p] if s not in summed] for p in (columns, 1 - columns)]
    if len(spatial[0]) != 1 or len(spatial[1]) > 1 or spatial[0] == spatial[1] or not summed:
        return None
    if any(s not in using[0] or s not in using[1] for s in summed):
        return None
    height = spatial[1][0].extent if spatial[1] else 1
    groups = tuple(s.extent for s in summed)
    return replace(unit, columns=columns, lanes=spatial[0][0].extent, height=height, groups=groups)
