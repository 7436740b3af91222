"""The FPU's pipelines, and the arbiters that choose the result that leaves (fpnew_top.sv, fpnew_opgroup_block.sv).

A block has one pipeline for all formats; the block of comparisons has one for each format. One result leaves in a
cycle: an arbiter chooses among the blocks with a finished result, and the block's own arbiter among its pipelines. Both
are round-robin trees (rr_arb_tree.sv).
"""

from __future__ import annotations

from collections import deque
from functools import cache
from typing import TypeAlias

from pdojo.snitch_sim.assembler.instruction import Instruction
from pdojo.snitch_sim.simulator.configuration import Timing

FORMATS = "sdh"
"""Formats in the order of the arbiter of a block with several pipelines."""
_MULTIPLY_ADDS = ("fmadd", "fmsub", "fnmsub", "fnmadd", "vfmac", "vfmre")
_SUMS = ("fadd", "fsub", "fmul", "vfadd", "vfsub", "vfmul")
_DIVISIONS = ("fdiv", "fsqrt", "vfdiv", "vfsqrt")
_BLOCKS = 5
"""In the arbiter's order: sums and products, divisions, comparisons, conversions, sums of lanes."""

Grants: TypeAlias = list[list[tuple[int, int]]]
"""By turn and by mask of the inputs that ask: the input that leaves, and the next turn."""


@cache
def grants(size: int) -> Grants:
    """The decisions of a round-robin tree with `size` inputs.

    At a node, the right half wins if the left does not ask, or if both ask and the node's bit of the turn is set; the
    lowest bit belongs to the leaves. The next turn is the next asking input above the turn, else the lowest.
    """
    levels = (size - 1).bit_length()

    def winner(turn: int, asking: int, level: int, first: int) -> int:
        if level == 0:
            return first
        width = 1 << level - 1
        left, right = (asking >> at & (1 << width) - 1 for at in (first, first + width))
        goes_right = not left or (right and turn >> level - 1 & 1)
        return winner(turn, asking, level - 1, first + width if goes_right else first)

    table: Grants = []
    for turn in range(size):
        row = [(0, turn)]
        for asking in range(1, 1 << size):
            inputs = [k for k in range(size) if asking >> k & 1]
            following = next((k for k in inputs if k > turn), inputs[0])
            row.append((winner(turn, asking, levels, 0), following))
        table.append(row)
    return table


OUTER = grants(_BLOCKS)
"""The decisions of the arbiter of the blocks."""
INNER = grants(len(FORMATS))
"""The decisions of the arbiter of a block's pipelines."""


class Block:
    """A block of the FPU, with one pipeline or one for each format."""

    __slots__ = ("bit", "number", "pipelines", "turn")

    def __init__(self, number: int, stages: int, pipelines: int = 1) -> None:
        self.number = number
        self.bit = 1 << number
        self.turn = 0
        """The turn of the arbiter of the block's pipelines."""
        self.pipelines = [FpuPipeline(self, k, stages) for k in range(pipelines)]


class FpuPipeline:
    """A pipeline; a result leaves it after as many cycles as it has stages, or later if others leave first."""

    __slots__ = ("bit", "block", "count", "dividing", "number", "stages", "waiting")

    def __init__(self, block: Block, number: int, stages: int) -> None:
        self.block = block
        self.number = number
        self.bit = 1 << number
        self.stages = stages
        """Number of operations that it can hold."""
        self.count = 0
        """Number of operations in it."""
        self.waiting: tuple[int, int, float] | None = None
        """The operation in the divider's input register: its cycles, destination and result. None if it is empty."""
        self.dividing: deque[Instruction] = deque()
        """The divisions and roots in the divider, in order; empty for other pipelines."""


class Fpu:
    """The FPU's blocks."""

    def __init__(self, timing: Timing) -> None:
        self._sums = Block(0, timing.fma - 1)
        # One operation runs, and one waits in the input register.
        self._divider = Block(1, 2)
        self._comparisons = Block(2, timing.simple - 1, len(FORMATS))
        self._conversions = Block(3, timing.conversion - 1)
        self._products = Block(4, timing.fma - 1)

    def pipeline(self, name: str) -> FpuPipeline:
        """The pipeline of an instruction."""
        base = name.split(".")[0]
        if base in ("vfsum", "vfdotpex"):
            block = self._products
        elif base.startswith(("fcvt", "vfcpk")):
            block = self._conversions
        elif divides(name):
            block = self._divider
        elif base in (*_MULTIPLY_ADDS, *_SUMS):
            block = self._sums
        else:
            return self._comparisons.pipelines[FORMATS.index(format_of(name))]
        return block.pipelines[0]


def divides(name: str) -> bool:
    """Whether an instruction divides or takes roots."""
    return name.split(".")[0] in _DIVISIONS


def format_of(name: str) -> str:
    """The format of an instruction of the FPU's results or comparands: `d`, `s` or `h`."""
    letter = next((part for part in reversed(name.split(".")) if part in FORMATS), "")
    return letter or "s"  # fmv.x.w and fmv.w.x
