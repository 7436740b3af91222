"""Scheduling of straight code: independent instructions fill the cycles in which others wait for results.

Unrolled copies of a statement with many instructions (`exp`, a maximum that keeps NaN) follow each other in the text,
and each is a chain in which every instruction waits for the previous one. The instructions of a block (`blocks`) are
ordered so that a core with the simulator's latencies can issue them earliest. Results do not change: every instruction
has the same operands, and the accesses of every stream and memory cell keep their order.

The number of registers limits how many chains overlap. If constants take too many, a loop's body loads them, once for
all copies. If values no longer fit in the registers, the code keeps its order.
"""

from __future__ import annotations

from bisect import insort
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Literal

from pdojo.backends.snitch.backwards import backward_order
from pdojo.backends.snitch.blocks import Item, blocks
from pdojo.backends.snitch.code import LOADS, STORES, STREAMS, CodeLine, Register
from pdojo.backends.snitch.latency import is_float, latency, occupancy, waits_for_idle
from pdojo.backends.snitch.liveness import Flow, Numbering, frequency, live_after, tracked, without_dead_code
from pdojo.backends.snitch.simulator.configuration import Timing

_SLACK = (0, 2, 6)
"""Registers to keep free, by number of failed attempts."""
_WEIGHTS = (0, 0.05, 0.4, 5)
"""Weights to try for a position in the text, in cycles: from interleaved copies to one copy after the other."""
_MARGINS = (0, 2, 4)
"""Registers to keep free while an order is built; the first number with which all values fit is used."""
_ONCE = 4
"""Fewest cycles that a new order must save outside of loops."""
_READY = 24
"""Largest number of candidates compared for each position."""
_PARTS = 4
"""Number of forms of a block with more and more of its constants loaded inside."""
_ROOM = {"x": 27, "f": 32}
_STREAMING = 29
"""Floating-point registers while streams are on."""


@dataclass
class _ScheduledBlock:
    items: list[Item]
    live: frozenset[Register]
    """Registers whose values at the start are needed."""
    live_out: frozenset[Register]
    room: dict[str, int]
    """Number of registers by kind, or the number in use in the text's order if that is larger."""
    timing: Timing

    @cached_property
    def results(self) -> list[tuple[bool, int]]:
        """By item, whether its result comes from the floating-point unit, and its latency in cycles."""
        return [(is_float(item.result), latency(item.result, self.timing)) for item in self.items]

    @cached_property
    def divisions(self) -> list[int]:
        """By item, the cycles for which it occupies the divider."""
        return [occupancy(item.first, self.timing) if item.is_float else 0 for item in self.items]

    @cached_property
    def uses(self) -> Counter[tuple[Register, int]]:
        """The number of items that read each value, given by its register and the number of writes before."""
        writes: Counter[Register] = Counter()
        found: Counter[tuple[Register, int]] = Counter()
        for item in self.items:
            found.update((r, writes[r]) for r in set(item.uses))
            writes.update(set(item.defs))
        return found

    @cached_property
    def writes(self) -> Counter[Register]:
        """The number of items that write each register."""
        return Counter(r for item in self.items for r in set(item.defs))

    def best(self, slack: int) -> _Walk | None:
        """The best of several orders that leave `slack` registers free; None if none does."""
        room = {kind: most - slack for kind, most in self.room.items()}
        heights = _heights(self.items, self.timing)
        slots = sum(item.size for item in self.items)
        best: _Walk | None = None
        for weight, forwards in product(_WEIGHTS, (True, False)):
            for margin in _MARGINS:
                left = {kind: most - margin for kind, most in room.items()}
                if forwards:
                    walk = _Walk(self)
                    walk.fill([height - weight * k for k, height in enumerate(heights)], left)
                else:
                    walk = _walked(self, backward_order(self.items, self.live_out, weight, left, self.timing))
                if all(walk.most[kind] <= most for kind, most in room.items()):
                    best = walk if best is None or walk.cycles < best.cycles else best
                    break
            if best is not None and best.cycles <= slots:
                break
        return best


@dataclass
class _PlacedBlock:
    """A block, its position in the code, and its chosen order."""

    start: int
    text: list[CodeLine]
    forms: list[_ScheduledBlock]
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
        numbering, flow = Numbering(code), Flow(code)
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
            plain = _ScheduledBlock(items, live - idle, out - idle, room, self.timing)
            walk = _walked(plain, range(len(items)))
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


