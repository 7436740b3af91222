"""Waits before packed divisions and roots for scalar ones that may be in the divider.

Each lane has a divider; scalar operations use only the divider of the lowest lane. A packed operation that comes while
a scalar one is there makes the upper lanes repeat results (`simulator.float_unit`). Reading the scalar result waits
until it, and all before it, have left the divider. The checks are in the finished code, whose registers have names,
because reordering and allocation decide what comes before a packed division.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

from pdojo.backends.snitch.assignment import Assignment, is_left_out
from pdojo.backends.snitch.code import STREAMS, ZERO, CodeLine, Register
from pdojo.backends.snitch.liveness import ControlFlow
from pdojo.backends.snitch.streaming import STATUS

_SCALAR = ("fdiv", "fsqrt")
_PACKED = ("vfdiv", "vfsqrt")
_WAIT = "fsgnj.d"
"""An instruction that copies a register to itself; unlike `fmv.d`, it is never left out."""

_Pending: TypeAlias = frozenset[str]
"""Registers and streams that the last scalar division may still be going to write, on some path."""


def with_waits(assignment: Assignment) -> Assignment:
    """The code in which no packed division or root comes while a scalar one may be in the divider."""
    names = [i.name.split(".")[0] for i in assignment.code]
    if not any(n in _SCALAR for n in names) or not any(n in _PACKED for n in names):
        return assignment
    waits = _Waits(assignment)
    waits.find()
    return replace(assignment, code=waits.code())


class _Waits:
    """The pending scalar divisions at each position of a function's code."""

    def __init__(self, assignment: Assignment) -> None:
        self.assignment = assignment
        self.lines = assignment.code
        self.pending: list[_Pending | None] = [None] * len(self.lines)
        """By position; None where no path arrives."""
        self.next = _next_packed(self.lines)
        self.constants = {ZERO: 0} | {line.defs[0]: line.immediate for line in self.lines if line.name == "li"}

    def find(self) -> None:
        """Follow the divisions on all paths."""
        flow = ControlFlow(self.lines)
        self.pending[0] = frozenset()
        positions = [0]
        while positions:
            position = positions.pop()
            state = self.pending[position]
            assert state is not None
            following = self._after(position, state)
            for target in flow.successors[position]:
                known = self.pending[target]
                if known is None or not following <= known:
                    self.pending[target] = following | (known or frozenset())
                    positions.append(target)

    def code(self) -> list[CodeLine]:
        """The code with the waits."""
        found: list[CodeLine] = []
        depth = 0
        for position, line in enumerate(self.lines):
            depth -= line.name == "frep.end"
            waits = self._waits(position, self.pending[position] or frozenset())
            assert not (waits and depth), f"{line} divides lanes behind a scalar in a hardware loop"
            for name in sorted(waits):
                register = Register("f", name)
                found.append(CodeLine(_WAIT, (register,), (register, register)))
            found.append(line)
            depth += line.name == "frep.o"
        return found

    def _waits(self, position: int, state: _Pending) -> _Pending:
        """The registers to wait for before an instruction."""
        packed = self.next[position]
        if packed is not None:
            assert not any(self._key(stream) in state for stream in STREAMS), "a region waits for its quotients"
            # The division itself waits for its operands.
            return state - {self._key(r) for r in packed.uses if r not in STREAMS}
        # Afterwards these names are streams, and reading them takes an element.
        return state & {r.fixed for r in STREAMS if r.fixed} if self.lines[position].name == "csrsi" else frozenset()

    def _after(self, position: int, state: _Pending) -> _Pending:
        line = self.lines[position]
        if is_left_out(self.assignment, line):
            return state
        left = state - self._waits(position, state)
        if line.name.split(".")[0] in _SCALAR:
            # Operations leave the divider in order.
            return frozenset((self._key(line.defs[0]),))
        if line.name == "scfgr":
            number = self.constants.get(line.uses[0])
            return left - {self._key(stream) for lane, stream in enumerate(STREAMS) if number == STATUS << 5 | lane}
        # An instruction also waits for the register that it overwrites.
        return left - {self._key(r) for r in (*line.uses, *line.defs) if r not in STREAMS}

    def _key(self, register: Register) -> str:
        return f"stream {register.fixed}" if register in STREAMS else self.assignment.name(register)


def _next_packed(code: list[CodeLine]) -> list[CodeLine | None]:
    """By position, the packed division before which scalars must have left the divider: at itself, and at a loop whose
    body has it first.
    """
    found = [line if line.name.split(".")[0] in _PACKED else None for line in code]
    starts: list[int] = []
    for position, line in enumerate(code):
        if line.name == "frep.o":
            starts.append(position)
        elif line.name == "frep.end":
            start = starts.pop()
            found[start] = next((packed for packed in found[start:position] if packed is not None), None)
    return found
