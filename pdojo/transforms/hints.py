"""Hints on accesses: non-temporal stores and prefetches. They never change meaning."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Self

from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr, UnitAttr, i64
from xdsl.ir import Attribute
from xdsl.pattern_rewriter import PatternRewriter

from pdojo.dialect.analysis.lanes import known_alignment
from pdojo.dialect.analysis.program import Program
from pdojo.dialect.attributes import Mapping, Memory
from pdojo.dialect.functions import byte_width
from pdojo.dialect.nest import Access, Leaf, Scope
from pdojo.dialect.ops import hints_attr
from pdojo.dialect.verify import describe_access
from pdojo.transforms.base import Reason, Transformation
from pdojo.transforms.move import Move

NONTEMPORAL = "nontemporal"
PREFETCH = "prefetch"
PREFETCH_DISTANCES = (256, 1024, 4096)
"""Distances in bytes that candidates propose."""

FARTHEST = (1 << 31) - 1
"""The greatest distance in bytes that an instruction can hold."""


def _in_memory(access: Access) -> bool:
    return access.array.buffer.memory is Memory.HEAP


def stores_whole_vectors(leaf: Leaf, lanes: Scope) -> bool:
    """Whether the store writes whole vectors at addresses known to be aligned to them, as the instruction needs."""
    size = lanes.extent * byte_width(leaf.output.array.dtype)
    return not lanes.guard and known_alignment(leaf.output, leaf, lanes) % size == 0


@dataclass(frozen=True)
class Hint(Transformation[Leaf]):
    """Set a hint on an access: 0 is the output, 1 the first array that is read, and so on.

    `hint@y{kind=nontemporal}`:

    16:v y[{0}] = x[{0}]  -->  16:v y[{0}]!nontemporal = x[{0}]

    `nontemporal` bypasses the caches on a plain store (backends need an aligned vector for it); `prefetch` with `value`
    bytes fetches ahead of a load.
    """

    name: ClassVar[str] = "hint"
    site: ClassVar = Leaf
    kind: str
    access: int = 0
    value: int = -1

    @classmethod
    def candidates(cls, program: Program) -> Iterator[tuple[Leaf, Self]]:
        """Vector accesses to the heap."""
        for leaf in program.nest.leaves:
            if leaf.parent is None or leaf.parent.mapping is not Mapping.VECTOR:
                continue
            for number, access in enumerate(leaf.accesses):
                if not _in_memory(access):
                    continue
                if number == 0 and NONTEMPORAL not in access.hints.data and stores_whole_vectors(leaf, leaf.parent):
                    yield leaf, cls(NONTEMPORAL)
                elif number and PREFETCH not in access.hints.data:
                    yield from ((leaf, cls(PREFETCH, number, distance)) for distance in PREFETCH_DISTANCES)

    def check(self, program: Program, site: Leaf) -> Reason | None:
        """A known hint on an access that can carry it."""
        if self.kind not in (NONTEMPORAL, PREFETCH):
            return Reason(f"'{self.kind}' is no hint; known are {NONTEMPORAL}, {PREFETCH}")
        if not 0 <= self.access < len(site.accesses):
            return Reason(f"'access' must be between 0 (the output) and {len(site.accesses) - 1}")
        access = site.accesses[self.access]
        if self.kind in access.hints.data:
            return Reason(f"{describe_access(access)} has the hint already")
        return self.misfit(site)

    def misfit(self, site: Leaf) -> Reason | None:
        """Why the access cannot carry the hint."""
        if self.kind not in (NONTEMPORAL, PREFETCH):
            return Reason(f"'{self.kind}' is no hint; known are {NONTEMPORAL}, {PREFETCH}")
        access = site.accesses[self.access]
        if access.array.buffer.memory is Memory.REGISTER:
            return Reason(f"'{access.array.name}' is in registers")
        if self.kind == PREFETCH and (self.access == 0 or self.value < 1):
            return Reason("a prefetch needs a read access (access=1 ...) and a distance in bytes (value=...)")
        if self.value > FARTHEST:
            return Reason(f"'value' must be at most {FARTHEST}, a distance in bytes")
        if self.kind == NONTEMPORAL and (self.access != 0 or site.accumulate is not None or self.value != -1):
            return Reason("only plain stores are non-temporal (access=0, no value)")
        return None

    def rewrite(self, program: Program, site: Leaf, rewriter: PatternRewriter) -> None:
        """Add the entry to the access's hints."""
        value: Attribute = UnitAttr() if self.value < 0 else IntegerAttr(self.value, i64)
        _set_hints(site, self.access, {**site.accesses[self.access].hints.data, self.kind: value}, rewriter)

    def inverse(self, program: Program, site: Leaf) -> Move:
        """Clear it."""
        return Unhint(self.kind, self.access).as_move(f"%{site.id}")


@dataclass(frozen=True)
class Unhint(Transformation[Leaf]):
    """Clear a hint of an access.

    `unhint@y{kind=nontemporal}`:

    16:v y[{0}]!nontemporal = x[{0}]  -->  16:v y[{0}] = x[{0}]
    """

    name: ClassVar[str] = "unhint"
    site: ClassVar = Leaf
    kind: str
    access: int = 0

    @classmethod
    def candidates(cls, program: Program) -> Iterator[tuple[Leaf, Self]]:
        """Every hint that is set."""
        for leaf in program.nest.leaves:
            for number, access in enumerate(leaf.accesses):
                yield from ((leaf, cls(kind, number)) for kind in access.hints.data)

    def check(self, program: Program, site: Leaf) -> Reason | None:
        """The hint is set, and one that `hint` can set."""
        if not 0 <= self.access < len(site.accesses):
            return Reason(f"'access' must be between 0 (the output) and {len(site.accesses) - 1}")
        access = site.accesses[self.access]
        if self.kind not in access.hints.data:
            return Reason(f"{describe_access(access)} has no hint '{self.kind}'")
        misfit = self._again(site).misfit(site)
        return None if misfit is None else Reason(f"'hint' could not set it again: {misfit.text}")

    def rewrite(self, program: Program, site: Leaf, rewriter: PatternRewriter) -> None:
        """Remove the entry."""
        kept = {k: v for k, v in site.accesses[self.access].hints.data.items() if k != self.kind}
        _set_hints(site, self.access, kept, rewriter)

    def inverse(self, program: Program, site: Leaf) -> Move:
        """Set it again."""
        return self._again(site).as_move(f"%{site.id}")

    def _again(self, site: Leaf) -> Hint:
        value = site.accesses[self.access].hints.data[self.kind]
        return Hint(self.kind, self.access, value.value.data if isinstance(value, IntegerAttr) else -1)


def _set_hints(site: Leaf, access: int, hints: dict[str, Attribute], rewriter: PatternRewriter) -> None:
    entries = list(site.op.access_hints)
    entries[access] = DictionaryAttr(dict(sorted(hints.items())))
    attribute = hints_attr(entries)
    if attribute is None:
        site.op.properties.pop("hints", None)
    else:
        site.op.properties["hints"] = attribute
    rewriter.notify_op_modified(site.op)
