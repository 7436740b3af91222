"""A program as integer relations: its instances, the memory that each touches, and their order.

An *event* is one access of one statement instance: a read, a write, or a fold (an accumulation, which is both). Events
are kept apart by memory, because values never pass between memories. The dependence analysis is not used, because its
answers are judged here; islpy is imported on first use.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, TypeAlias

from pdojo.dialect.affine import Atom, Div, Expr, Size, const, var
from pdojo.dialect.attributes import Intent, Mapping
from pdojo.dialect.semantics.oracle.memory import private_scopes
from pdojo.dialect.view.nest import Access, Array, Buffer, Leaf, Nest, Scope
from pdojo.dialect.view.storage import physical_index

if TYPE_CHECKING:
    import islpy as isl

Place: TypeAlias = tuple[Expr, ...]
"""An element or a cell; equal tuples are equal places. The array's number comes first if there are several arrays."""


class Kind(Enum):
    """An event's use of its place."""

    READ = "read"
    WRITE = "write"
    FOLD = "accumulation"


@dataclass(frozen=True, eq=False)
class Event:
    """One access of a statement, in all instances."""

    name: str
    """The name of its isl space: `W3` is the write of statement 3, `R3_0` that statement's first input access."""
    leaf: Leaf
    access: Access
    kind: Kind
    element: Place
    cell: Place

    @property
    def fold(self) -> tuple[str, str | None]:
        """The array and function of an accumulation; folds with an equal pair may be reordered."""
        return self.access.array.name, self.leaf.accumulate

    @cached_property
    def ivs(self) -> list[str]:
        """Names of the induction variables, outermost first."""
        return [f"i{d}" for d in range(self.leaf.depth)]

    @cached_property
    def domain(self) -> str:
        """Box and guards, as constraints of isl."""
        return conjunction(domain(self.leaf, self.ivs))

    def instance(self, names: Sequence[str] | None = None) -> str:
        """The instance with these induction variables."""
        return f"{self.name}[{', '.join(self.ivs if names is None else names)}]"

    def relation(self, target: Iterable[Expr | int], space: str = "") -> str:
        """The relation from every instance to a tuple of expressions, as a piece of isl text."""
        values = ", ".join(spell(e, self.ivs) if isinstance(e, Expr) else str(e) for e in target)
        return f"{self.instance()} -> {space}[{values}] : {self.domain}"


@dataclass(frozen=True, eq=False)
class MemoryEvents:
    """All events on the memory of one buffer, or of several that share it."""

    nest: Nest
    arrays: tuple[Array, ...]
    events: tuple[Event, ...]
    copy_depth: int = -1
    """Number of scopes whose iterations have private copies; -1 if there are no copies."""

    @property
    def is_plain(self) -> bool:
        """Whether cells are elements: nothing is reused or shared."""
        return all(event.cell == event.element for event in self.events)

    @property
    def is_written(self) -> bool:
        """Whether any event writes."""
        return any(event.kind is not Kind.READ for event in self.events)

    @property
    def outputs(self) -> list[Array]:
        """The output arrays, whose final contents the caller reads."""
        return [a for a in self.arrays if a.intent in (Intent.OUT, Intent.INOUT)]

    def of(self, *kinds: Kind) -> list[Event]:
        """The events of some kinds."""
        return [event for event in self.events if event.kind in kinds]


@lru_cache(maxsize=1)
def context() -> isl.Context:
    """The oracle's own isl context; limits of the analysis's context do not affect it."""
    import islpy

    return islpy.Context()


@contextmanager
def unlimited() -> Generator[isl.Context]:
    """The context without a limit, for small tasks such as reading and counting."""
    isl_context = context()
    limit = isl_context.get_max_operations()
    isl_context.set_max_operations(0)
    try:
        yield isl_context
    finally:
        isl_context.set_max_operations(limit)


def union_map(pieces: Iterable[str]) -> isl.UnionMap:
    """The union of relations given as text."""
    import islpy as isl

    with unlimited() as isl_context:
        found = isl.UnionMap.read_from_str(isl_context, with_points(pieces))
        return found.project_out(isl.dim_type.param, 0, found.dim(isl.dim_type.param))


def spell(expression: Expr, names: Sequence[str]) -> str:
    """An expression in isl's syntax."""
    text = str(expression.constant)
    for atom, factor in expression.terms:
        text += f" + {factor}*{_spell_atom(atom, names)}"
    return text


