"""Scheduling of straight code: independent instructions fill the cycles in which others wait for results.

Unrolled copies of a statement with many instructions (`exp`, a maximum that keeps NaN) follow each other in the text,
and each is a chain in which every instruction waits for the previous one. The instructions of a block (`blocks`) are
ordered so that a core with the simulator's latencies can issue them earliest. Results do not change: every instruction
has the same operands, and the accesses of every stream and memory cell keep their order.

The number of registers limits how many chains overlap. If constants take too many, a loop's body loads them, once for
all copies. If values no longer fit in the registers, the code keeps its order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from pdojo.backends.snitch.blocks import blocks
from pdojo.backends.snitch.code import STREAMS, CodeLine, Register
from pdojo.backends.snitch.liveness import ControlFlow, Numbering, frequency, live_after, tracked, without_dead_code
from pdojo.backends.snitch.orders import ScheduledBlock, walked
from pdojo.snitch_sim.simulator.configuration import Timing

_SLACK = (0, 2, 6)
"""Registers to keep free, indexed by the number of failed attempts."""
_ONCE = 4
"""Fewest cycles that a new order must save outside of loops."""
_PARTS = 4
"""Number of forms of a block with more and more of its constants loaded inside."""
_ROOM = {"x": 27, "f": 32}
_STREAMING = 29
"""Floating-point registers while streams are on."""


@dataclass
class _PlacedBlock:
    """A block, its position in the code, and its chosen order."""

    start: int
    text: list[CodeLine]
    forms: list[ScheduledBlock]
    """The block as in the text, and with its constants loaded inside."""
    cycles: int
    """A new order must take fewer cycles than this."""
    depth: int
    """Number of loops around it."""
    chosen: tuple[list[CodeLine], list[CodeLine]] | None = None
    """The instructions before and after scheduling; None: the text's order is kept."""
    gain: int = 0
    """The cycles that the chosen order saves."""
    attempt: int = 0

    def choose(self) -> None:
        """Choose the best order if it is better than the text's."""
        self.chosen, best, self.gain = None, self.cycles, 0
        if self.attempt >= len(_SLACK):
            return
        for form in self.forms:
            walk = form.best(_SLACK[self.attempt])
            if walk is not None and walk.cycles < best:
                best = walk.cycles
                text = [i for item in form.items for i in item.instructions]
                self.chosen = text, [i for number in walk.order for i in form.items[number].instructions]
            if walk is not None and walk.cycles <= form.enough:
                break
        self.gain = self.cycles - best

    def touches(self, registers: Collection[Register]) -> bool:
        """Whether the block reads or writes one of the registers."""
        code = self.text if self.chosen is None else self.chosen[1]
        return any(r in registers for i in code for r in (*i.uses, *i.defs))


class Schedule:
    """The code of a function with its blocks scheduled."""

    def __init__(self, code: Sequence[CodeLine], timing: Timing) -> None:
        """Choose an order for each block."""
        self.original = list(code)
        self.timing = timing
        self.places = self._places()
        for place in self.places:
            place.choose()

    def _places(self) -> list[_PlacedBlock]:
        code = self.original
        numbering, flow = Numbering(code), ControlFlow(code)
        after = live_after(flow, numbering)
        streaming, on = list[bool](), False
        for instruction in code:
            on = (on or instruction.name == "csrsi") and instruction.name != "csrci"
            streaming.append(on)
        constants = loaded_constants(code)
        found: list[_PlacedBlock] = []
        innermost = _innermost(code, flow)
        for start, items in blocks(code):
            text = [i for item in items for i in item.instructions]
            before = numbering.mask(text[0].uses) | (after[start] & ~numbering.mask(text[0].defs))
            live, out = (frozenset(numbering.members(m)) for m in (before, after[start + len(text) - 1]))
            room = _ROOM | ({"f": _STREAMING} if streaming[start] else {})
            depth = flow.depths[start]
            # Values that only outer loops use can stay in memory here.
            idle = frozenset(r for r in live & out if innermost.get(r, 0) < depth)
            plain = ScheduledBlock(items, live - idle, out - idle, room, self.timing)
            walk = walked(plain, range(len(items)))
            forms = [replace(plain, room={kind: max(most, walk.most[kind]) for kind, most in room.items()})]
            if depth:
                forms += _with_constants(text, plain, constants)
            # Code that runs once is reordered only if the gain outweighs the loss of readability.
            found.append(_PlacedBlock(start, text, forms, walk.cycles - (0 if depth else _ONCE), depth))
        return found

    @property
    def code(self) -> list[CodeLine]:
        """The code in the chosen order."""
        before, after = self._assembled(0), self._assembled(1)
        check_values(before, after)
        # Loads of constants before the nest may be dead if blocks load their own.
        return without_dead_code(after) if len(after) > len(self.original) else after

    def _assembled(self, which: Literal[0, 1]) -> list[CodeLine]:
        found: list[CodeLine] = []
        position = 0
        for place in self.places:
            found += self.original[position : place.start]
            found += place.text if place.chosen is None else place.chosen[which]
            position = place.start + len(place.text)
        return found + self.original[position:]

    @property
    def cost(self) -> float:
        """The cycles of the blocks in their chosen orders, each times an assumed number of runs."""
        return sum((place.cycles - place.gain) * frequency(place.depth) for place in self.places)

    @property
    def cost_of_text(self) -> float:
        """The cycles of the blocks in the order of the text, each times an assumed number of runs."""
        return sum(place.cycles * frequency(place.depth) for place in self.places)

    def give_way(self, spilled: Collection[Register]) -> bool:
        """Keep more registers free in blocks that use spilled registers; False if no block is reordered any more."""
        moved = [place for place in self.places if place.chosen is not None]
        for place in [p for p in moved if p.touches(spilled)] or moved:
            place.attempt += 1
            place.choose()
        return bool(moved)


