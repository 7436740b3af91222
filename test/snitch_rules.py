"""A small model of a Snitch core's rules, register by register, to compare the simulator with.

It knows time only: no values, memory, streams or nested loops. Every cycle computes the next state of all registers
from their present state, as RTL does. The model shares no code with the simulator.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from pdojo.snitch_sim.assembler.instruction import Instruction

RING = ("flt.d", "fmv.x.w", "fcvt.w.d", "fcvt.wu.d", "fmv.w.x", "fcvt.d.w", "fcvt.d.wu")
"""Moves between register files that go through the ring."""
ALU = ("addi", "add", "lui", "bne", "jalr")
DIVIDER = 1
ROUNDS = {"d": 13, "s": 6}
"""Iterations of an inexact quotient."""


def place(name: str) -> tuple[int, int, int]:
    """Block, format, and number of stages of an instruction of the FPU."""
    base, letter = name.split(".")[0], name.split(".")[-1]
    if base in ("fdiv", "fsqrt", "vfdiv"):
        return DIVIDER, 0, 1
    if base == "vfsum":
        return 4, 0, 3
    if base.startswith(("fcvt", "vfcpk")):
        return 3, 0, 2
    if base.removeprefix("v") in ("fadd", "fsub", "fmul", "fmadd", "fmac"):
        return 0, 0, 3
    return 2, {"d": 1, "h": 2}.get(letter, 0), 1


def tree(asks: Sequence[bool], turn: int) -> int | None:
    """The winner of a tree of nodes with two inputs each; a bit of `turn` decides if both ask."""
    nodes: list[int | None] = [k if ask else None for k, ask in enumerate(asks)]
    while len(nodes) > 1:
        if len(nodes) % 2:
            nodes.append(None)
        pairs = zip(nodes[::2], nodes[1::2], strict=True)
        nodes = [right if left is None or (right is not None and turn & 1) else left for left, right in pairs]
        turn >>= 1
    return nodes[0]


def next_turn(asks: Sequence[bool], turn: int) -> int:
    """The next input after `turn` that asks."""
    inputs = [k for k, ask in enumerate(asks) if ask]
    return next((k for k in inputs if k > turn), inputs[0])


@dataclass(eq=False)
class Op:
    """An instruction in flight."""

    instruction: Instruction

    def __post_init__(self) -> None:
        i = self.instruction
        letters = i.encoding.operands.split(",")
        self.name = i.name
        self.floats = i.name[0] in "fv" and i.name != "frep.o"
        self.direct = self.floats and not {"d", "s"}.isdisjoint(letters) and i.name not in RING
        self.integers = {r for letter, r in zip("st", (i.rs1, i.rs2), strict=True) if letter in letters}
        self.integers |= {i.rs1} if "o" in letters else set()
        self.field = i.encode() >> 7 & 31
        self.to_core = "d" in letters
        self.sources = {{"S": i.rs1, "T": i.rs2, "R": i.rs3}[letter] for letter in letters if letter in "STR"}
        self.sources |= {i.rd} if i.name.startswith(("vfsum", "vfmac")) else set()
        self.target = i.rd if "D" in letters else None


Before: TypeAlias = tuple[set[int], list[Op], list[Op], tuple[int, int] | None, list[Op]]
"""The state before a cycle: FP scoreboard, offloaded instructions, ring, hardware loop, answers."""
Leaving: TypeAlias = tuple[tuple[int, int], Op] | None
"""The result that leaves the FPU, with its block and format."""


@dataclass
class Machine:
    """The registers of the core complex, and the cycles in which instructions have issued."""

    stream: Sequence[Instruction]
    """The instructions in the order in which the core executes them."""
    core: list[int] = field(default_factory=list[int])
    unit: list[int] = field(default_factory=list[int])

    def __post_init__(self) -> None:
        self.now = 0
        self.integers: set[int] = set()
        """The core's scoreboard."""
        self.floats: set[int] = set()
        """The FP subsystem's scoreboard."""
        self.offload: list[Op] = []
        self.ring: list[Op] = []
        self.loop: tuple[int, int] | None = None
        """Instructions and iterations of the hardware loop."""
        self.at = self.iteration = 0
        self.stages: dict[tuple[int, int], list[Op | None]] = {}
        self.divider: Op | None = None
        self.left = 0
        """Cycles until the divider's result is done."""
        self.turns = dict.fromkeys(range(-1, 5), 0)
        """The arbiters' turns: of the FPU (-1), and of its blocks."""
        self.answers: list[Op] = []

    def run(self, limit: int = 100_000) -> tuple[list[int], list[int]]:
        """The cycles of issues in the core and in the FP subsystem."""
        while len(self.core) < len(self.stream) or self.offload or self.ring:
            self.step()
            assert self.now < limit
        return self.core, self.unit

    def step(self) -> None:
        """Advance by one cycle."""
        before: Before = set(self.floats), list(self.offload), list(self.ring), self.loop, list(self.answers)
        leaving = self._leaving()
        head = self._head(before[2])
        self._issue(head, before, leaving)
        answered = self._core(before)
        self._advance(leaving)
        if leaving is not None:
            op = leaving[1]
            if op.to_core:
                self.answers.append(op)
            else:
                assert op.target is not None
                self.floats.discard(op.target)
        if answered is not None:
            self.integers.discard(answered.instruction.rd)
        self.now += 1

    def _outputs(self) -> dict[tuple[int, int], Op]:
        found = {key: stages[-1] for key, stages in self.stages.items() if key[0] != DIVIDER}
        if self.divider is not None and self.left == 0:
            found[DIVIDER, 0] = self.divider
        return {key: op for key, op in found.items() if op is not None}

    def _leaving(self) -> Leaving:
        """The result that leaves the FPU."""
        outputs = self._outputs()
        if not outputs:
            return None
        blocks = [any(key[0] == block for key in outputs) for block in range(5)]
        block = tree(blocks, self.turns[-1])
        assert block is not None
        formats = [(block, k) in outputs for k in range(6)]
        chosen = tree(formats, self.turns[block])
        assert chosen is not None
        op = outputs[block, chosen]
        if op.to_core and len(self.answers) >= 2:
            return None
        self.turns[-1] = next_turn(blocks, self.turns[-1])
        self.turns[block] = next_turn(formats, self.turns[block])
        return (block, chosen), op

    def _head(self, ring: list[Op]) -> Op | None:
        """The instruction at the end of the ring."""
        return ring[self.at] if self.at < len(ring) else None

    def _free(self, key: tuple[int, int], leaving: Leaving) -> bool:
        """Whether the first stage of a pipeline takes an operation."""
        stages = self.stages[key]
        if key[0] == DIVIDER:
            idle = self.divider is None or leaving is not None
            return stages[0] is None or idle
        return None in stages or leaving is not None

    def _issue(self, head: Op | None, before: Before, leaving: Leaving) -> None:
        floats, offload, ring, loop, _ = before
        op = head
        if op is None and offload and offload[0].direct:
            op = offload[0]
        self.entering: tuple[tuple[int, int], Op] | None = None
        if op is not None:
            block, number, count = place(op.name)
            self.stages.setdefault((block, number), [None] * count)
            busy = floats & (op.sources | ({op.target} if op.target is not None else set()))
            mine = leaving if leaving is not None and leaving[0] == (block, number) else None
            if not busy and self._free((block, number), mine):
                self.unit.append(self.now)
                self.entering = (block, number), op
                if op.target is not None:
                    self.floats.add(op.target)
                if op is head:
                    self._next()
                else:
                    self.offload.pop(0)
        if offload and offload[0].name == "frep.o" and loop is None:
            assert not ring, "a hardware loop behind instructions that have not issued"
            self.offload.pop(0)
            self.loop = offload[0].instruction.imm, self._trips
        elif offload and offload[0].floats and not offload[0].direct and len(ring) < 32:
            self.ring.append(self.offload.pop(0))

    def _next(self) -> None:
        if self.loop is None:
            self.ring.pop(0)
            return
        count, trips = self.loop
        self.at += 1
        if self.at == count:
            self.at, self.iteration = 0, self.iteration + 1
            if self.iteration == trips:
                del self.ring[:count]
                self.loop, self.iteration = None, 0

    def _core(self, before: Before) -> Op | None:
        """Issue in the core; returns the answer that it writes."""
        port = False
        if len(self.core) < len(self.stream):
            op = Op(self.stream[len(self.core)])
            if not self.integers & (op.integers | {op.field}):
                if op.name in ALU:
                    self.core.append(self.now)
                    port = "d" in op.instruction.encoding.operands and op.instruction.rd != 0
                elif len(before[1]) < 2:
                    self.core.append(self.now)
                    self.offload.append(op)
                    if op.to_core and op.instruction.rd:
                        self.integers.add(op.instruction.rd)
                if op.name == "addi" and op.instruction.rs1 == 0:
                    self._constant = op.instruction.imm
                if op.name == "frep.o":
                    self._trips = self._constant + 1
        return self.answers.pop(0) if not port and before[4] else None

    def _advance(self, leaving: Leaving) -> None:
        """Move the pipelines on."""
        for key, stages in self.stages.items():
            mine = leaving is not None and leaving[0] == key
            if key[0] == DIVIDER:
                self._divide(stages, finished=mine)
                continue
            if mine:
                stages[-1] = None
            for k in range(len(stages) - 1, 0, -1):
                if stages[k] is None:
                    stages[k], stages[k - 1] = stages[k - 1], None
            if self.entering is not None and self.entering[0] == key:
                assert stages[0] is None
                stages[0] = self.entering[1]

    def _divide(self, stages: list[Op | None], *, finished: bool) -> None:
        if self.divider is not None and self.left:
            self.left -= 1
        if finished:
            self.divider = None
        if self.divider is None and stages[0] is not None:
            self.divider, stages[0] = stages[0], None
            self.left = 5 + ROUNDS[self.divider.name.split(".")[-1]]
        if self.entering is not None and self.entering[0] == (DIVIDER, 0):
            assert stages[0] is None
            stages[0] = self.entering[1]
