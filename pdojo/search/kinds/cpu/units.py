"""Instructions that sum up products of narrow numbers, found by their meanings in the machine description."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from pdojo.dialect.functions import byte_width
from pdojo.dialect.machines.intrinsic import Intrinsic
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.machines.pattern import Pattern, pattern_of
from pdojo.dialect.rules.tensor import available
from pdojo.dialect.view.nest import Access, Leaf, Scope
from pdojo.search.kinds.cpu.contraction import uses


@dataclass(frozen=True, slots=True)
class Unit:
    """An instruction that sums up products of narrow numbers."""

    intrinsic: Intrinsic
    pattern: Pattern
    product: Leaf
    """The accumulation in the instruction's meaning."""
    casts: tuple[Leaf, Leaf]
    """The statements that cast the factors, in order."""
    columns: int
    """Index of the factor that is indexed by the accumulators' innermost dimension."""
    lanes: int
    """Columns of a tile."""
    height: int
    """Rows of a tile; 1 if the meaning has no loop over rows."""
    groups: tuple[int, ...]
    """Extents of the loops over terms, outermost first."""

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

    def role(self, scope: Scope) -> str:
        """`terms`, `columns` or `rows`: the role of a loop of the meaning."""
        in_columns, in_rows = (uses(self.factor(p), scope) for p in (self.columns, 1 - self.columns))
        return "terms" if in_columns and in_rows else "columns" if in_columns else "rows"

    def factor(self, position: int) -> Access:
        """The narrow operand of a factor in the meaning."""
        return self.casts[position].reads[0]

    def layout(self, position: int) -> list[int]:
        """Depths of the loops that index a narrow operand, the longest strides first."""
        access = self.factor(position)
        steps, free = self.pattern.address(access)
        depths = [s.depth for s in self.casts[position].chain if uses(access, s)]
        return sorted(depths, key=lambda d: (d not in free, -steps.coefficient(d)))


def units(machine: Machine) -> list[Unit]:
    """The machine's dot products of narrow numbers, the largest first."""
    found = (_unit(intrinsic) for intrinsic in available(machine).values())
    return sorted((u for u in found if u is not None), key=lambda u: -u.work)


def _unit(intrinsic: Intrinsic) -> Unit | None:
    """The unit of an intrinsic whose meaning is a dot product of cast numbers; None for other intrinsics."""
    pattern = pattern_of(intrinsic)
    *casts, last = pattern.nest.leaves
    alone = all(len(s.children) == 1 for s in last.chain[:-1])
    if not alone or len(casts) != 2 or last.accumulate is None or len(last.reads) != 2:
        return None
    by_name = {leaf.output.array.name: leaf for leaf in casts}
    factors = [by_name.get(read.array.name) for read in last.reads]
    first, second = factors[0], factors[1]
    if first is None or second is None or first is second or not (_widens(first) and _widens(second)):
        return None
    inner = last.output.index[-1].variables()
    return _shaped(Unit(intrinsic, pattern, last, (first, second), 1, 1, 1, ()), set(inner))


def _widens(leaf: Leaf) -> bool:
    """True if a statement is a cast to a wider type."""
    return (
        leaf.accumulate is None
        and len(leaf.inputs) == len(leaf.reads) == 1
        and byte_width(leaf.reads[0].array.dtype) < byte_width(leaf.output.array.dtype)
    )


def _shaped(unit: Unit, inner: set[int]) -> Unit | None:
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
    return Unit(unit.intrinsic, unit.pattern, unit.product, unit.casts, columns, spatial[0][0].extent, height, groups)
