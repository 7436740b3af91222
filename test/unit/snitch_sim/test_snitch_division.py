"""The FPU's divider ends early, by the operands; the integer divider by their bits."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pytest

from pdojo.errors import SimulationError
from pdojo.snitch_sim.assembler import assemble
from pdojo.snitch_sim.simulator import Placement, simulate
from snitch_programs import RECENT, run


@pytest.mark.parametrize(
    ("a", "b", "bits"),
    [
        (-100, 7, 6),
        (-128, 7, 6),
        (-129, 7, 7),
        (100, -8, 5),
        (100, -9, 4),
        (-1, 5, 0),
        (100, -1, 33),
        (0, 7, 0),
        (5, 0, 33),
        (-(2**31), -1, 33),
    ],
)
def test_signed_integer_divisions(a: int, b: int, bits: int) -> None:
    """A negative dividend counts the bits of its complement and one, a negative divisor those of its complement."""
    result = run(f"li t1, {a}\nli t2, {b}\ndiv t5, t1, t2\naddi t6, t5, 1")
    assert result.core_cycles == 2 + 4 + bits + 2


def quotient_latency(instruction: str, operands: Sequence[float], dtype: str = "f8") -> int:
    """Cycles from a division's issue to that of an instruction that uses the result."""
    load = "fld" if dtype == "f8" else "flw"
    body = "".join(f"{load} fa{k}, {k * np.dtype(dtype).itemsize}(a0)\n" for k in range(len(operands)))
    move = "fsgnj.d" if dtype == "f8" else "fsgnj.s"
    program = assemble(f"main:\n{body}{instruction}\n{move} fa3, fa2, fa2\nret\n", "t.s")
    placement = Placement(RECENT, program)
    place = placement.place(np.array(operands, dtype))
    result = simulate(program, RECENT, arguments=[place.address], memory=placement.memory, trace=True)
    times = [e.cycle for e in result.events if e.unit == "fp" and not e.cause]
    return times[-1] - times[-2]


def exact(bits: int) -> float:
    """A number with this many bits after the point, one before it."""
    return 1 + (2.0**-bits if bits else 0)


@pytest.mark.parametrize("bits", range(53))
def test_quotients_with_few_bits(bits: int) -> None:
    """Latency 9 + ceil((k - 2) / 4) with k bits after the point, at most 21."""
    expected = min(21, 9 + max(0, -(-(bits - 2) // 4)))
    assert quotient_latency("fdiv.d fa2, fa0, fa1", [exact(bits), 4.0]) == expected
    if bits <= 26:  # so that the square is exact
        root = exact(bits)
        for power in (2.0**-300, 1.0, 2.0**600):
            assert quotient_latency("fsqrt.d fa2, fa0", [root * root * power, 0]) == expected


@pytest.mark.parametrize(
    ("a", "b", "latency"),
    [
        *((a, b, 8) for a, b in ((0.0, 3.0), (3.0, 0.0), (np.inf, 3.0), (3.0, np.inf), (np.nan, 3.0), (3.0, np.nan))),
        (1e300, 1e-300, 8),
        (1e-300, 1e300, 8),
        (1.1, 3.0, 21),
        (-45.0, 15.0, 9),
        (1e-10, 5e-310, 21),
        (5e-324, 2.0, 9),
        (5e-324, 4.0, 8),
    ],
)
def test_quotients_without_iterations(a: float, b: float, latency: int) -> None:
    """13 cycles less."""
    assert quotient_latency("fdiv.d fa2, fa0, fa1", [a, b]) == latency


@pytest.mark.parametrize(
    ("a", "latency"), [(0.0, 8), (-0.0, 8), (-1.0, 8), (np.inf, 8), (np.nan, 8), (2.0, 21), (3.0, 21)]
)
def test_roots_without_iterations(a: float, latency: int) -> None:
    assert quotient_latency("fsqrt.d fa2, fa0", [a, 0]) == latency


@pytest.mark.parametrize(("a", "b", "latency"), [(1.1, 3.0, 14), (3.0, 3.0, 9), (0.0, 3.0, 8), (1 + 2**-6, 1.0, 10)])
def test_quotients_of_f32(a: float, b: float, latency: int) -> None:
    assert quotient_latency("fdiv.s fa2, fa0, fa1", [a, b], "f4") == latency


def test_packed_quotients_wait_for_the_last_lane() -> None:
    pairs = {((3, 3), (3, 3)): 9, ((3, 1.1), (3, 3)): 14, ((1.1, 3), (3, 3)): 14, ((0, 3), (3, 3)): 9}
    for (first, second), latency in pairs.items():
        body = "fld fa0, 0(a0)\nfld fa1, 8(a0)\nvfdiv.s fa2, fa0, fa1\nfsgnj.d fa3, fa2, fa2"
        program = assemble(f"main:\n{body}\nret\n", "t.s")
        placement = Placement(RECENT, program)
        place = placement.place(np.array([*first, *second], "f4"))
        result = simulate(program, RECENT, arguments=[place.address], memory=placement.memory, trace=True)
        times = [e.cycle for e in result.events if e.unit == "fp" and not e.cause]
        assert times[-1] - times[-2] == latency


SCALARS = ("fdiv.s fs4, fa0, fa1", "fsqrt.d fs4, fa0", "fdiv.d fs4, fa0, fa1", "fdiv.h fs4, fa0, fa1")
PACKED = ("vfdiv.s fs2, fa2, fa3", "vfsqrt.s fs2, fa2", "vfdiv.r.h fs2, fa2, fa3", "vfsqrt.h fs2, fa2")


@pytest.mark.parametrize("packed", PACKED)
@pytest.mark.parametrize("scalar", SCALARS)
def test_lanes_are_not_divided_behind_a_scalar(scalar: str, packed: str) -> None:
    """Hardware would repeat upper lanes of an earlier quotient: one scalar runs, or waits behind a packed one."""
    refusal = re.escape(f"divides lanes while the scalar '{scalar}' of line 3 is in the divider")
    for text in (
        f"nop\n{scalar}\n{packed}",
        f"{packed}\n{scalar}\n{packed}",
        f"nop\n{scalar}\nfmv.d fa7, fa6\n{packed}",
    ):
        with pytest.raises(SimulationError, match=refusal):
            run(text)
    drained = run(f"{scalar}\nfsgnj.d fs4, fs4, fs4\n{packed}\n{scalar}\nfmv.d fa7, fs4\n{packed}\n{packed}")
    assert drained.cycles > 20


def test_lanes_behind_a_scalar_in_the_input_register() -> None:
    """The program that was wrong on RTL: two scalar quotients, then two packed ones."""
    scalars, packed = "fdiv.s fs4, fa0, fa1\nfdiv.s fs5, fa1, fa0\n", "vfdiv.s fs2, ft3, ft4\nvfdiv.s fs3, ft5, ft6"
    with pytest.raises(SimulationError, match="Read its result first"):
        run(scalars + packed)
    run(scalars + "fsgnj.d fs5, fs5, fs5\n" + packed)
