"""What straight code computes twice is computed once: packed copies of a number that several statements use."""

from __future__ import annotations

from collections import Counter
from typing import TypeAlias

from pdojo.backends.snitch.code import EFFECTS, LOADS, STORES, Immediate, Instruction, Register
from pdojo.backends.snitch.liveness import bodies

_Key: TypeAlias = tuple[str, tuple[tuple[Register, int], ...], Immediate]


def without_repeats(code: list[Instruction]) -> list[Instruction]:
    """The code without instructions that compute what a register has already; those in hardware loops stay."""
    writes = Counter(register for instruction in code for register in instruction.defs)
    kept: list[Instruction] = []
    names: dict[Register, Register] = {}
    block = _Block()
    for instruction, repeated in zip(code, bodies(code), strict=True):
        uses = tuple(names.get(register, register) for register in instruction.uses)
        here = Instruction(instruction.name, instruction.defs, uses, instruction.immediate)
        if repeated or _ends_block(here):
            block = _Block()
        elif _is_pure(here) and writes[here.defs[0]] == 1:
            earlier = block.known.get(block.key(here))
            if earlier is not None:
                names[here.defs[0]] = earlier
                continue
            block.note(here)
            block.known[block.key(here)] = here.defs[0]
            kept.append(here)
            continue
        block.note(here)
        kept.append(here)
    return kept


class _Block:
    """What is known in straight code."""

    def __init__(self) -> None:
        self.known: dict[_Key, Register] = {}
        self._versions: Counter[Register] = Counter()

    def key(self, instruction: Instruction) -> _Key:
        """What an instruction computes: equal ones give equal results."""
        uses = tuple((register, self._versions[register]) for register in instruction.uses)
        return instruction.name, uses, instruction.immediate

    def note(self, instruction: Instruction) -> None:
        """Registers have new values, memory may have."""
        for register in instruction.defs:
            self._versions[register] += 1
        if instruction.name in STORES or any(r.fixed is not None for r in instruction.defs):
            self.known = {key: register for key, register in self.known.items() if key[0] not in LOADS}


def _ends_block(instruction: Instruction) -> bool:
    return instruction.name in EFFECTS and instruction.name not in STORES


def _is_pure(instruction: Instruction) -> bool:
    """Whether an instruction gives one register a value that depends on what it reads only, and on memory for loads."""
    registers = (*instruction.defs, *instruction.uses)
    return (
        len(instruction.defs) == 1
        and instruction.name not in EFFECTS
        and instruction.defs[0] not in instruction.uses
        and not any(r.fixed is not None and r.kind == "f" for r in registers)
        and instruction.defs[0].fixed is None
    )
