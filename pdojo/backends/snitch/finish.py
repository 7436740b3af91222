"""The last steps from code to a function: dead code removal, register allocation, layout of the stack frame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from pdojo.backends.snitch.assembly import Line
from pdojo.backends.snitch.assignment import Assignment, is_left_out
from pdojo.backends.snitch.code import ARGUMENT, ARRAYS, SLOT, CodeLine, FrameOffset, Kind, SnitchCode
from pdojo.backends.snitch.copies import without_copies
from pdojo.backends.snitch.divider import with_waits
from pdojo.backends.snitch.liveness import bodies, without_dead_code
from pdojo.backends.snitch.registers import SAVED, assign
from pdojo.backends.snitch.repeats import without_repeats

_ALIGNMENT = 16
"""Alignment of the stack in bytes (RISC-V calling convention)."""
_BRANCH = 4000
"""Bytes that a branch can always jump."""
INVERSE = {"beq": "bne", "bne": "beq", "blt": "bge", "bge": "blt", "bltu": "bgeu", "bgeu": "bltu"}
"""The opposite of each branch."""
_REACH = 2047
"""The greatest offset in a load or store."""


def finish(code: SnitchCode, arrays_bytes: int, name: str) -> tuple[list[Line], int]:
    """The lines of the function, and the size of its stack frame in bytes.

    `arrays_bytes` is the size of the arrays in the frame. Raises LoweringError if the registers do not suffice for a
    hardware loop.
    """
    assignment = assign(without_dead_code(without_copies(without_repeats(code.finished))), code, name)
    return _StackFrame(with_waits(assignment), code.slots, arrays_bytes).lines()


class _StackFrame:
    """The stack frame: saved registers, in reach of loads and stores; then slots, then arrays, then the caller's."""

    def __init__(self, assignment: Assignment, slots: int, arrays_bytes: int) -> None:
        self.assignment = assignment
        self.saved = self._saved()
        self.slots_at = 8 * len(self.saved)
        self.arrays_at = self.slots_at + 8 * slots
        used = self.arrays_at + arrays_bytes
        self.size = -(-used // _ALIGNMENT) * _ALIGNMENT

    def _saved(self) -> list[str]:
        written = {self.assignment.name(r) for i in self.assignment.code for r in i.defs}
        kinds = cast("tuple[Kind, Kind]", ("x", "f"))
        return [n for kind in kinds for n in SAVED[kind] if n in written]

    def lines(self) -> tuple[list[Line], int]:
        lines = [*self._moved(-self.size), *self._saves("sw", "fsd")]
        for instruction, repeated in zip(self.assignment.code, bodies(self.assignment.code), strict=True):
            # The instruction count of a hardware loop includes copies of a register to itself.
            if repeated or not is_left_out(self.assignment, instruction):
                lines += self._instruction(instruction)
        lines += [*self._saves("lw", "fld"), *self._moved(self.size), Line("ret")]
        return with_far_branches(lines), self.size

    def _moved(self, by: int) -> list[Line]:
        """Instructions that move the stack pointer; t0 is free at the start and the end of the function."""
        if by == 0:
            return []
        if -2048 <= by < 2048:
            return [Line("addi", ("sp",), ("sp",), by)]
        return [Line("li", ("t0",), (), by), Line("add", ("sp",), ("sp", "t0"))]

    def _saves(self, integer: str, floating: str) -> list[Line]:
        found: list[Line] = []
        for number, name in enumerate(self.saved):
            mnemonic, offset = floating if name.startswith("f") else integer, 8 * number
            stores = mnemonic in ("sw", "fsd")
            found.append(Line(mnemonic, () if stores else (name,), ("sp", name) if stores else ("sp",), offset))
        return found

    def _instruction(self, instruction: CodeLine) -> Sequence[Line]:
        if instruction.name in ("entry", "frep.end"):
            return ()
        defs = tuple(self.assignment.name(r) for r in instruction.defs)
        uses = tuple(self.assignment.name(r) for r in instruction.uses)
        immediate = instruction.immediate
        if not isinstance(immediate, FrameOffset):
            return (Line(instruction.name, defs, uses, immediate),)
        base = {SLOT: self.slots_at, ARRAYS: self.arrays_at, ARGUMENT: self.size}[immediate.area]
        offset = base + immediate.offset
        if offset <= _REACH:
            return (Line(instruction.name, defs, uses, offset),)
        # Only addresses of arrays and of far slots, and loads of arguments, get here; their destination register can
        # first hold the offset.
        assert instruction.name in ("addi", "lw"), instruction
        assert uses == ("sp",), instruction
        reached = (Line("li", defs, (), offset), Line("add", defs, (*defs, "sp")))
        return reached if instruction.name == "addi" else (*reached, Line("lw", defs, defs, 0))


def with_far_branches(lines: list[Line]) -> list[Line]:
    """The lines, with branches over more than 4 KiB replaced by opposite branches around jumps."""
    places: dict[str, int] = {}
    at: list[int] = []
    size = 0
    for line in lines:
        at.append(size)
        if line.name == "label":
            places[str(line.immediate)] = size
        else:
            # An upper bound: a constant takes at most two instructions, and a branch may become two.
            size += 8 if line.name in ("li", "la") or line.name in INVERSE else 4
    found: list[Line] = []
    for number, (line, place) in enumerate(zip(lines, at, strict=True)):
        if line.name in INVERSE and abs(places[str(line.immediate)] - place) > _BRANCH:
            near = f"{line.immediate}_{number}"
            jump = Line("j", immediate=line.immediate)
            found += [Line(INVERSE[line.name], (), line.uses, near), jump, Line("label", immediate=near)]
        else:
            found.append(line)
    return found
