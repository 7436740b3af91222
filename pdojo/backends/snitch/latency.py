"""Latencies of instructions for scheduling; the numbers are the simulator's."""

from __future__ import annotations

from pdojo.backends.snitch.code import CONSTANTS, LOADS, STORES, CodeLine
from pdojo.snitch_sim.simulator.configuration import CROSSINGS, Timing

_SIMPLE = ("fmin", "fmax", "fsgnj", "fsgnjn", "fsgnjx", "fmv")
_QUEUE = 1
"""Cycles that moves to integer registers spend in the ring, or wait for instructions in the ring."""
_PORT = 2
"""Assumed cycles that a load waits for the write port of the registers, because results of the unit come first."""
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
        if name in ("mul", "mulh", "mulhsu", "mulhu"):
            return timing.multiply
        return timing.divide + _DIVIDED if name in ("div", "divu", "rem", "remu") else 1
    if instruction.name in STORES:
        return 1
    if instruction.name in LOADS:
        # Constants are loaded among arithmetic.
        return timing.float_load + (_PORT if instruction.uses[0].area == CONSTANTS else 0)
    if instruction.defs[0].kind == "x":
        return _QUEUE + (timing.conversion if name == "fcvt" else timing.simple) + timing.answer
    return _arithmetic(name, types, timing)


def occupancy(instruction: CodeLine, timing: Timing) -> int:
    """Cycles for which the divider computes nothing else; 0 for instructions that do not use it."""
    name, _, types = instruction.name.partition(".")
    # The next operation starts when the result leaves.
    return timing.divided(types[-1]) - 2 if name.removeprefix("v") in ("fdiv", "fsqrt") else 0


def waits_for_idle(instruction: CodeLine) -> bool:
    """Whether an instruction waits until the floating-point unit has issued all earlier ones, and the core with it."""
    return is_float(instruction) and any(r.kind == "x" for r in instruction.defs) and instruction.name not in CROSSINGS


def _arithmetic(name: str, types: str, timing: Timing) -> int:
    name = name.removeprefix("v")
    if name in ("fdiv", "fsqrt"):
        return timing.divided(types[-1])
    if name in ("fcvt", "fcpka"):
        return timing.conversion
    return timing.simple if name in _SIMPLE else timing.fma
