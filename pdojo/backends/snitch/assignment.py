"""Names of registers, and an independent check of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from pdojo.backends.snitch.code import COPIES, CodeLine, Register
from pdojo.backends.snitch.liveness import ControlFlow, Numbering, tracked


@dataclass(frozen=True)
class Assignment:
    """Code and the names of its registers."""

    code: list[CodeLine]
    names: Mapping[Register, str]

    def name(self, register: Register) -> str:
        """The name of a register."""
        return register.fixed or self.names[register]


State: TypeAlias = tuple[int, int]
"""Two sets, as masks: registers whose value is still in its named register, and registers overwritten since."""


def check(assignment: Assignment) -> None:
    """Trace the values through the named registers. Raises AssertionError if an operand is overwritten before its use.

    An operand that some path to its use does not write is no error, because guards exclude such paths. The check shares
    no code with the allocation, so a mistake there becomes an error and not a wrong result.
    """
    code, flow, numbering = assignment.code, ControlFlow(assignment.code), Numbering(assignment.code)
    sharing: dict[str, int] = {}
    for register, bit in numbering.bits.items():
        name = assignment.name(register)
        sharing[name] = sharing.get(name, 0) | bit
    states: list[State | None] = [None] * len(code)
    states[0] = (0, 0)
    pending = [0]
    while pending:
        position = pending.pop()
        state = states[position]
        assert state is not None
        following = _after(assignment, numbering, sharing, code[position], state)
        for target in flow.successors[position]:
            known = states[target]
            merged = following if known is None else _merged(known, following)
            if merged != known:
                states[target] = merged
                pending.append(target)
    for instruction, state in zip(code, states, strict=True):
        wrong = 0 if state is None else numbering.mask(instruction.uses) & state[1]
        for register in numbering.members(wrong):
            name = assignment.name(register)
            assert register.fixed, f"{instruction} does not find its operand in {name}"
            assert name in ("zero", "sp"), f"{instruction} does not find the value that was passed in {name}"


def _after(
    assignment: Assignment, numbering: Numbering, sharing: Mapping[str, int], instruction: CodeLine, state: State
) -> State:
    kept, lost = state
    if is_left_out(assignment, instruction):
        # A copy inside one named register overwrites nothing.
        bit = numbering.mask(instruction.defs)
        return kept | bit, lost & ~bit
    for register in tracked(instruction.defs):
        bit = numbering.bits[register]
        overwritten = kept & sharing[assignment.name(register)] & ~bit
        kept, lost = (kept & ~overwritten) | bit, (lost | overwritten) & ~bit
    return kept, lost


def _merged(one: State, other: State) -> State:
    lost = one[1] | other[1]
    return (one[0] | other[0]) & ~lost, lost


def is_left_out(assignment: Assignment, instruction: CodeLine) -> bool:
    """Whether an instruction copies a register to itself, and so is omitted."""
    if instruction.name not in COPIES:
        return False
    return assignment.name(instruction.uses[0]) == assignment.name(instruction.defs[0])
