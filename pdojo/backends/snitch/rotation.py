"""Loops that begin with the divisions of the previous iteration, so that the divider works during the other code.

A body `A; B`, where B are the divisions and all that depends on them, becomes `A` before the loop, `B; A` in it, and
`B` after it. The order of execution is the same; only now the divisions and the code of the next iteration, which do
not wait for each other, are straight code, and can be interleaved.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from pdojo.backends.snitch.blocks import Item, blocks, occurrences
from pdojo.backends.snitch.code import BRANCHES, CodeLine, Immediate, RareLabel, Register
from pdojo.backends.snitch.latency import occupancy
from pdojo.snitch_sim.simulator.configuration import Timing

_FEWEST = 2
"""Fewest divisions in a body; during a single one, the rest of the code runs anyway."""


def rotated(code: Sequence[CodeLine], timing: Timing) -> list[CodeLine]:
    """The code with loops of straight code rotated if they divide several times. Loops run at least twice."""
    found: list[CodeLine] = []
    times = occurrences(code)
    position = 0
    for start, items, control in _loops(code):
        parts = _parts(items, control, timing)
        if parts is None:
            continue
        first, second = parts
        end = start + sum(len(i.instructions) for i in items)
        found += code[position : start - 1]
        found += [*_clone(first, times), code[start - 1], *second, *first, code[end], *_clone(second, times)]
        position = end + 1
    return found + list(code[position:])


def _loops(code: Sequence[CodeLine]) -> Iterator[tuple[int, list[Item], CodeLine]]:
    """The loops whose body is one block: its position after the label, its items, and the branch back."""
    for start, items in blocks(code):
        end = start + sum(len(i.instructions) for i in items)
        if start == 0 or end >= len(code):
            continue
        label, branch = code[start - 1], code[end]
        if label.name == "label" and branch.name in BRANCHES and branch.immediate == label.immediate:
            yield start, items, branch


def _parts(items: Sequence[Item], control: CodeLine, timing: Timing) -> tuple[list[CodeLine], list[CodeLine]] | None:
    """The instructions before the divisions; the divisions and all that must follow. None if it is not worth it.

    `control`: the loop's branch, which the first part must prepare.
    """
    divisions = [k for k, item in enumerate(items) if len(item.instructions) == 1 and occupancy(item.first, timing)]
    if len(divisions) < _FEWEST:
        return None
    second = _closure(items, divisions)
    # An operand that nothing else needs may be computed with the divisions.
    operands = [
        k for k, i in enumerate(items) if k not in second and i.is_float and i.after and second.issuperset(i.after)
    ]
    second |= _closure(items, operands)
    needed = set(control.uses)
    if 2 * len(second) > len(items) or any(needed.intersection(items[k].defs) for k in second):
        return None
    parts = ([k for k in range(len(items)) if (k in second) is late] for late in (False, True))
    first, last = ([i for k in part for i in items[k].instructions] for part in parts)
    return first, last


def _closure(items: Sequence[Item], numbers: Sequence[int]) -> set[int]:
    """Items and all that must come later."""
    found: set[int] = set()
    pending = list(numbers)
    while pending:
        number = pending.pop()
        if number not in found:
            found.add(number)
            pending += items[number].after
    return found


def _clone(code: Sequence[CodeLine], times: Counter[Register]) -> list[CodeLine]:
    """Copies of instructions; labels and registers that are used only inside get new names.

    `times` counts the instructions of the whole code with a register.
    """
    labels = {i.immediate: f"{i.immediate}_apart" for i in code if i.name == "label"}
    here = occurrences(code)
    names: dict[Register, Register] = {}
    seen: set[Register] = set()
    found: list[CodeLine] = []
    for line in code:
        seen.update(line.uses)
        for register in line.defs:
            if register not in seen and here[register] == times[register]:
                names[register] = replace(register)
            seen.add(register)
        defs, uses = (tuple(names.get(r, r) for r in registers) for registers in (line.defs, line.uses))
        found.append(CodeLine(line.name, defs, uses, _renamed(line.immediate, labels)))
    return found


def _renamed(immediate: Immediate, labels: Mapping[Immediate, str]) -> Immediate:
    name = labels.get(immediate)
    if name is None:
        return immediate
    return RareLabel(name) if isinstance(immediate, RareLabel) else name
