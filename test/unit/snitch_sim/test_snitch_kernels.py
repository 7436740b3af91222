"""Kernels as people write them by hand, beside the cycles of snitch_cluster's on RTL; and skipping cycles."""

from __future__ import annotations

import random

import numpy as np
import pytest

from pdojo.snitch_sim.simulator import Placement, Result
from pdojo.snitch_sim.simulator.simulate import Complex
from snitch_programs import BASE, FENCE, OFF, ON, configure, gemm, loop, run, stream


def close(result: Result, handwritten: int, tolerance: float) -> None:
    assert abs(result.cycles / handwritten - 1) <= tolerance, (result.cycles, handwritten)


def test_axpy() -> None:
    """278 cycles on RTL."""
    placement, rng = Placement(), np.random.default_rng(0)
    x, y = (placement.place(rng.standard_normal(256)) for _ in range(2))
    z = placement.output((256,), float)
    body = "li t0, 255\nscfgwi t0, 64\nscfgwi t0, 65\nscfgwi t0, 66\n"
    body += "li t1, 8\nscfgwi t1, 192\nscfgwi t1, 193\nscfgwi t1, 194\n"
    body += (
        "scfgwi a0, 768\nscfgwi a1, 769\nscfgwi a2, 898\n"
        + ON
        + "frep.o t0, 1, 0, 0\nfmadd.d ft2, fa0, ft0, ft1\n"
        + FENCE
        + OFF
    )
    result = run(
        "fld fa0, 0(a3)\n" + body, arguments=[x.address, y.address, z.address, x.address], memory=placement.memory
    )
    scale = float(x.values[0])
    np.testing.assert_allclose(z.values, scale * x.values + y.values, rtol=1e-15, atol=1e-15)
    close(result, 278, 0.02)
    assert result.utilisation > 0.9


def test_dot() -> None:
    """293 cycles on RTL."""
    placement, rng = Placement(), np.random.default_rng(0)
    x, y = (placement.place(rng.standard_normal(256)) for _ in range(2))
    z = placement.output((1,), float)
    body = "li t1, 255\nscfgwi t1, 64\nscfgwi t1, 65\nli t1, 8\nscfgwi t1, 192\nscfgwi t1, 193\n"
    body += "scfgwi a0, 768\nscfgwi a1, 769\n"
    body += "fcvt.d.w fs0, zero\n" + "".join(f"fmv.d fs{k}, fs0\n" for k in (1, 2, 3)) + ON
    body += loop(64, "\n".join(f"fmadd.d fs{k}, ft0, ft1, fs{k}" for k in range(4))) + FENCE + OFF
    body += "fadd.d fs0, fs0, fs1\nfadd.d fs2, fs2, fs3\nfadd.d fs0, fs0, fs2\nfsd fs0, 0(a2)\n"
    result = run(body, arguments=[x.address, y.address, z.address], memory=placement.memory)
    np.testing.assert_allclose(z.values[0], x.values @ y.values, rtol=1e-13)
    close(result, 293, 0.02)


@pytest.mark.parametrize(("size", "handwritten", "tolerance"), [(16, 4150, 0.005), (8, 566, 0.03)])
def test_gemm(size: int, handwritten: int, tolerance: float) -> None:
    """4150 and 566 cycles on RTL."""
    placement, rng = Placement(), np.random.default_rng(0)
    a, b = (placement.place(rng.standard_normal((size, size))) for _ in range(2))
    c = placement.output((size, size), float)
    result = run(gemm(size, a.address, b.address, c.address), memory=placement.memory)
    placement.check()
    np.testing.assert_allclose(c.values, a.values @ b.values, rtol=1e-12)
    close(result, handwritten, tolerance)
    assert result.flops == 2 * size**3 - size * size
    assert result.fraction_of_peak(8) == result.flops / result.cycles / 2


def test_transpose() -> None:
    """284 cycles on RTL."""
    placement = Placement()
    x, y = placement.place(np.arange(256.0).reshape(16, 16)), placement.output((16, 16), float)
    body = configure((0, [(16, 128), (16, 8)], x.address, False, 1), (1, [(256, 8)], y.address, True, 1))
    result = run(body + ON + loop(256, "fmv.d ft1, ft0") + FENCE + OFF, memory=placement.memory)
    np.testing.assert_array_equal(y.values, x.values.T)
    close(result, 284, 0.02)


def test_batchnorm() -> None:
    """363 cycles on RTL: a hardware loop for each channel, which waits for the one before."""
    placement, rng = Placement(), np.random.default_rng(0)
    x = placement.place(rng.standard_normal((16, 16)))
    scale, shift = (placement.place(rng.standard_normal(16)) for _ in range(2))
    y = placement.output((16, 16), float)
    dims = [(16, 128), (16, 8)]
    body = configure((0, dims, x.address, False, 1), (1, dims, y.address, True, 1)) + ON + "li t3, 15\nli a3, 16\n"
    body += "1: fld fa1, 0(a0)\nfld fa2, 0(a1)\nfrep.o t3, 1, 0, 0\nfmadd.d ft1, ft0, fa1, fa2\n"
    body += "addi a0, a0, 8\naddi a1, a1, 8\naddi a3, a3, -1\nbnez a3, 1b\n" + FENCE + OFF
    result = run(body, arguments=[scale.address, shift.address], memory=placement.memory)
    np.testing.assert_allclose(y.values, x.values * scale.values + shift.values, rtol=1e-14, atol=1e-15)
    close(result, 363, 0.015)


