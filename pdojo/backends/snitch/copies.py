"""Elimination of copies between registers in straight code: readers of the copy read the original."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pdojo.backends.snitch.code import ADDING, BRANCHES, COPIES, MARKS, CodeLine, Register
from pdojo.backends.snitch.liveness import ControlFlow, Numbering, bodies, live_after

_APART = BRANCHES | MARKS | frozenset(("frep.o", "csrsi", "csrci"))
"""Instructions that end straight code."""


def without_copies(code: list[CodeLine]) -> list[CodeLine]:
    """The code without copies whose readers can all read the original, except in hardware loops."""
    numbering = Numbering(code)
    after = live_after(ControlFlow(code), numbering)
    result = list(code)
    left_out: set[int] = set()
    for position, repeated in enumerate(bodies(code)):
        copy = result[position]
        if repeated or copy.name not in COPIES or any(r.fixed for r in (*copy.defs, *copy.uses)):
            continue
        readers = _readers(result, position, numbering, after)
        if readers is None:
            continue
        left_out.add(position)
        names = {copy.defs[0]: copy.uses[0]}
        for reader in readers:
            result[reader] = _renamed(result[reader], names)
    return [i for k, i in enumerate(result) if k not in left_out]


def _readers(code: Sequence[CodeLine], position: int, numbering: Numbering, after: Sequence[int]) -> list[int] | None:
    """The positions that read a copy; None if some reader cannot read the original."""
    (copy,), (original,) = code[position].defs, code[position].uses
    found: list[int] = []
    is_original = True
    for at in range(position + 1, len(code)):
        instruction = code[at]
        if instruction.name in _APART:
            # The branch itself may read the copy.
            return found if not numbering.mask((copy,)) & after[at - 1] else None
        if copy in instruction.uses:
            if not is_original or (copy in instruction.defs and instruction.name.startswith(ADDING)):
                return None
            found.append(at)
        if copy in instruction.defs:
            return found
        is_original = is_original and original not in instruction.defs
    return None


def _renamed(instruction: CodeLine, names: Mapping[Register, Register]) -> CodeLine:
    uses = tuple(names.get(r, r) for r in instruction.uses)
    return CodeLine(instruction.name, instruction.defs, uses, instruction.immediate)
