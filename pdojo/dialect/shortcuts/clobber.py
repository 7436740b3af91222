"""A quick proof that a value is lost: a read, and an earlier write of another element into the read's cell.

The first iterations of every scope, and those at which a tile of a dimension begins, are run in order. A value is lost
if a read finds another element in its cell than the one written before, and no iteration outside the sample writes the
wanted element in between. The ranges of the index expressions prove the latter. Sound, not complete: None proves
nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, product
from math import prod
from typing import TypeAlias

from pdojo.dialect.affine import Div, Expr, IndexArray, Lookup, Size
from pdojo.dialect.flow.coverage import common_depth
from pdojo.dialect.flow.shortcut import Answer
from pdojo.dialect.flow.storage_check import StorageQuestion, overwritten_reason
from pdojo.dialect.flow.uses import Use, describe_use
from pdojo.dialect.reason import Reason
from pdojo.dialect.view.paths import node_path

CLIP = 2
"""Iterations of each scope that are run."""

GUARDED = 5
"""Iterations to run of scopes that guards use; shifted statements start later."""

MOST_SLOTS = 8
"""Largest number of slots of a circular buffer that is run once around, plus one step."""

INSTANCES = 512
"""Most statement instances to run; if there are more, the outermost scopes run one iteration only."""

ROUNDS = 2
"""Number of times that all equations narrow the ranges of variables."""

Element: TypeAlias = tuple[str, tuple[int, ...]]
Box: TypeAlias = list[tuple[int, int]]
"""First and last value of each variable, outermost first."""


@dataclass(frozen=True, slots=True)
class Instance:
    """An access in one iteration of the scopes around it."""

    use: Use
    iteration: tuple[int, ...]

    @property
    def element(self) -> Element:
        """The array and the index."""
        return self.use.access.array.name, tuple([e.evaluate(self.iteration) for e in self.use.access.index])

    @property
    def cell(self) -> tuple[int, ...]:
        """The place in memory."""
        return tuple([e.evaluate(self.iteration) for e in self.use.cell])


def overwritten(question: StorageQuestion) -> Answer[Reason | None] | None:
    """A violation, if the first iterations show one."""
    found = lost_value(question.uses)
    if found is None:
        return None
    read, overwriting = found
    text = f"{describe_use(read.use, read.iteration)} needs a value that "
    text += f"{describe_use(overwriting.use, overwriting.iteration)} overwrites"
    return Answer(overwritten_reason(question.uses[0].access.array.name, text))


def lost_value(uses: Sequence[Use]) -> tuple[Instance, Instance] | None:
    """A read of a written element, and the write that overwrites it in between; None if none was found."""
    written: set[Element] = set()
    present: dict[tuple[int, ...], tuple[Instance, Element]] = {}
    for instance in _first_iterations(uses):
        use, element, cell = instance.use, instance.element, instance.cell
        found = present.get(cell) if use.reads and element in written else None
        if found is not None and found[1] != element and not _written_between(uses, found[0], instance):
            return instance, found[0]
        if use.writes:
            written.add(element)
            present[cell] = instance, element
    return None


def _first_iterations(uses: Sequence[Use]) -> list[Instance]:
    """The instances to run, in order; within a statement the reads come first."""
    found: list[tuple[tuple[int, ...], Instance]] = []
    for use, values in zip(uses, _iterations(uses), strict=True):
        guards, (start, *path) = use.leaf.guards, node_path(use.leaf)
        for iteration in product(*values):
            if not guards or all(g.evaluate(iteration) >= 0 for g in guards):
                time = (start, *chain.from_iterable(zip(iteration, path, strict=True)), use.writes)
                found.append((time, Instance(use, iteration)))
    found.sort(key=lambda entry: entry[0])
    return [instance for _, instance in found]


def _iterations(uses: Sequence[Use]) -> list[list[Sequence[int]]]:
    """The iterations to run of the scopes around each access; fewer if there are more accesses."""
    telling = [_telling(use) for use in uses]
    starts = [_starts(use) for use in uses]
    deepest = max(u.leaf.depth for u in uses)
    for spared in range(deepest + 1):
        found = [
            [_first(own.get(k, 1 if k < spared else CLIP), begun.get(k, ()), n) for k, n in enumerate(use.leaf.extents)]
            for use, own, begun in zip(uses, telling, starts, strict=True)
        ]
        if sum(prod(map(len, values)) for values in found) <= INSTANCES:
            return found
    return [[range(min(n, CLIP if k >= deepest - 3 else 1)) for k, n in enumerate(u.leaf.extents)] for u in uses]


def _first(count: int, starts: Sequence[int], extent: int) -> Sequence[int]:
    """The first `count` iterations of a scope, and the further ones at `starts`."""
    return [*range(min(extent, count)), *(start for start in starts if count <= start < extent)]


def _starts(use: Use) -> dict[int, list[int]]:
    """By depth, the iterations at which the second tile of a dimension begins."""
    found: dict[int, list[int]] = {}
    for expression in use.cell:
        for atom, _ in expression.terms:
            if isinstance(atom, Div) and atom.divisor > MOST_SLOTS and len(atom.numerator.terms) == 1:
                ((variable, step),) = atom.numerator.terms
                if isinstance(variable, int) and step > 0:
                    found.setdefault(variable, []).append(-(-(atom.divisor - atom.numerator.constant) // step))
    return {depth: sorted(set(starts)) for depth, starts in found.items()}


def _telling(use: Use) -> dict[int, int]:
    """By depth, the number of iterations to run of scopes that circular buffers count or that guards use."""
    found = {v: GUARDED for guard in use.leaf.guards for v in guard.variables()}
    for expression in use.cell:
        for atom, _ in expression.terms:
            if isinstance(atom, Div) and atom.divisor <= MOST_SLOTS:
                found |= dict.fromkeys(atom.numerator.variables(), atom.divisor + 1)
    return found


def _written_between(uses: Sequence[Use], first: Instance, last: Instance) -> bool:
    """Whether some instance after `first` and before `last` might write the element of `last` into its cell."""
    name, index = last.element
    writers = [u for u in uses if u.writes and u.access.array.name == name]
    return any(
        _solvable([*zip(writer.access.index, index, strict=True), *zip(writer.cell, last.cell, strict=True)], box)
        for writer in writers
        for after in _after(writer, first)
        for before in _before(writer, last)
        if (box := _intersection(after, before)) is not None
    )


def _after(writer: Use, moment: Instance) -> Iterator[Box]:
    """The instances of a write after `moment`, as boxes: each is later at the first scope that differs."""
    shared, box = _shared(writer, moment)
    for depth, value in enumerate(moment.iteration[:shared]):
        yield [*_fixed(moment.iteration[:depth]), (value + 1, box[depth][1]), *box[depth + 1 :]]
    if writer.leaf.order > moment.use.leaf.order:
        yield [*_fixed(moment.iteration[:shared]), *box[shared:]]


def _before(writer: Use, moment: Instance) -> Iterator[Box]:
    """The instances of a write before `moment`, as boxes."""
    shared, box = _shared(writer, moment)
    for depth, value in enumerate(moment.iteration[:shared]):
        yield [*_fixed(moment.iteration[:depth]), (0, value - 1), *box[depth + 1 :]]
    if writer.leaf.order < moment.use.leaf.order:
        yield [*_fixed(moment.iteration[:shared]), *box[shared:]]


def _shared(writer: Use, moment: Instance) -> tuple[int, Box]:
    return common_depth([writer.leaf, moment.use.leaf]), [(0, extent - 1) for extent in writer.leaf.extents]


def _fixed(iteration: Sequence[int]) -> Box:
    return [(value, value) for value in iteration]


def _intersection(first: Box, second: Box) -> Box | None:
    box = [(max(a, c), min(b, d)) for (a, b), (c, d) in zip(first, second, strict=True)]
    return box if all(low <= high for low, high in box) else None


def _solvable(equations: Sequence[tuple[Expr, int]], box: Box | None) -> bool:
    """Whether equations `expression = value` might have a solution in a box; the box is narrowed a few times."""
    for _ in range(ROUNDS):
        for expression, value in equations:
            if box is None or not _holds_somewhere(expression, value, box):
                return False
            box = _narrowed(expression, value, box)
    return box is not None


def _holds_somewhere(expression: Expr, value: int, box: Box) -> bool:
    low, high = _range(expression, box)
    return low <= value <= high


def _narrowed(expression: Expr, value: int, box: Box) -> Box | None:
    """The box without values that a variable cannot have if the expression equals `value`; None if it is empty."""
    low, high = _range(expression, box)
    narrowed = list(box)
    for atom, coefficient in expression.terms:
        if isinstance(atom, int):
            ends = sorted((coefficient * box[atom][0], coefficient * box[atom][1]))
            # coefficient * variable = value - rest, where the rest is between low - ends[0] and high - ends[1].
            least, most = value - high + ends[1], value - low + ends[0]
            if coefficient < 0:
                least, most = -most, -least
            scale = abs(coefficient)
            narrowed[atom] = max(narrowed[atom][0], -(-least // scale)), min(narrowed[atom][1], most // scale)
    return narrowed if all(first <= last for first, last in narrowed) else None


def _range(expression: Expr, box: Box) -> tuple[int, int]:
    """An enclosure of the values over a box."""
    low = high = expression.constant
    for atom, coefficient in expression.terms:
        if isinstance(atom, int):
            first, last = box[atom]
        elif isinstance(atom, Size):
            first, last = atom.bounds(())
        elif isinstance(atom, Lookup):
            table = atom.table
            first, last = (
                table.bounds if isinstance(table, IndexArray) else table.bounds(*_range(atom.operands[0], box))
            )
        else:
            first, last = (value // atom.divisor for value in _range(atom.numerator, box))
        ends = coefficient * first, coefficient * last
        low, high = low + min(ends), high + max(ends)
    return low, high
