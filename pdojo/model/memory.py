"""The memory plan of a model: places of intermediate tensors in one block, which they share when they live apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pdojo.backends.calling.arrays import ALIGNMENT
from pdojo.model.graph import Tensor
from pdojo.model.kernels import Step


@dataclass(frozen=True)
class MemoryPlan:
    """Offsets of intermediate tensors in bytes, multiples of the alignment of arrays."""

    offsets: Mapping[Tensor, int]
    bytes: int


@dataclass(frozen=True)
class _Life:
    tensor: Tensor
    first: int
    last: int

    @property
    def bytes(self) -> int:
        return -(-self.tensor.bytes // ALIGNMENT) * ALIGNMENT

    def meets(self, other: _Life) -> bool:
        return self.first <= other.last and other.first <= self.last


def plan_memory(steps: Sequence[Step], apart: Mapping[Tensor, object]) -> MemoryPlan:
    """The places of all tensors that steps make, but for those `apart`, which have memory of their own.

    The largest tensors are placed first, each at the first place that no tensor living at the same time takes
    (Pisarchyk and Lee, "Efficient memory management for deep neural net inference", 2020: greedy by size).
    """
    placed: list[tuple[int, _Life]] = []
    for life in sorted(_lives(steps, apart), key=lambda life: (-life.bytes, life.first)):
        offset = 0
        for start, other in sorted(placed, key=lambda place: place[0]):
            if life.meets(other):
                if offset + life.bytes <= start:
                    break
                offset = max(offset, start + other.bytes)
        placed.append((offset, life))
    offsets = {life.tensor: offset for offset, life in placed}
    return MemoryPlan(offsets, max((offset + life.bytes for offset, life in placed), default=0))


def _lives(steps: Sequence[Step], apart: Mapping[Tensor, object]) -> list[_Life]:
    """The tensors of the block with the steps that write them first and use them last."""
    first: dict[Tensor, int] = {}
    last: dict[Tensor, int] = {}
    for number, step in enumerate(steps):
        for tensor in step.outputs:
            first.setdefault(tensor.memory, number)
        for operand in (*step.inputs, *step.outputs):
            if isinstance(operand, Tensor):
                last[operand.memory] = number
    return [_Life(tensor, number, last[tensor]) for tensor, number in first.items() if tensor not in apart]
