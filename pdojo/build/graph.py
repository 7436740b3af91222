"""Definitions of arrays: the data that handles refer to and that the kernel is made of.

A definition is an input, or an array with the nests that write it. A nest writes one value per iteration, or one
reduction. Index expressions (`pdojo.dialect.affine`) are over the iterations of the nest, by position. Views of an
array, such as slices and transposes, are index expressions and no definitions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TypeAlias

from pdojo.build.sizes import greatest
from pdojo.dialect.affine import Expr, IndexArray, var
from pdojo.dialect.lookups import lookups_in, with_tables
from pdojo.dialect.strides import Strides
from pdojo.dialect.table import Table
from pdojo.dialect.view.nest import Constant, Index

_serial = count()


@dataclass(eq=False)
class Definition:
    """An array of the kernel that is made, compared by identity."""

    dtype: str
    """The element type in memory: signless integers."""
    shape: tuple[int, ...]
    writes: tuple[Write, ...] = ()
    """The nests that write it, in order; none for an input."""
    name: str = ""
    """The name of an input."""
    constant: bool = False
    """Whether callers bind the input once."""
    strides: Strides = ()
    """The strides of an input that is not dense."""
    keeps_order: bool = False
    """Whether its axes keep their order in memory, whatever the order of its readers."""
    casts: dict[tuple[str, str], Definition] = field(init=False, default_factory=dict["tuple[str, str]", "Definition"])
    """Its casts, keyed by function and type of handle, so that there is one of each."""
    serial: int = field(init=False, default_factory=lambda: next(_serial))
    """Its number in the order of creation."""

    @property
    def is_input(self) -> bool:
        """Whether the caller passes it."""
        return bool(self.name)

    def renew(self) -> None:
        """Put it after all definitions so far, on which its nests may depend."""
        self.serial = next(_serial)


@dataclass(frozen=True, slots=True)
class Indices(IndexArray):
    """An input of integers whose entries are indices."""

    definition: Definition = field(kw_only=True, compare=False, repr=False)
    """The input: names tell those of one kernel apart, so that equal kernels of others have equal expressions."""


@dataclass(frozen=True, slots=True)
class Read:
    """One element per iteration of an array."""

    definition: Definition
    index: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Computed:
    """A function of operands; as an operand itself, it is computed in the nest of the statement that takes it."""

    function: str
    operands: tuple[Operand, ...]
    dtype: str


Operand: TypeAlias = Read | Constant | Index | Computed


@dataclass(frozen=True, slots=True)
class Reduction:
    """Accumulation over the last iterations of a nest."""

    accumulate: str
    initial: Constant | Index
    rank: int
    """The number of scopes that are reduced."""
    running: bool = False
    """Whether every partial result is written, with one element of the target for each iteration."""
    exclusive: bool = False
    """Whether a running result leaves out the element of its own iteration."""


class Loop:
    """A loop around several nests, compared by identity: they run one after the other in each iteration."""


@dataclass(frozen=True, slots=True)
class Write:
    """A perfect nest that writes one value per iteration, or reduces over the last scopes."""

    extents: tuple[int, ...]
    target: tuple[Expr, ...]
    value: Operand
    guard: tuple[Expr, ...] = ()
    """Constraints `e >= 0`; iterations that break one write nothing."""
    reduction: Reduction | None = None
    loop: Loop | None = None
    """The loop that is the nest's first scope; all nests of one loop share this scope."""
    joins: str | None = None
    """The accumulation by which values join what earlier nests wrote; None replaces it."""

    @property
    def outer(self) -> int:
        """The number of scopes around a reduction; of all scopes if there is none."""
        return len(self.extents) - (0 if self.reduction is None else self.reduction.rank)

    @property
    def is_scatter(self) -> bool:
        """Whether its iterations may write one element several times, so that their order stays."""
        return self.joins is not None or any(isinstance(each.table, Indices) for each in lookups_in(self.target))

    @property
    def is_copy(self) -> bool:
        """Whether the nest copies elements of an array, all iterations alike."""
        return isinstance(self.value, Read) and self.reduction is None and not self.guard and not self.is_scatter

    def is_windowed(self, index: Sequence[Expr]) -> bool:
        """Whether each axis of an array that scopes run over has one of the results: terms are in windows, if any."""
        axes = [{atom for atom, _ in expression.terms} for expression in index if expression.terms]
        return self.reduction is None or all(len(axis.intersection(range(self.outer))) == 1 for axis in axes)

    def reads(self) -> Iterator[Read]:
        """All elements that the nest reads, also as indices."""
        yield from reads(self.value)
        yield from _entry_reads(self.target)

    def reindexed(self, extents: Sequence[int], replacements: Sequence[Expr], rank: int) -> Write:
        """The write over other iterations: `replacements` are the former ones over the new ones.

        `rank` is the number of scopes that are reduced.
        """

        box = greatest(extents)

        def put(expression: Expr) -> Expr:
            return expression.substitute(dict(enumerate(replacements)), box)

        reduction = None if self.reduction is None else replace(self.reduction, rank=rank)
        return self._mapped(put, tuple(extents), reduction)

    def with_tables(self, tables: Mapping[Table | IndexArray, Table | IndexArray]) -> Write:
        """The write with lookups in other tables and arrays of indices."""
        return self._mapped(lambda e: with_tables(e, tables, greatest(self.extents)), self.extents, self.reduction)

    def _mapped(self, put: Callable[[Expr], Expr], extents: tuple[int, ...], reduction: Reduction | None) -> Write:
        target, guard = tuple(map(put, self.target)), tuple(map(put, self.guard))
        return Write(extents, target, mapped(self.value, put), guard, reduction, self.loop, self.joins)