def _innermost(code: Sequence[CodeLine], flow: ControlFlow) -> dict[Register, int]:
    """By register, the greatest number of loops around an instruction that reads or writes it."""
    found: dict[Register, int] = {}
    for instruction, depth in zip(code, flow.depths, strict=True):
        for register in (*instruction.defs, *instruction.uses):
            found[register] = max(depth, found.get(register, 0))
    return found


def loaded_constants(code: Sequence[CodeLine]) -> dict[Register, CodeLine]:
    """The registers that always hold a number from the table, with the instructions that load them."""
    writes = Counter(r for i in code for r in i.defs)
    tables = {i.defs[0] for i in code if i.name == "la"}
    return {
        i.defs[0]: i
        for i in code
        if i.name == "fld" and i.uses[0] in tables and writes[i.uses[0]] == writes[i.defs[0]] == 1
    }


def _with_constants(
    text: Sequence[CodeLine], block: ScheduledBlock, constants: dict[Register, CodeLine]
) -> list[ScheduledBlock]:
    """The block with a part of its constants, then all, loaded inside, so that they take no registers around it."""
    here = {r for i in text for r in i.defs}
    used = [r for r in dict.fromkeys(r for i in text for r in i.uses) if r in constants and r not in here]
    # Loading a constant costs the same however often it is read; few reads leave its register to others sooner.
    used.sort(key=lambda r: sum(r in i.uses for i in text))
    counts = dict.fromkeys(len(used) * part // _PARTS for part in range(1, _PARTS + 1))
    return [form for n in counts if n for form in _with_loads(text, block, constants, used[:n])]


def _with_loads(
    text: Sequence[CodeLine],
    block: ScheduledBlock,
    constants: dict[Register, CodeLine],
    loaded: Sequence[Register],
) -> list[ScheduledBlock]:
    """The block with some constants loaded inside; empty if it would not be one block."""
    copies = {r: Register("f") for r in loaded}
    loads = [CodeLine("fld", (copies[r],), constants[r].uses, constants[r].immediate) for r in loaded]
    rest = [CodeLine(i.name, i.defs, tuple(copies.get(r, r) for r in i.uses), i.immediate) for i in text]
    found = list(blocks([*loads, *rest]))
    if len(found) != 1 or sum(len(i.instructions) for i in found[0][1]) < len(text) + len(loads):
        return []
    tables = frozenset(constants[r].uses[0] for r in loaded)
    live, live_out = ((registers - set(loaded)) | tables for registers in (block.live, block.live_out))
    return [ScheduledBlock(found[0][1], live, live_out, block.room, block.timing)]


def check_values(before: Sequence[CodeLine], after: Sequence[CodeLine]) -> None:
    """Raise AssertionError unless every instruction has equal operands and stream accesses in both orders.

    The check shares no code with the ordering, so a mistake there becomes an error and not a wrong result.
    """
    assert len(before) == len(after)
    one, other = _sources(before), _sources(after)
    assert one == other, "instructions do not find their operands"


def _sources(code: Sequence[CodeLine]) -> dict[int, tuple[object, ...]]:
    """By instruction (identity): the last writers of its operands, and its position in each stream's accesses."""
    last: dict[Register, int] = {}
    turns: Counter[tuple[Register, bool]] = Counter()
    found: dict[int, tuple[object, ...]] = {}
    for instruction in code:
        entry: list[object] = []
        for writes, registers in ((False, instruction.uses), (True, instruction.defs)):
            for register in dict.fromkeys(registers):
                if register in STREAMS:
                    turns[register, writes] += 1
                    entry.append(turns[register, writes])
                else:
                    entry.append(last.get(register))
        found[id(instruction)] = tuple(entry)
        for register in tracked(instruction.defs):
            last[register] = id(instruction)
    return found
