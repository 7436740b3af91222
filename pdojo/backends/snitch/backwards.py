"""Backward scheduling of straight code: values are computed just before their uses, and occupy few registers."""

from __future__ import annotations

from bisect import insort
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from pdojo.backends.snitch.blocks import Item
from pdojo.backends.snitch.code import Register
from pdojo.backends.snitch.latency import latency
from pdojo.snitch_sim.simulator.configuration import Timing

_READY = 24
"""Largest number of candidates compared for each position."""


def backward_order(
    items: Sequence[Item],
    live_out: Collection[Register],
    weight: float,
    room: Mapping[str, int],
    timing: Timing,
) -> list[int]:
    """An order in which few items wait for results, and if possible at most `room` registers are in use.

    The order is built from the end: the item with the longest chain of cycles before it is placed next. One position
    later in the text counts as `weight` cycles.
    """
    return _Backwards(items, live_out, weight, timing).order(room)


class _Backwards:
    """A schedule built from the end; time counts backwards, and an item is at least its latency before its users."""

    def __init__(self, items: Sequence[Item], live_out: Collection[Register], weight: float, timing: Timing) -> None:
        self.items = items
        self.live = set(live_out)
        self.count: Counter[str] = Counter(r.kind for r in self.live if r.fixed is None)
        self.before: list[list[int]] = [[] for _ in items]
        depths = [0] * len(items)
        self.waits = [latency(item.instructions[min(1, len(item.instructions) - 1)], timing) for item in items]
        for number, item in enumerate(items):
            for following, waits in item.after.items():
                self.before[following].append(number)
                depths[following] = max(depths[following], depths[number] + (self.waits[number] if waits else 1))
        self.depths = [depth + weight * k for k, depth in enumerate(depths)]
        self.now = 0
        self.times = [0] * len(items)
        self.earliest = [0] * len(items)
        """The earliest times, counted from the end, of items whose successors are all placed."""

    def order(self, room: Mapping[str, int]) -> list[int]:
        """The indices of all items, in order."""
        left = [len(item.after) for item in self.items]
        # Negated, so that the last item in the text comes first.
        ready = sorted(-k for k, n in enumerate(left) if n == 0)
        found: list[int] = []
        while ready:
            candidates = [-k for k in ready[:_READY]]
            wanted = sorted(candidates, key=lambda k: (self._stall(k), -self.depths[k], -k))
            number = next((k for k in wanted if self._fits(k, room)), candidates[0])
            ready.remove(-number)
            self._place(number)
            found.append(number)
            for earlier in self.before[number]:
                left[earlier] -= 1
                if left[earlier] == 0:
                    self.earliest[earlier] = self._earliest(earlier)
                    insort(ready, -earlier)
        return found[::-1]

    def _earliest(self, number: int) -> int:
        after = self.items[number].after
        return max((self.times[k] + (self.waits[number] if waits else 1) for k, waits in after.items()), default=0)

    def _stall(self, number: int) -> int:
        return max(0, self.earliest[number] - self.now)

    def _place(self, number: int) -> None:
        item = self.items[number]
        self.times[number] = max(self.now, self.earliest[number]) + item.size - 1
        self.now = self.times[number] + 1
        for register in item.defs:
            if register in self.live and register not in item.uses:
                self.live.remove(register)
                self.count[register.kind] -= register.fixed is None
        for register in item.uses:
            if register not in self.live:
                self.live.add(register)
                self.count[register.kind] += register.fixed is None

    def _fits(self, number: int, room: Mapping[str, int]) -> bool:
        """Whether the registers suffice before an item, or the item frees as many as it needs."""
        for kind, begins, ends in self.items[number].backwards:
            left = room[kind] - self.count[kind]
            if len(begins) <= left:
                continue
            new = sum(1 for r in begins if r not in self.live)
            freed = sum(1 for r in ends if r in self.live)
            if new > freed + max(left, 0):
                return False
        return True