def _spell_atom(atom: Atom, names: Sequence[str]) -> str:
    if isinstance(atom, int):
        return names[atom]
    if isinstance(atom, Size):
        atom.of(())
    if isinstance(atom, Div):
        return f"floor(({spell(atom.numerator, names)})/{atom.divisor})"
    entries = ",".join(map(str, atom.table.known.entries))
    return f"@{spell(atom.operands[0], names)}#{entries}@"


_ENTRY = re.compile("@([^@#]*)#([^@#]*)@")
"""A lookup in a text: its place, and the entries of the table."""


def with_points(pieces: Iterable[str]) -> str:
    """The union of relations or sets given as text, whose lookups become parameters bound to the points of tables."""
    found, names = list(pieces), list[str]()
    for number, piece in enumerate(found):
        while (lookup := _ENTRY.search(piece)) is not None:
            names.append(f"entry{len(names)}")
            points = (f"({lookup[1]} = {k} and {names[-1]} = {e})" for k, e in enumerate(lookup[2].split(",")))
            piece = piece.replace(lookup[0], names[-1]) + f" and ({' or '.join(points)})"
        found[number] = piece
    text = f"{{ {'; '.join(found)} }}"
    return f"[{', '.join(names)}] -> {text}" if names else text


def domain(leaf: Leaf, names: Sequence[str]) -> list[str]:
    """The constraints of the instances of a statement."""
    box = [f"0 <= {name} < {scope.extent}" for name, scope in zip(names, leaf.chain, strict=True)]
    return box + [f"{spell(guard, names)} >= 0" for guard in leaf.guards]


def conjunction(constraints: Iterable[str]) -> str:
    """All of the constraints."""
    return " and ".join(constraints) or "true"


def memories(nest: Nest) -> list[MemoryEvents]:
    """The events of a program, memory by memory."""
    found: list[MemoryEvents] = []
    for buffer in nest.buffers:
        arrays = tuple(a for a in nest.arrays.values() if a.buffer is buffer)
        copies = private_scopes(nest, buffer) if any(buffer.reuse) else []
        depth = max((scope.depth + 1 for scope in copies), default=-1)
        events = tuple(_events(nest, buffer, arrays, copies, depth))
        found.append(MemoryEvents(nest, arrays, events, depth))
    return found


def _copy(leaf: Leaf | None, copies: Sequence[Scope], depth: int) -> Place:
    """The private copy that a statement uses: its owner and the iterations of all scopes down to the owner."""
    if depth < 0:
        return ()
    mine = [k for k, scope in enumerate(copies) if leaf is not None and scope in leaf.chain]
    inside = copies[mine[-1]].depth + 1 if mine else 0
    return const(mine[-1] + 1 if mine else 0), *(var(d) if d < inside else const(-1) for d in range(depth))


def _events(
    nest: Nest, buffer: Buffer, arrays: Sequence[Array], copies: Sequence[Scope], depth: int
) -> Iterable[Event]:
    for leaf in nest.leaves:
        for number, access in enumerate(leaf.accesses):
            if access.array.buffer is not buffer:
                continue
            kind = Kind.READ if number else Kind.FOLD if leaf.accumulate else Kind.WRITE
            name = f"R{leaf.order}_{number - 1}" if number else f"W{leaf.order}"
            element = (const(arrays.index(access.array)), *access.index, *(const(-1),) * (depth + 1))
            cell = (const(0), *physical_index(access, leaf.chain), *_copy(leaf, copies, depth))
            yield Event(name, leaf, access, kind, element, cell)


# Time


def sequential_time(event: Event, length: int) -> list[Expr | int]:
    """The time of an event with all scopes in order: positions alternate with iterations; reads precede the write."""
    time: list[Expr | int] = []
    for scope in event.leaf.chain:
        time += [scope.position, var(scope.depth)]
    time.append(event.leaf.position)
    return [*time, *(0,) * (2 * length + 1 - len(time)), int(event.kind is not Kind.READ)]


def lockstep_time(event: Event, length: int) -> list[Expr | int]:
    """The time of an event with vector lanes in lock step: all lanes read before the first one writes."""
    lanes = [s.depth for s in event.leaf.chain if s.mapping is Mapping.VECTOR]
    common = [0 if e in [var(d) for d in lanes] else e for e in sequential_time(event, length)]
    return [*common, *(var(d) for d in lanes), *(0,) * (length - len(lanes))]


def depth_of(memory: MemoryEvents) -> int:
    """The greatest number of scopes around an event."""
    return max((event.leaf.depth for event in memory.events), default=0)
