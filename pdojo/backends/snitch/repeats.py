"""Elimination of common subexpressions in straight code, such as packed copies of a number."""

from __future__ import annotations

from collections import Counter
from typing import TypeAlias

from pdojo.backends.snitch.code import EFFECTS, LOADS, STORES, CodeLine, Immediate, Register
from pdojo.backends.snitch.liveness import bodies

_Key: TypeAlias = tuple[str, tuple[tuple[Register, int], ...], Immediate]

_KEPT = 14
"""Number of latest loads that are still known after a store to other memory; more would take too many registers."""


def without_repeats(code: list[CodeLine]) -> list[CodeLine]:
    """The code without computations of values that a register holds already, except in hardware loops."""
    writes = Counter(register for instruction in code for register in instruction.defs)
    kept: list[CodeLine] = []
    names: dict[Register, Register] = {}
    block = _KnownValues()
    for instruction, repeated in zip(code, bodies(code), strict=True):
        uses = tuple(names.get(register, register) for register in instruction.uses)
        here = CodeLine(instruction.name, instruction.defs, uses, instruction.immediate)
        if repeated or _ends_block(here):
            block = _KnownValues()
        elif _is_pure(here) and writes[here.defs[0]] == 1:
            earlier = block.earlier(here)
            if earlier is not None:
                names[here.defs[0]] = earlier
                continue
        block.note(here)
        kept.append(here)
    return kept


class _KnownValues:
    """The values in registers, in straight code."""

    def __init__(self) -> None:
        self._computed: dict[_Key, Register] = {}
        self._loaded: dict[_Key, Register] = {}
        self._versions: Counter[Register] = Counter()

    def earlier(self, instruction: CodeLine) -> Register | None:
        """The register with a pure instruction's value; None if there is none, and then its own is recorded."""
        known = self._loaded if instruction.name in LOADS else self._computed
        uses = tuple((register, self._versions[register]) for register in instruction.uses)
        own = instruction.defs[0]
        found = known.setdefault((instruction.name, uses, instruction.immediate), own)
        return None if found is own else found

    def note(self, instruction: CodeLine) -> None:
        """Forget values that an instruction may change, in registers or memory."""
        self._versions.update(instruction.defs)
        if any(r.fixed is not None for r in instruction.defs):
            self._loaded.clear()
        elif instruction.name in STORES:
            apart = [(key, held) for key, held in self._loaded.items() if _apart(key, instruction.uses[0])]
            self._loaded = dict(apart[-_KEPT:])


def _apart(load: _Key, base: Register) -> bool:
    """Whether a load accesses another memory area than the register `base` points into."""
    area = load[1][0][0].area
    return area is not None and base.area is not None and area != base.area


def _ends_block(instruction: CodeLine) -> bool:
    return instruction.name in EFFECTS and instruction.name not in STORES


def _is_pure(instruction: CodeLine) -> bool:
    """Whether an instruction writes one register with a value that depends only on its operands (and memory)."""
    registers = (*instruction.defs, *instruction.uses)
    return (
        len(instruction.defs) == 1
        and instruction.name not in EFFECTS
        and instruction.defs[0] not in instruction.uses
        and not any(r.fixed is not None and r.kind == "f" for r in registers)
        and instruction.defs[0].fixed is None
    )
