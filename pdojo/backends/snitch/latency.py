"""Latencies of instructions for scheduling; the numbers are the simulator's."""

from __future__ import annotations

from pdojo.backends.snitch.code import LOADS, STORES, CodeLine
from pdojo.backends.snitch.simulator.configuration import Timing

_SIMPLE = ("fmin", "fmax", "fsgnj", "fsgnjn", "fsgnjx", "fmv")
_QUEUE = 1
"""Additional cycles of results for the core, which wait in a queue behind earlier instructions."""
_DIVIDED = 16
"""Assumed number of quotient bits."""


def is_float(instruction: CodeLine) -> bool:
    """Whether the floating-point unit executes an instruction; it does so in the order in which the core sends them."""
    return any(r.kind == "f" for r in (*instruction.defs, *instruction.uses))


def latency(instruction: CodeLine, timing: Timing) -> int:
    """Cycles until another instruction can use the result."""
    name, _, types = instruction.name.partition(".")
    if not is_float(instruction):
        if instruction.name in LOADS:
            return timing.load
        if name in ("mul", "mulh", "mulhu", "mulhsu"):
            return timing.multiply
        return timing.divide + _DIVIDED if name in ("div", "divu", "rem", "remu") else 1
    if instruction.name in STORES:
        return 1
    if instruction.name in LOADS:
        return timing.float_load
    if instruction.defs[0].kind == "x":
        return _QUEUE + timing.for_core(instruction.name.removesuffix(".rtz"))
    return _arithmetic(name, types, timing)


def _arithmetic(name: str, types: str, timing: Timing) -> int:
    if name in ("vfdiv", "vfsqrt"):
        return timing.division_packed
    if name in ("fdiv", "fsqrt"):
        return timing.division_double if types == "d" else timing.division_single
    if name in ("fcvt", "vfcpka"):
        return timing.conversion
    return timing.simple if name.removeprefix("v") in _SIMPLE else timing.fma
