"""Registers whose numbers should not meet, because the core would wait for a result that an instruction does not use.

The core takes bits 7 to 11 of every instruction for the number of an integer register, and waits while that register
has a pending result: for the destination of a floating-point instruction, and the low bits of a store's or a branch's
offset. Only code in loops is looked at.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence

from pdojo.backends.snitch.code import BRANCHES, LOADS, MARKS, STORES, CodeLine, FrameOffset, Register
from pdojo.backends.snitch.latency import is_float
from pdojo.backends.snitch.liveness import ControlFlow
from pdojo.snitch_sim.simulator.configuration import Timing

_MULTIPLICATIONS = frozenset(("mul", "mulh", "mulhsu", "mulhu"))
_DIVISIONS = frozenset(("div", "divu", "rem", "remu"))
_LONG = 16
"""Number of instructions examined after a division, and after a result of the floating-point unit."""


def false_dependences(
    code: Sequence[CodeLine], flow: ControlFlow, left_out: Collection[CodeLine], timing: Timing
) -> Iterator[tuple[Register, Register | int]]:
    """Integer registers with a pending result, each with a floating-point register or a number that it should not meet.

    `left_out`: copies that become no instruction.
    """
    offsets = _offsets(code, flow, left_out)
    for position, instruction in enumerate(code):
        window = _window(instruction, timing)
        if window and flow.depths[position]:
            register = instruction.defs[0]
            for behind in _behind(code, flow, position, window):
                yield from ((register, field) for field in _fields(code[behind], offsets.get(behind)))


def _window(instruction: CodeLine, timing: Timing) -> int:
    """The number of instructions that may issue while the result is pending; 0 if there is none."""
    if not instruction.defs or instruction.defs[0].kind != "x":
        return 0
    if is_float(instruction) or instruction.name in _DIVISIONS or instruction.name == "scfgr":
        return _LONG
    if instruction.name in LOADS:
        return timing.load - 1
    return timing.multiply - 1 if instruction.name in _MULTIPLICATIONS else 0


def _behind(code: Sequence[CodeLine], flow: ControlFlow, position: int, window: int) -> Iterator[int]:
    """The positions that the core reaches with the next instructions, up to those that use the result."""
    register = code[position].defs[0]
    seen = {position}
    front = deque([(position, window)])
    while front:
        at, left = front.popleft()
        # The core does not repeat the body of a hardware loop.
        following = (at + 1,) if code[at].name == "frep.end" else flow.successors[at]
        for target in following:
            line = code[target]
            rest = left - (line.name not in MARKS)
            if rest < 0 or target in seen or register in line.uses or register in line.defs:
                continue
            seen.add(target)
            front.append((target, rest))
            yield target


def _fields(instruction: CodeLine, offset: int | None) -> list[Register | int]:
    """The contents of bits 7 to 11: a floating-point register, or a number."""
    if offset is not None:
        return [offset & 30 | offset >> 11 & 1]
    if instruction.name in STORES:
        immediate = instruction.immediate
        if isinstance(immediate, FrameOffset):
            # Slots are at the start of the frame.
            return [immediate.offset & 31] if immediate.area == "slot" else []
        return [immediate & 31] if isinstance(immediate, int) else []
    return [r for r in instruction.defs if r.kind == "f" and r.fixed is None]


def _offsets(code: Sequence[CodeLine], flow: ControlFlow, left_out: Collection[CodeLine]) -> Mapping[int, int]:
    """By position, the distance of each branch to its target in bytes."""
    places: list[int] = []
    place = 0
    for instruction in code:
        places.append(place)
        place += 0 if instruction in left_out else _size(instruction)
    return {
        position: places[flow.labels[str(instruction.immediate)]] - places[position]
        for position, instruction in enumerate(code)
        if instruction.name in BRANCHES and instruction.name != "j"
    }


def _size(instruction: CodeLine) -> int:
    """The size of an instruction in bytes."""
    if instruction.name in MARKS:
        return 0
    value = instruction.immediate
    if instruction.name == "la":
        return 8
    if instruction.name == "li" and isinstance(value, int):
        return 8 if value + 0x800 & 0xFFF != 0x800 and not -0x800 <= _signed(value) < 0x800 else 4
    return 4


def _signed(value: int) -> int:
    return (value + (1 << 31) & 0xFFFFFFFF) - (1 << 31)