# What gcc 12.2 -O2 makes of plain loops (-march=rv32imafd -mabi=ilp32d -ffixed-ft0 -ffixed-ft1 -ffixed-ft2).
COMPILED = {
    "axpy": """
 addi sp, sp, -16
 fsd fa0, 8(sp)
 fmv.d fa3, fa0
 slli a0, a0, 3
 add a5, a1, a0
1:
 fld fa5, 0(a1)
 fld fa4, 0(a2)
 addi a3, a3, 8
 addi a1, a1, 8
 fmadd.d fa5, fa5, fa3, fa4
 addi a2, a2, 8
 fsd fa5, -8(a3)
 bne a1, a5, 1b
 addi sp, sp, 16
""",
    "gemv": """
 slli a0, a0, 3
 slli a6, a1, 3
 add t1, a4, a0
 add a6, a3, a6
 li a7, 0
1:
 slli a0, a7, 3
 fcvt.d.w fa5, x0
 add a0, a2, a0
 mv a5, a3
 beq a1, zero, 3f
2:
 fld fa3, 0(a0)
 fld fa4, 0(a5)
 addi a5, a5, 8
 addi a0, a0, 8
 fmadd.d fa5, fa3, fa4, fa5
 bne a6, a5, 2b
3:
 fsd fa5, 0(a4)
 addi a4, a4, 8
 add a7, a7, a1
 bne a4, t1, 1b
""",
    "transpose": """
 slli t1, a1, 3
 add a2, a2, t1
 slli a6, a0, 3
 li a7, 0
1:
 sub a5, a2, t1
 mv a4, a3
 beq a1, zero, 3f
2:
 fld fa5, 0(a5)
 addi a5, a5, 8
 fsd fa5, 0(a4)
 add a4, a4, a6
 bne a5, a2, 2b
3:
 addi a7, a7, 1
 addi a3, a3, 8
 add a2, a2, t1
 bne a0, a7, 1b
""",
}


@pytest.mark.parametrize(
    ("name", "arguments", "cycles"),
    [
        ("axpy", [256, BASE, BASE + 4096, BASE + 8192], 2321),
        ("gemv", [16, 32, BASE, BASE + 16384, BASE + 32768], 3203),
        ("transpose", [16, 16, BASE, BASE + 4096], 1392),
    ],
)
def test_compiled_loops(name: str, arguments: list[int], cycles: int) -> None:
    """Within 1 % of RTL."""
    close(run(COMPILED[name], arguments=arguments), cycles, 0.01)


def random_body(seed: int) -> str:
    """Streams, loops, loads, stores and integer work in some order."""
    rng = random.Random(seed)
    parts: list[str] = []
    for _ in range(rng.randint(2, 6)):
        count = rng.choice([4, 16, 24])
        match rng.randrange(6):
            case 0:
                read = stream(0, [(count, 8 * rng.choice([1, 4, 32]))], BASE) + stream(1, [(count, 8)], BASE + 8192)
                write = stream(2, [(count, 8)], BASE + 32768, write=True)
                parts.append(read + write + ON + loop(count, "fadd.d ft2, ft0, ft1") + OFF)
            case 1:
                sums = "\n".join(f"fadd.d fs{k}, fs{k}, fa1" for k in range(rng.randint(1, 5)))
                parts.append(loop(count, sums))
            case 2:
                parts.append(
                    "\n".join(f"fld ft{3 + k % 4}, {8 * k}(a0)\nfsd ft{3 + k % 4}, {8 * k}(a1)" for k in range(count))
                )
            case 3:
                parts.append("\n".join(f"lw t{k % 3}, {4 * k}(a0)\nsw t{k % 3}, {4 * k}(a1)" for k in range(count)))
            case 4:
                parts.append(
                    "li t3, 97\nli t4, 3\ndiv t5, t3, t4\nmul t5, t5, t4\nadd t6, t5, t5\nfdiv.d fa3, fa3, fa4"
                )
            case _:
                parts.append(
                    f"li t3, {count}\n{len(parts) + 1}: addi t3, t3, -1\nbnez t3, {len(parts) + 1}b\n"
                    "flt.d t4, fa0, fa1\nmv t5, t4"
                )
    return "\n".join(parts) + "\n" + FENCE


@pytest.mark.parametrize("seed", range(12))
def test_skipping_idle_cycles_changes_nothing(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    body = random_body(seed)
    arguments = [BASE, BASE + 16384]
    memories = [bytearray(128 << 10), bytearray(128 << 10)]
    fast = run(body, arguments=arguments, memory=memories[0])

    def one(machine: Complex, now: int) -> int:
        return now + 1

    monkeypatch.setattr(Complex, "_skip", one)
    slow = run(body, arguments=arguments, memory=memories[1])
    assert memories[0] == memories[1]
    assert (fast.cycles, fast.core_cycles, fast.lines) == (slow.cycles, slow.core_cycles, slow.lines)
    assert (fast.fp_stalls, fast.core_stalls, fast.bank_conflicts) == (
        slow.fp_stalls,
        slow.core_stalls,
        slow.bank_conflicts,
    )
