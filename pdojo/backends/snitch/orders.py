"""Orders of a block: their cycles on a core, and the registers that they need."""

from __future__ import annotations

from bisect import insort
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

from pdojo.backends.snitch.backwards import backward_order
from pdojo.backends.snitch.blocks import Item
from pdojo.backends.snitch.code import LOADS, STORES, STREAMS, Register
from pdojo.backends.snitch.latency import is_float, latency, occupancy, waits_for_idle
from pdojo.snitch_sim.simulator.configuration import Timing

_WEIGHTS = (0, 0.05, 0.4, 5)
"""Weights to try for a position in the text, in cycles: from interleaved copies to one copy after the other."""
_LARGE = 160
"""Number of items from which fewer orders are tried, if one of these fits in the registers."""
_MARGINS = (0, 2, 4)
"""Registers to keep free while an order is built; the first number with which all values fit is used."""
_SPARE = 32
"""A waiting cycle for so many instructions is not worth another attempt."""
_READY = 24
"""Largest number of candidates compared for each position."""


@dataclass
class ScheduledBlock:
    """A block, and the resources that limit its order."""

    items: list[Item]
    live: frozenset[Register]
    """Registers whose values at the start are needed."""
    live_out: frozenset[Register]
    room: dict[str, int]
    """Number of registers, keyed by kind, or the number in use in the text's order if that is larger."""
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
    def enough(self) -> int:
        """Cycles of an order that is not worth improving: hardly more than the core needs to issue the items."""
        slots = sum(item.size for item in self.items)
        return slots + slots // _SPARE

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

    @cached_property
    def ways(self) -> list[list[int] | None]:
        """The ways to build an order: forwards, by cycles from each item to the end, and backwards (None)."""
        # Divisions that wait for each other ask for many values at a time: perhaps for more than the registers hold.
        chains = [_heights(self.items, self.timing, in_turn=in_turn) for in_turn in (True, False)]
        return [chains[0], None, *([] if chains[0] == chains[1] else [chains[1]])]

    def best(self, slack: int) -> Walk | None:
        """The best of several orders that leave `slack` registers free; None if none does."""
        room = {kind: most - slack for kind, most in self.room.items()}
        best: Walk | None = None
        is_large = len(self.items) > _LARGE
        weights = (*_WEIGHTS[::2], *_WEIGHTS[1::2]) if is_large else _WEIGHTS
        for weight, heights in product(weights, self.ways):
            if best is not None and is_large and weight in _WEIGHTS[1::2]:
                break
            for margin in _MARGINS:
                left = {kind: most - margin for kind, most in room.items()}
                if heights is not None:
                    walk = Walk(self)
                    walk.fill([height - weight * k for k, height in enumerate(heights)], left)
                else:
                    walk = walked(self, backward_order(self.items, self.live_out, weight, left, self.timing))
                if all(walk.most[kind] <= most for kind, most in room.items()):
                    best = walk if best is None or walk.cycles < best.cycles else best
                    break
            if best is not None and best.cycles <= self.enough:
                break
        return best


def walked(block: ScheduledBlock, order: Iterable[int]) -> Walk:
    """An order of a block, with its cycles."""
    walk = Walk(block)
    for number in order:
        walk.append(number)
    return walk


def _heights(items: Sequence[Item], timing: Timing, *, in_turn: bool) -> list[int]:
    """Cycles from each item to the end along the longest chain; with `in_turn`, divisions wait for each other."""
    heights = [0] * len(items)
    divisions = 0
    for number in range(len(items) - 1, -1, -1):
        item = items[number]
        wait = latency(item.first, timing)
        height = max((heights[k] + (wait if waits else 1) for k, waits in item.after.items()), default=wait)
        if in_turn and item.is_float and (busy := occupancy(item.first, timing)):
            height = divisions = max(height, divisions + busy)
        heights[number] = height
    return heights


class Walk:
    """An order under construction, with the cycle of each issue and the number of registers in use."""

    def __init__(self, block: ScheduledBlock) -> None:
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
        self.most = {kind: self.count[kind] for kind in block.room}

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
        # A branch delays the core only until its integer operands are ready.
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