def _innermost(code: Sequence[CodeLine], flow: Flow) -> dict[Register, int]:
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
    text: Sequence[CodeLine], block: _ScheduledBlock, constants: dict[Register, CodeLine]
) -> list[_ScheduledBlock]:
    """The block with a part of its constants, then all, loaded inside, so that they take no registers around it."""
    here = {r for i in text for r in i.defs}
    used = [r for r in dict.fromkeys(r for i in text for r in i.uses) if r in constants and r not in here]
    # Loading a constant costs the same however often it is read; few reads leave its register to others sooner.
    used.sort(key=lambda r: sum(r in i.uses for i in text))
    counts = dict.fromkeys(len(used) * part // _PARTS for part in range(1, _PARTS + 1))
    return [form for n in counts if n for form in _with_loads(text, block, constants, used[:n])]


def _with_loads(
    text: Sequence[CodeLine],
    block: _ScheduledBlock,
    constants: dict[Register, CodeLine],
    loaded: Sequence[Register],
) -> list[_ScheduledBlock]:
    """The block with some constants loaded inside; empty if it would not be one block."""
    copies = {r: Register("f") for r in loaded}
    loads = [CodeLine("fld", (copies[r],), constants[r].uses, constants[r].immediate) for r in loaded]
    rest = [CodeLine(i.name, i.defs, tuple(copies.get(r, r) for r in i.uses), i.immediate) for i in text]
    found = list(blocks([*loads, *rest]))
    if len(found) != 1 or sum(len(i.instructions) for i in found[0][1]) < len(text) + len(loads):
        return []
    tables = frozenset(constants[r].uses[0] for r in loaded)
    live, live_out = ((registers - set(loaded)) | tables for registers in (block.live, block.live_out))
    return [_ScheduledBlock(found[0][1], live, live_out, block.room, block.timing)]


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


def _walked(block: _ScheduledBlock, order: Iterable[int]) -> _Walk:
    walk = _Walk(block)
    for number in order:
        walk.append(number)
    return walk


def _heights(items: Sequence[Item], timing: Timing) -> list[int]:
    """Cycles from each item to the end along the longest chain, in which divisions wait for each other."""
    heights = [0] * len(items)
    divisions = 0
    for number in range(len(items) - 1, -1, -1):
        item = items[number]
        wait = latency(item.first, timing)
        height = max((heights[k] + (wait if waits else 1) for k, waits in item.after.items()), default=wait)
        if item.is_float and (busy := occupancy(item.first, timing)):
            height = divisions = max(height, divisions + busy)
        heights[number] = height
    return heights


class _Walk:
    """An order under construction, with the cycle of each issue and the number of registers in use."""

    def __init__(self, block: _ScheduledBlock) -> None:
        self.block, self.items = block, block.items
        self.order: list[int] = []
        self.core = self.unit = -1
        """The latest cycles in which the core and the floating-point unit issued."""
        self.divider = self.taken = 0
        """The cycles from which the divider can start another operation, and its input register can take one."""
        self.ready: dict[Register, int] = {}
        self.operands: dict[int, tuple[int, int]] = {}
        """Cycles from which core and floating-point unit have an item's operands, once all writers are issued."""
        self.earliest: dict[int, int] = {}
        """By item: the earliest cycle of a core's load from a place that the floating-point unit stored to."""
        self.uses = block.uses.copy()
        self.written: Counter[Register] = Counter()
        """By register, the number of writes so far."""
        self.live = set(block.live)
        self.count: Counter[str] = Counter(r.kind for r in self.live if r.fixed is None)
        self.most = {kind: self.count[kind] for kind in _ROOM}

    @property
    def cycles(self) -> int:
        """The cycle in which the last issue is done and the last needed result is ready."""
        return max(self.core, self.unit, *(self.ready.get(r, 0) for r in self.block.live_out), 0)

    def fill(self, priorities: Sequence[float], room: dict[str, int]) -> None:
        """Order all items: the one that can issue earliest comes next; ties are broken by priority, then by text."""
        needs = [item.needs for item in self.items]
        ready = [k for k, n in enumerate(needs) if n == 0]
        while ready:
            candidates = ready[:_READY]
            wanted = sorted(candidates, key=lambda k: (self._stall(k), -priorities[k], k))
            number = next((k for k in wanted if self._fits(k, room)), candidates[0])
            ready.remove(number)
            self.append(number)
            for following in self.items[number].after:
                needs[following] -= 1
                if needs[following] == 0:
                    insort(ready, following)

    def _issue(self, number: int) -> tuple[int, int]:
        """The cycles in which the core and the floating-point unit would issue an item."""
        found = self.operands.get(number)
        if found is None:
            found = self.operands[number] = self._operands(number)
        core = max(self.core + 1, found[0])
        # A branch item delays the core by its integer operands only.
        unit = max(self.unit + 1, core + 1, found[1])
        return core, max(unit, self.taken) if self.block.divisions[number] else unit

    def _operands(self, number: int) -> tuple[int, int]:
        """The cycles from which core and floating-point unit can read the operands of an item.

        These cycles are final: all items that write the operands are issued, and no item overwrites them before this
        one.
        """
        core, unit = self.earliest.get(number, 0), 0
        for register in self.items[number].uses:
            time = self.ready.get(register, 0)
            if register.kind == "f":
                unit = max(unit, time)
            else:
                core = max(core, time)
        return core, unit

    def _stall(self, number: int) -> int:
        core, unit = self._issue(number)
        stall = core - self.core - 1
        return stall + (unit - max(self.unit + 1, core + 1) if self.items[number].is_float else 0)

    def append(self, number: int) -> None:
        """Issue an item."""
        item = self.items[number]
        core, unit = self._issue(number)
        self.order.append(number)
        if item.is_float:
            self.core, self.unit = core, unit
            if waits_for_idle(item.first):
                self.core = max(core, unit - 1)
        else:
            self.core = core + item.size - 1
            if item.uses_unit:
                self.unit = unit
        if item.is_rare:
            self.ready |= {r: max(self.ready.get(r, 0), self.core) for r in item.defs}
            self._count(item)
            return
        in_unit, wait = self.block.results[number]
        done = (self.unit if in_unit else self.core) + wait
        if self.block.divisions[number]:
            self.taken = max(self.unit, self.divider)
            self.divider = self.taken + self.block.divisions[number]
            done = self.taken + wait
        self.ready |= dict.fromkeys((r for r in item.defs if r not in STREAMS), done)
        if item.first.name in STORES and item.is_float:
            self._delay_loads(item)
        self._count(item)

    def _delay_loads(self, item: Item) -> None:
        """Delay the core's loads from a place that the floating-point unit's store `item` writes."""
        for following, waits in item.after.items():
            first = self.items[following].first
            if waits and first.name in LOADS and not is_float(first):
                self.earliest[following] = self.unit + self.block.timing.float_load

    def _count(self, item: Item) -> None:
        for register in set(item.uses):
            self.uses[register, self.written[register]] -= 1
        self._end(item.uses)
        self.written.update(set(item.defs))
        for register in item.defs:
            if register.fixed is None and register not in self.live:
                self.live.add(register)
                self.count[register.kind] += 1
        for kind, count in self.count.items():
            self.most[kind] = max(self.most.get(kind, 0), count)
        self._end(item.defs)

    def _end(self, registers: Sequence[Register]) -> None:
        for register in registers:
            if register in self.live and self._dies(register, 0):
                self.live.remove(register)
                self.count[register.kind] -= 1

    def _dies(self, register: Register, left: int) -> bool:
        """Whether nothing but `left` items needs the current value of a register."""
        written = self.written[register]
        if self.uses[register, written] > left or register.fixed is not None:
            return False
        return register not in self.block.live_out or written < self.block.writes[register]

    def _fits(self, number: int, room: dict[str, int]) -> bool:
        """Whether the registers suffice after an item, or the item frees as many as it needs."""
        for kind, begins, ends in self.items[number].forwards:
            left = room[kind] - self.count[kind]
            if len(begins) <= left:
                continue
            new = sum(1 for r in begins if r not in self.live)
            freed = sum(1 for r in ends if r not in begins and r in self.live and self._dies(r, 1))
            if new > freed + max(left, 0):
                return False
        return True
