"""Straight code as items, ordered only by their dependences.

An item is an instruction, or a branch over a few instructions that only compute registers (a maximum that keeps NaN, or
the choice between two values), or over many if it is taken nearly always. Instructions between blocks stay in place:
labels, other branches, hardware loops, the configuration and switching of streams, waiting, and uses of registers by
name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pdojo.backends.snitch.code import (
    BRANCHES,
    CONSTANTS,
    LOADS,
    SLOT,
    SP,
    STORES,
    STREAMS,
    ZERO,
    CodeLine,
    FrameOffset,
    Kind,
    RareLabel,
    Register,
)
from pdojo.backends.snitch.latency import is_float
from pdojo.backends.snitch.liveness import bodies

LONGEST = 512
"""Largest number of items of a block."""
_SKIPPED = 12
"""Largest number of instructions that an item's branch skips."""
_APART = frozenset(("label", "entry", "frep.o", "frep.end", "csrsi", "csrci", "scfgwi", "scfgr", "fence", "ret"))
_WIDTHS = {"d": 8, "w": 4, "h": 2, "b": 1}
_FREE = frozenset((ZERO, SP, *STREAMS))


@dataclass(eq=False, slots=True)
class Item:
    """Instructions that stay together, and their dependences."""

    instructions: Sequence[CodeLine]
    uses: tuple[Register, ...]
    """Registers that are read; for a branch also the registers that it writes, which may keep their old values."""
    defs: tuple[Register, ...]
    needs: int = 0
    """Number of items that must come before."""
    after: dict[int, bool] = field(default_factory=dict[int, bool])
    """Items that must come later, keyed by index; True if they wait for the result."""
    is_float: bool = field(init=False)
    """Whether it is one instruction of the floating-point unit."""
    size: int = field(init=False)
    """Cycles of the core to issue the item."""
    uses_unit: bool = field(init=False)
    """Whether the floating-point unit executes any of the instructions."""
    forwards: Sequence[Change] = field(init=False)
    """Changes of the registers in use when a walk forwards passes the item, keyed by kind of register."""
    backwards: Sequence[Change] = field(init=False)
    """Changes of the registers in use when a walk backwards passes the item, keyed by kind of register."""

    def __post_init__(self) -> None:
        # Computed once, because dozens of candidate orders use these values.
        self.is_float = len(self.instructions) == 1 and is_float(self.first)
        self.size = 1 if self.is_rare else sum(1 for i in self.instructions if i.name != "label")
        used = dict.fromkeys(self.uses)
        self.uses_unit = not self.is_rare and any(is_float(i) for i in self.instructions)
        self.forwards = _changes(self.defs, used)
        self.backwards = _changes(used, [r for r in self.defs if r not in used])

    @property
    def is_rare(self) -> bool:
        """Whether it is a branch that is taken nearly always, so that the rest hardly ever runs."""
        return isinstance(self.first.immediate, RareLabel)

    @property
    def first(self) -> CodeLine:
        """The only instruction, or the branch."""
        return self.instructions[0]

    @property
    def result(self) -> CodeLine:
        """The instruction that gives the result: the only one, or the last one that the branch skips."""
        return self.instructions[0] if len(self.instructions) == 1 else self.instructions[-2]


class Change(NamedTuple):
    """Registers of one kind that may become used, and registers that may become free."""

    kind: Kind
    begins: Sequence[Register]
    ends: Sequence[Register]


def _changes(begins: Iterable[Register], ends: Iterable[Register]) -> Sequence[Change]:
    taken = [register for register in begins if register.fixed is None]
    kinds: Iterable[Kind] = dict.fromkeys(register.kind for register in taken)
    return [Change(k, [r for r in taken if r.kind == k], [r for r in ends if r.kind == k]) for k in kinds]


def blocks(code: Sequence[CodeLine]) -> Iterator[tuple[int, list[Item]]]:
    """The blocks with at least two items, with their positions in `code`."""
    repeated = bodies(code)
    times = occurrences(code)
    jumps = Counter(str(i.immediate) for i in code if i.name in BRANCHES)
    start, items, position = 0, list[Item](), 0
    while position < len(code):
        item = None if repeated[position] else _item(code, position, jumps, times)
        if item is None or len(items) == LONGEST:
            if len(items) > 1:
                yield start, _ordered(items)
            items = []
        if item is None:
            position += 1
            continue
        if not items:
            start = position
        items.append(item)
        position += len(item.instructions)
    if len(items) > 1:
        yield start, _ordered(items)


def _item(code: Sequence[CodeLine], position: int, jumps: Counter[str], times: Counter[Register]) -> Item | None:
    """The item at a position; `jumps` counts the branches to each label, `times` the instructions with a register."""
    instruction = code[position]
    if instruction.name not in BRANCHES:
        return Item((instruction,), instruction.uses, instruction.defs) if _is_free(instruction) else None
    if instruction.name == "j":
        return None
    label = str(instruction.immediate)
    is_rare = isinstance(instruction.immediate, RareLabel)
    most = len(code) if is_rare else min(len(code), position + _SKIPPED + 2)
    end = next((k for k in range(position, most) if code[k].name == "label" and code[k].immediate == label), None)
    if end is None or end < position + 2:
        return None
    inside = code[position:end]
    if not _is_closed(code[position : end + 1], jumps):
        return None
    if not all(i.name in BRANCHES or i.name == "label" or (_is_free(i) and _is_computed(i)) for i in inside):
        return None
    # Registers that occur nowhere else are no concern of the other items.
    here = occurrences(inside)
    defs = tuple(dict.fromkeys(r for i in inside for r in i.defs if here[r] < times[r]))
    uses = tuple(dict.fromkeys(r for i in inside for r in i.uses if here[r] < times[r]))
    return Item(code[position : end + 1], tuple(dict.fromkeys((*uses, *defs))), defs)


