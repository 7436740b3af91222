"""Live registers at each position, and dead code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from pdojo.backends.snitch.code import BRANCHES, EFFECTS, CodeLine, Immediate, RareLabel, Register


@dataclass(eq=False)
class ControlFlow:
    """The control flow graph of a list of instructions."""

    code: Sequence[CodeLine]

    @cached_property
    def labels(self) -> dict[str, int]:
        """The positions of labels."""
        return {str(i.immediate): k for k, i in enumerate(self.code) if i.name == "label"}

    @cached_property
    def successors(self) -> list[tuple[int, ...]]:
        """The possible next positions of each position."""
        found: list[tuple[int, ...]] = []
        bodies: list[int] = []
        for position, instruction in enumerate(self.code):
            following = (position + 1,) if position + 1 < len(self.code) else ()
            match instruction.name:
                case "ret":
                    following = ()
                case "j":
                    following = (self.labels[str(instruction.immediate)],)
                case "frep.o":
                    bodies.append(position + 1)
                case "frep.end":
                    following = (*following, bodies.pop())
                case name if name in BRANCHES:
                    following = (*following, self.labels[str(instruction.immediate)])
                case _:
                    pass
            found.append(following)
        return found

    @cached_property
    def depths(self) -> list[int]:
        """The number of loops around each position, keyed by position."""
        changes = [0] * (len(self.code) + 1)
        for position, following in enumerate(self.successors):
            for target in following:
                if target <= position:
                    changes[target] += 1
                    changes[position + 1] -= 1
        depths: list[int] = []
        depth = 0
        for change in changes[:-1]:
            depth += change
            depths.append(depth)
        return depths


def frequency(depth: int) -> float:
    """The assumed number of runs of code inside of this number of loops."""
    return 10.0 ** min(depth, 8)


def tracked(registers: Sequence[Register]) -> list[Register]:
    """The registers that hold values, without stream registers: each read takes and each write adds an element."""
    return [r for r in registers if r.kind == "x" or r.fixed is None]


class Numbering:
    """Numbers of registers; sets of registers are integers with these bits."""

    def __init__(self, code: Sequence[CodeLine]) -> None:
        """Number all registers in the order of their first occurrence in the code."""
        self.registers: list[Register] = []
        self.bits: dict[Register, int] = {}
        for instruction in code:
            for register in (*tracked(instruction.defs), *tracked(instruction.uses)):
                if register not in self.bits:
                    self.bits[register] = 1 << len(self.registers)
                    self.registers.append(register)

    def mask(self, registers: Sequence[Register]) -> int:
        """The set of the registers as a mask."""
        total = 0
        for register in tracked(registers):
            total |= self.bits[register]
        return total

    def members(self, mask: int) -> list[Register]:
        """The registers in a mask."""
        found: list[Register] = []
        while mask:
            low = mask & -mask
            found.append(self.registers[low.bit_length() - 1])
            mask ^= low
        return found


def live_after(flow: ControlFlow, numbering: Numbering, *, strong: bool = False) -> list[int]:
    """By position, the set of registers whose values are used later.

    With `strong`, uses by instructions whose own results are unused do not count.
    """
    code, successors = flow.code, flow.successors
    uses = [numbering.mask(i.uses) for i in code]
    defs = [numbering.mask(i.defs) for i in code]
    repeated = bodies(code)
    before = [0] * len(code)
    after = [0] * len(code)
    changed = True
    while changed:
        changed = False
        for position in range(len(code) - 1, -1, -1):
            out = 0
            for target in successors[position]:
                out |= before[target]
            after[position] = out
            needed = uses[position]
            if strong and not repeated[position] and not is_needed(code[position], defs[position], out):
                needed = 0
            live = needed | (out & ~defs[position])
            if live != before[position]:
                before[position] = live
                changed = True
    return after


def bodies(code: Sequence[CodeLine]) -> list[bool]:
    """By position, whether it is in the body of a hardware loop, which must keep all its instructions."""
    found: list[bool] = []
    loops = 0
    for instruction in code:
        loops += (instruction.name == "frep.o") - (instruction.name == "frep.end")
        found.append(loops > 0)
    return found


def rarities(code: Sequence[CodeLine]) -> list[bool]:
    """By position, whether a branch that is taken nearly always skips it."""
    found: list[bool] = []
    behind: Immediate = None
    for instruction in code:
        if behind is not None and instruction.name == "label" and instruction.immediate == behind:
            behind = None
        found.append(behind is not None)
        if behind is None and instruction.name in BRANCHES and isinstance(instruction.immediate, RareLabel):
            behind = instruction.immediate
    return found


def is_needed(instruction: CodeLine, defs: int, live: int) -> bool:
    """Whether an instruction has effects, or its result is in `live`."""
    touches = any(r.fixed for r in (*instruction.defs, *instruction.uses) if r.kind == "f")
    return instruction.name in EFFECTS or touches or bool(defs & live)


def without_dead_code(code: list[CodeLine]) -> list[CodeLine]:
    """The code without instructions whose results are unused. Stores and uses of streams are kept, loads are not."""
    numbering = Numbering(code)
    after = live_after(ControlFlow(code), numbering, strong=True)
    repeated = bodies(code)
    return [
        i
        for i, live, kept in zip(code, after, repeated, strict=True)
        if kept or is_needed(i, numbering.mask(i.defs), live)
    ]
