"""The memory plan of a model: places of intermediate tensors in one block, which they share when they live apart.

For sizes that are known when the model is called, the order of tensors that live at the same time is decided once, for
the greatest sizes. At others each lies directly behind those below it, so that a call takes the memory that it needs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from pdojo.backends.calling.arrays import ALIGNMENT
from pdojo.backends.common.placement import rounded
from pdojo.build.sizes import bounds_of
from pdojo.model.graph import Tensor
from pdojo.model.kernels import Step


@dataclass(frozen=True)
class MemoryPlan:
    """Offsets of intermediate tensors in bytes, multiples of the alignment of arrays; at the greatest sizes."""

    offsets: Mapping[Tensor, int]
    """Offsets in the block."""
    bytes: int
    """The size of the block."""
    inside: Mapping[Tensor, tuple[Tensor, int]]
    """The tensors that are parts of others, with the whole, which is no part, and the offset in it."""
    below: Mapping[Tensor, Sequence[Tensor]]
    """The tensors with places of their own in the order of these, each with those below it that live at the same
    time."""

    def place(self, tensor: Tensor) -> tuple[Tensor, int]:
        """The tensor with memory of its own in which a tensor lies, and the offset in it."""
        return self.inside.get(tensor, (tensor, 0))

    def at(self, number: Callable[[int], int]) -> tuple[dict[Tensor, int], int]:
        """The offsets and the size of the block at some sizes; `number` is the value of an extent there."""
        kinds, rows = self._rows
        sizes = [_bytes(tensor, number) for tensor in kinds]
        starts: list[int] = []
        ends: list[int] = []
        for kind, others in rows:
            starts.append(max([ends[other] for other in others], default=0))
            ends.append(starts[-1] + sizes[kind])
        offsets = dict(zip(self.below, starts, strict=True))
        for tensor, (whole, offset) in self.inside.items():
            if whole in offsets:
                offsets[tensor] = offsets[whole] + number(offset)
        return offsets, max(ends, default=0)

    @cached_property
    def _rows(self) -> tuple[list[Tensor], list[tuple[int, list[int]]]]:
        """A tensor of each size, and each tensor with a place of its own as numbers: its size, and those below it."""
        kinds: dict[object, Tensor] = {}
        for tensor in self.below:
            kinds.setdefault((tensor.shape, tensor.dtype), tensor)
        sizes = {key: place for place, key in enumerate(kinds)}
        numbers = {tensor: place for place, tensor in enumerate(self.below)}
        rows = [(sizes[t.shape, t.dtype], [numbers[other] for other in others]) for t, others in self.below.items()]
        return [*kinds.values()], rows


@dataclass(frozen=True)
class _Life:
    tensor: Tensor
    first: int
    last: int

    @property
    def bytes(self) -> int:
        """The size at the greatest sizes."""
        return _bytes(self.tensor, _greatest)

    def meets(self, other: _Life) -> bool:
        return self.first <= other.last and other.first <= self.last


def _greatest(extent: int) -> int:
    return bounds_of(extent)[1]


def _bytes(tensor: Tensor, number: Callable[[int], int]) -> int:
    """The memory that a tensor takes."""
    return rounded(number(tensor.bytes), ALIGNMENT)


def plan_memory(steps: Sequence[Step], apart: Mapping[Tensor, object]) -> MemoryPlan:
    """The places of all tensors that steps make, but for those `apart`, which have memory of their own.

    The largest tensors are placed first, each at the first place that no tensor living at the same time takes
    (Pisarchyk and Lee, "Efficient memory management for deep neural net inference", 2020: greedy by size).
    """
    placed: list[tuple[int, _Life]] = []
    inside = _inside(steps)
    for life in sorted(_lives(steps, inside, apart), key=lambda life: (-life.bytes, life.first)):
        offset = 0
        for start, other in sorted(placed, key=lambda place: place[0]):
            if life.meets(other):
                if offset + life.bytes <= start:
                    break
                offset = max(offset, start + other.bytes)
        placed.append((offset, life))
    placed.sort(key=lambda place: place[0])
    below = {
        life.tensor: [other.tensor for _, other in placed[:number] if other.meets(life)]
        for number, (_, life) in enumerate(placed)
    }
    plan = MemoryPlan({}, 0, inside, below)
    offsets, size = plan.at(_greatest)
    return replace(plan, offsets=offsets, bytes=size)


def _inside(steps: Sequence[Step]) -> dict[Tensor, tuple[Tensor, int]]:
    """The tensors that are computed in place as parts of others, which may be parts themselves."""
    found: dict[Tensor, tuple[Tensor, int]] = {}
    for step in reversed(steps):
        for tensor, offset in step.places:
            whole, start = found.get(step.outputs[0].memory, (step.outputs[0].memory, 0))
            found[tensor.memory] = whole, start + offset
    return found


def _lives(
    steps: Sequence[Step], inside: Mapping[Tensor, tuple[Tensor, int]], apart: Mapping[Tensor, object]
) -> list[_Life]:
    """The tensors of the block that are no parts, with the steps that write them first and use them last."""
    first: dict[Tensor, int] = {}
    last: dict[Tensor, int] = {}
    for number, step in enumerate(steps):
        for tensor in step.outputs:
            first.setdefault(inside.get(tensor.memory, (tensor.memory, 0))[0], number)
        for operand in (*step.inputs, *step.outputs):
            if isinstance(operand, Tensor):
                last[inside.get(operand.memory, (operand.memory, 0))[0]] = number
    return [_Life(tensor, number, last[tensor]) for tensor, number in first.items() if tensor not in apart]