def occurrences(code: Iterable[CodeLine]) -> Counter[Register]:
    """By register, the number of instructions that read or write it."""
    return Counter(r for i in code for r in dict.fromkeys((*i.defs, *i.uses)))


def _is_closed(inside: Sequence[CodeLine], jumps: Counter[str]) -> bool:
    """Whether all branches go forwards to labels inside, and nothing else goes to these labels."""
    places = {str(i.immediate): k for k, i in enumerate(inside) if i.name == "label"}
    branches = [(k, str(i.immediate)) for k, i in enumerate(inside) if i.name in BRANCHES]
    if any(label not in places or places[label] < k for k, label in branches):
        return False
    found = Counter(label for _, label in branches)
    return all(found[label] == jumps[label] for label in places)


def _is_free(instruction: CodeLine) -> bool:
    if instruction.name in _APART:
        return False
    return all(r.fixed is None or r in _FREE for r in (*instruction.defs, *instruction.uses))


def _is_computed(instruction: CodeLine) -> bool:
    """Whether an instruction touches neither memory nor streams, but for the table of constants."""
    is_constant = instruction.name in LOADS and instruction.uses[0].area == CONSTANTS
    touches = not is_constant and (instruction.name in LOADS or instruction.name in STORES)
    return not touches and not any(r in STREAMS for r in (*instruction.defs, *instruction.uses))


def _ordered(items: list[Item]) -> list[Item]:
    order = _DependenceFinder(items)
    for number, item in enumerate(items):
        order.add(number, item)
    return items


@dataclass
class _Access:
    number: int
    stores: bool
    base: Register
    version: int
    """Number of earlier writes to the base."""
    start: int | None
    """Bytes after the base; None for offsets in the frame outside of its slots."""
    size: int
    in_slots: bool


class _DependenceFinder:
    """Finds the dependences between items.

    Registers: a read follows the write, and a write follows earlier reads and writes of the register. Accesses of a
    stream keep their order. Memory: two accesses keep their order if one writes, unless their bytes are known to
    differ. If one of two accesses is a stream's, a region never reads a cell that it wrote, and no two streams write
    one cell (`analysis.streams`); so a stream's writes only have to follow earlier reads.
    """

    def __init__(self, items: Sequence[Item]) -> None:
        self.items = items
        self.written: dict[Register, int] = {}
        self.read: dict[Register, list[int]] = {}
        self.versions: Counter[Register] = Counter()
        self.accesses: list[_Access] = []
        self.pushes: list[int] = []
        self.popped: dict[Register, int] = {}
        self.pushed: dict[Register, int] = {}

    def add(self, number: int, item: Item) -> None:
        """Add the dependences of an item on the items before it."""
        for register in item.uses:
            if register in STREAMS:
                self._pop(number, register)
            elif register in self.written:
                self._edge(self.written[register], number, waits=True)
        if len(item.instructions) == 1:
            self._memory(number, item.first)
        for register in item.defs:
            if register in STREAMS:
                self._push(number, register)
            else:
                self._write(number, register)
        for register in item.uses:
            if register not in STREAMS:
                self.read.setdefault(register, []).append(number)

    def _write(self, number: int, register: Register) -> None:
        for reader in self.read.pop(register, ()):
            self._edge(reader, number)
        if register in self.written:
            self._edge(self.written[register], number)
        self.written[register] = number
        self.versions[register] += 1

    def _edge(self, before: int, after: int, *, waits: bool = False) -> None:
        if before == after:
            return
        known = self.items[before].after
        if after not in known:
            self.items[after].needs += 1
        known[after] = known.get(after, False) or waits

    def _pop(self, number: int, stream: Register) -> None:
        if stream in self.popped:
            self._edge(self.popped[stream], number)
        self.popped[stream] = number

    def _push(self, number: int, stream: Register) -> None:
        if stream in self.pushed:
            self._edge(self.pushed[stream], number)
        for popped in self.popped.values():
            self._edge(popped, number)
        for access in self.accesses:
            if not access.in_slots:
                self._edge(access.number, number)
        self.pushed[stream] = number

    def _memory(self, number: int, instruction: CodeLine) -> None:
        if instruction.name not in LOADS and instruction.name not in STORES:
            return
        access = self._access(number, instruction)
        for other in self.accesses:
            if (other.stores or access.stores) and not _apart(other, access):
                self._edge(other.number, number, waits=other.stores)
        if access.stores and not access.in_slots:
            for before in (*self.popped.values(), *self.pushed.values()):
                self._edge(before, number)
        self.accesses.append(access)

    def _access(self, number: int, instruction: CodeLine) -> _Access:
        base, immediate = instruction.uses[0], instruction.immediate
        in_slots = isinstance(immediate, FrameOffset) and immediate.area == SLOT
        start = immediate if isinstance(immediate, int) else None
        if isinstance(immediate, FrameOffset) and in_slots:
            start = immediate.offset
        width = _WIDTHS[instruction.name.rstrip("u")[-1]]
        return _Access(number, instruction.name in STORES, base, self.versions[base], start, width, in_slots)


def _apart(one: _Access, other: _Access) -> bool:
    """Whether two accesses are known to touch different bytes."""
    if one.in_slots != other.in_slots:
        return True
    if one.base is other.base and one.version == other.version and one.start is not None and other.start is not None:
        return one.start + one.size <= other.start or other.start + other.size <= one.start
    areas = one.base.area, other.base.area
    return None not in areas and areas[0] != areas[1]
