"""Packed divisions behind scalar ones: the code waits, so that the simulator has nothing to stop."""

from __future__ import annotations

import numpy as np
import pytest

from differential.compiled import kernel
from differential.snitch import run_snitch
from differential.test_snitch import agree, inputs_for
from pdojo.backends.snitch import finish
from pdojo.backends.snitch.assignment import Assignment
from pdojo.backends.snitch.streaming import Regions
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.semantics.interpreter import interpret_stepwise
from pdojo.errors import SimulationError

SCALARS = "a f32 [8] heap align 64\nb f32 [8] heap align 64\nc f32 [8] heap align 64\n"
LANES = "x f32 [8, 4] heap align 64\nz f32 [8, 4] heap align 64\ny f32 [8, 4] heap align 64\n"
ARRAYS = f"kernel k(a, b, x, z) -> (c, y)\n{SCALARS}{LANES}r f32 [1] register\n"
DIVIDED = "2:v y[{0},{1}*2+{2}] = x[{0},{1}*2+{2}] / z[{0},{1}*2+{2}]"
TEXTS = {
    "around a loop": f"{ARRAYS}\n8\n| r[0] = a[{{0}}] / b[{{0}}]\n| 2 {DIVIDED}\n| c[{{0}}] = r[0]\n",
    "on one of two paths": (
        f"{ARRAYS}\n8\n| r[0] = 1\n| 1 where ({{0}}%2 >= 1) r[0] = sqrt(a[{{0}}])\n| 2 {DIVIDED}\n| c[{{0}}] = r[0]\n"
    ),
    "before a hardware loop": (f"{ARRAYS}\nr[0] = a[0] / b[0]\n8:s 2:f {DIVIDED}\n8 c[{{0}}] = r[0]\n"),
    "of f16": (
        f"{ARRAYS}".replace("f32", "f16")
        + "\n8\n| r[0] = a[{0}] / b[{0}]\n| 4:v y[{0},{1}] = x[{0},{1}] / z[{0},{1}]\n| c[{0}] = r[0]\n"
    ),
    "of three others": (
        f"{ARRAYS.replace('r f32 [1]', 'r f32 [8]')}\n8:u r[{{0}}] = sqrt(a[{{0}}])\n8 2 {DIVIDED}\n"
        "8:u c[{0}] = r[{0}]\n"
    ),
}
STREAMED = (
    ARRAYS.replace(SCALARS, SCALARS.replace("f32", "f64"))
    + f"\n1:s 8:f c[{{1}}] = a[{{1}}] / b[{{1}}]\n8:u 2:u {DIVIDED}\n"
)
"""Quotients that no instruction can read: they go to a stream."""


def checked(program: KernelOp) -> None:
    inputs = {name: np.abs(values) + values.dtype.type(0.5) for name, values in inputs_for(program, 3).items()}
    found, _ = run_snitch(program, inputs)
    agree(program, found, interpret_stepwise(program, inputs))


def unchanged(assignment: Assignment) -> Assignment:
    return assignment


@pytest.mark.parametrize("name", TEXTS)
def test_the_divider_is_free(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the waits, results are right; without them, the simulator stops."""
    program = kernel(TEXTS[name])
    checked(program)
    monkeypatch.setattr(finish, "with_waits", unchanged)
    with pytest.raises(SimulationError, match="divides lanes while the scalar"):
        checked(program)


def test_quotients_for_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    """The code waits at the end of the region; without that, the lowering refuses to go on."""
    program = kernel(STREAMED)
    checked(program)

    def never(regions: Regions, one: object) -> bool:
        del regions, one
        return False

    monkeypatch.setattr(Regions, "_delays_lanes", never)
    with pytest.raises(AssertionError, match="a region waits"):
        checked(program)