def identity(shape: Sequence[int]) -> tuple[Expr, ...]:
    """The index of an array of this shape over its own elements; 0 in dimensions of extent 1."""
    box = greatest(shape)
    return tuple(var(d).substitute({}, box) for d in range(len(shape)))


def mapped(operand: Operand, put: Callable[[Expr], Expr]) -> Operand:
    """The operand with `put` applied to every index expression."""
    match operand:
        case Read(definition, index):
            return Read(definition, tuple(map(put, index)))
        case Index(expression, dtype):
            return Index(put(expression), dtype)
        case Computed(function, operands, dtype):
            return Computed(function, tuple(mapped(o, put) for o in operands), dtype)
        case Constant():
            return operand


def expressions(write: Write) -> Iterator[Expr]:
    """All index expressions of a write."""
    yield from write.target
    yield from write.guard
    yield from within(write.value)
    if write.reduction is not None:
        yield from within(write.reduction.initial)


def within(operand: Operand) -> Iterator[Expr]:
    """All index expressions of an operand."""
    match operand:
        case Read(_, index):
            yield from index
        case Index(expression, _):
            yield expression
        case Computed(_, operands, _):
            for each in operands:
                yield from within(each)
        case Constant():
            pass


def reads(operand: Operand) -> Iterator[Read]:
    """All elements that an operand reads, also as indices."""
    match operand:
        case Read():
            yield operand
        case Computed(_, operands, _):
            for each in operands:
                yield from reads(each)
        case Constant() | Index():
            pass
    if not isinstance(operand, Computed):
        yield from _entry_reads(within(operand))


def _entry_reads(found: Iterable[Expr]) -> Iterator[Read]:
    """The entries of inputs in index expressions as reads."""
    for table, place in entries_in(found):
        yield Read(table.definition, place)


def entries_in(found: Iterable[Expr]) -> Iterator[tuple[Indices, tuple[Expr, ...]]]:
    """The entries of inputs in index expressions: the inputs, and the places."""
    for each in lookups_in(found):
        if isinstance(each.table, Indices):
            yield each.table, each.operands


def dtype_of(operand: Operand) -> str:
    """The element type of an operand."""
    return operand.definition.dtype if isinstance(operand, Read) else operand.dtype
