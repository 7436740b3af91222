"""The rules of the core complex: programs measured on RTL, and classes of programs against a small model."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from pdojo.errors import SimulationError
from pdojo.snitch_sim.assembler import assemble
from pdojo.snitch_sim.assembler.instruction import Instruction
from pdojo.snitch_sim.simulator import Configuration, Placement, Result, simulate
from pdojo.snitch_sim.simulator.fpu import grants
from snitch_programs import OLD, RECENT, run
from snitch_rules import Machine, next_turn, tree

RTL = Path(__file__).parent / "rtl"
BEFORE = 14
"""Cycles before the measured part: loads and conversions of operands."""


def text_of(name: str) -> str:
    return (RTL / f"{name}.s").read_text()


def simulated(text: str, configuration: Configuration = RECENT) -> Result:
    """The simulation of a program that takes f64 at a0 and a2, memory at a1, int32 at a3."""
    program = assemble(text, "rtl.s")
    placement = Placement(configuration, program)
    numbers = placement.place(np.array([1.1, 3.0, 1.7, 2.7, 0.3, 5.9, 1.3, 2.1]))
    space = placement.output((64,), np.float64)
    integers = placement.place(np.arange(1, 17, dtype=np.int32))
    arguments = {"a0": numbers.address, "a1": space.address, "a2": numbers.address, "a3": integers.address}
    return simulate(program, configuration, arguments=arguments, memory=placement.memory, trace=True)


def core_cycles(text: str) -> int:
    return simulated(text).core_cycles


@pytest.mark.parametrize(("name", "period"), [("arbiter-2", 4.5), ("arbiter-3", 5), ("arbiter-4", 5)])
def test_cycles_of_an_iteration(name: str, period: float) -> None:
    text = text_of(name)
    longer = text.replace("li t3, 63", "li t3, 127")
    assert core_cycles(longer) - core_cycles(text) == 64 * period


@pytest.mark.parametrize(
    ("name", "cycles"), [("cross-flt", BEFORE + 8 * 10 + 1), ("cross-fcvt-s-w", BEFORE + 2 * 3 + 28 + 1)]
)
def test_moves_through_the_ring_and_past_it(name: str, cycles: int) -> None:
    """`flt.d` takes 10 cycles with the sum before and the use behind it. `fcvt.s.w` waits for the sum in the ring."""
    assert core_cycles(text_of(name)) == cycles


@pytest.mark.parametrize(
    ("name", "cycles"),
    [("scoreboard-fp", 6 * 5), ("scoreboard-store", 6 * 5), ("scoreboard-feq", 6 * 6 - 1)],
)
def test_waiting_for_the_register_of_bits_7_to_11(name: str, cycles: int) -> None:
    """Six pairs: the second instruction issues 4 cycles after the first. `feq.d` then waits for `fmv.d` in the ring."""
    assert core_cycles(text_of(name)) == BEFORE + cycles + 1


def test_exact_quotients_are_earlier() -> None:
    text = text_of("divider-exact")
    full = core_cycles(text.replace("fdiv.d fa0, ft4, ft4", "fdiv.d fa0, ft3, ft4"))
    assert full - core_cycles(text) == 12


def test_packed_divisions() -> None:
    """Three in a chain, and one less: 14 cycles apart."""
    text = text_of("divider-packed")
    less = text.replace(" vfdiv.s fa0, fa0, ft7\n", "", 1)
    assert core_cycles(text) - core_cycles(less) == 14


def test_a_division_waits_in_the_input_register() -> None:
    """The products behind it issue one a cycle; a third division waits until the first has left."""
    text = text_of("divider-queue")
    waiting = core_cycles(text)
    assert waiting == core_cycles(text.replace(" fdiv.d fs3, ft3, ft5\n", " fmadd.d fs3, ft3, ft4, ft5\n"))
    used = text.replace("feq.d t5, fa0, fa0", "feq.d t5, fs2, fs2")
    both = text.replace("feq.d t5, fa0, fa0", "feq.d t5, fs3, fs3")
    assert core_cycles(both) - core_cycles(used) == 19


def test_intervals_of_single_divisions() -> None:
    text = text_of("divider-single")
    less = text.replace(" fdiv.s fs4, fs0, fs1\n", "")
    assert core_cycles(text) - core_cycles(less) == 12


@pytest.mark.parametrize(("name", "bits"), [("intdiv-zero", 33), ("intdiv-negative", 8 - 3 + 1)])
def test_integer_divisions(name: str, bits: int) -> None:
    """Two constants, the division, its use 4 cycles and the bits of the quotient later, and the return."""
    assert core_cycles(text_of(name)) == BEFORE + 2 + 4 + bits + 2


def test_responses_of_the_memory_leave_in_order() -> None:
    """111 cycles on RTL: in every second iteration `flw` waits for the write port, and `lw` behind it waits, too."""
    assert core_cycles(text_of("responses-in-order")) == 111


def test_a_program_that_divides() -> None:
    """About 14,930 cycles on RTL."""
    program = assemble(text_of("sigmoid-16x16-f64"), "sigmoid.s")
    placement = Placement(RECENT, program)
    x = placement.place(np.random.default_rng(0).standard_normal((16, 16)))
    y = placement.output((16, 16), np.float64)
    result = simulate(program, RECENT, arguments=[x.address, y.address], memory=placement.memory)
    np.testing.assert_allclose(y.values, 1 / (1 + np.exp(-x.values)), rtol=1e-14)
    assert result.cycles == pytest.approx(14_930, rel=0.003)


# Classes of programs against the model


@pytest.mark.parametrize("size", [2, 3, 5, 6])
def test_arbiters(size: int) -> None:
    """The table of decisions, against the tree of two-input nodes."""
    for turn, row in enumerate(grants(size)):
        for asking, decision in enumerate(row[1:], 1):
            asks = [bool(asking >> k & 1) for k in range(size)]
            assert decision == (tree(asks, turn), next_turn(asks, turn))


PRELUDE = "f:\n fld ft3, 0(a0)\n fld ft4, 8(a0)\n fld ft5, 16(a0)\n" + " nop\n" * 8
SKIPPED = 11
"""Instructions of the prelude, which the model does not execute."""
OPERATIONS = {
    "fma": "fmadd.d {}, ft3, ft4, ft5",
    "max": "fmax.d {}, ft3, ft4",
    "max of f32": "vfmax.s {}, ft3, ft4",
    "conversion": "fcvt.s.d {}, ft3",
    "sum of lanes": "vfsum.s {}, ft3",
}


def compared(text: str, executed: Sequence[Instruction] | None = None) -> None:
    """Simulator and model issue every instruction in the same cycle; `executed`: the instructions in dynamic order."""
    result = simulated(text)
    program = result.program.instructions
    stream = [*program[SKIPPED:]] if executed is None else executed
    core, unit = Machine(stream).run()
    ours = [e.cycle - SKIPPED for e in result.events if e.unit == "core" and not e.cause and e.cycle >= SKIPPED]
    units = [e.cycle - SKIPPED for e in result.events if e.unit == "fp" and not e.cause and e.cycle >= SKIPPED]
    assert ours == core, text
    assert units == unit, text


def loop_of(body: Sequence[str], trips: int) -> str:
    lines = [f" {OPERATIONS[name].format(f'fa{k}')}\n" for k, name in enumerate(body)]
    return PRELUDE + f" li t3, {trips - 1}\n frep.o t3, {len(body)}, 0, 0\n" + "".join(lines) + " ret\n"


@pytest.mark.parametrize("length", [1, 2, 3])
def test_hardware_loops_of_all_bodies(length: int) -> None:
    for body in product(OPERATIONS, repeat=length):
        compared(loop_of(body, 20))


def test_hardware_loops_of_four_operations() -> None:
    rng = random.Random(71)
    for _ in range(60):
        compared(loop_of(rng.choices(list(OPERATIONS), k=4), 20))


MOVES = (
    "feq.d {x}, ft3, ft4",
    "flt.d {x}, ft3, {f}",
    "flt.s {x}, ft3, ft4",
    "fclass.d {x}, {f}",
    "fmv.x.w {x}, {f}",
    "fcvt.w.d {x}, ft3",
    "fcvt.wu.d {x}, ft3",
    "fcvt.w.s {x}, ft3",
    "fmv.w.x {f}, {x}",
    "fcvt.d.w {f}, {x}",
    "fcvt.d.wu {f}, {y}",
    "fcvt.s.w {f}, {y}",
    "addi {x}, {y}, 1",
    "addi {x}, {x}, 1",
    "fadd.d {f}, ft3, ft4",
    "fmax.d {f}, {f}, ft4",
    "fmv.d {f}, ft5",
)
"""Moves between register files, their uses, and other operations."""
QUOTIENTS = ("fdiv.d {f}, ft3, ft4", "vfdiv.s {f}, ft5, ft3")
"""A program has one of them: hardware mixes up lanes that are divided behind a scalar. The packed one is not exact."""


def moves(rng: random.Random, count: int) -> str:
    names = (*MOVES, rng.choice(QUOTIENTS))
    lines = [
        f" {rng.choice(names)}\n".format(
            x=rng.choice(["a5", "t6", "s2"]), y=rng.choice(["a5", "t6", "s2"]), f=rng.choice(["fa5", "ft11", "fs2"])
        )
        for _ in range(count)
    ]
    return "".join(lines)


@pytest.mark.parametrize("seed", range(40))
def test_moves_between_register_files(seed: int) -> None:
    """Registers are few, and their numbers meet: a5 and fa5, t6 and ft11, s2 and fs2."""
    compared(PRELUDE + moves(random.Random(seed), 40) + " ret\n")


@pytest.mark.parametrize("seed", range(40))
def test_loops_of_moves_between_register_files(seed: int) -> None:
    rng = random.Random(1000 + seed)
    body = moves(rng, rng.randint(1, 6))
    text = PRELUDE + f" li t0, 12\n1:\n{body} addi t0, t0, -1\n bnez t0, 1b\n ret\n"
    program = assemble(text, "t.s").instructions
    start, end = SKIPPED + 1, len(program) - 1
    compared(text, [program[SKIPPED], *list(program[start:end]) * 12, program[end]])


# The configuration before June 2025


@pytest.mark.parametrize("name", ["flt.d t1, fa0, fa1", "fmv.x.w t1, fa0", "fcvt.w.d t1, fa0", "fcvt.d.w fa0, t1"])
def test_older_cores_have_a_table_of_their_own(name: str) -> None:
    """All moves between register files wait for an empty ring."""
    body = "li t0, 63\nfrep.o t0, 1, 0, 0\nfadd.d fa3, fa4, fa5\n" + name
    behind = body + "\nli t2, 1\nmul t3, t2, t2\nmv t4, t3"
    assert run(behind).core_cycles < 30
    assert run(behind, configuration=OLD).core_cycles > 64 * 4


# Refusals


@pytest.mark.parametrize(
    ("instruction", "reason"),
    [
        ("vfcpkb.s.s fa0, fa1, fa2", "does not decode this instruction: registers have no elements 2 and 3 of 32 bits"),
        ("vfmac.b fa0, fa1, fa2", "numbers of 8 bits are not modelled"),
        ("vfadd.r.b fa0, fa1, fa2", "numbers of 8 bits are not modelled"),
    ],
)
def test_refused_instructions(instruction: str, reason: str) -> None:
    with pytest.raises(SimulationError, match=reason):
        run(instruction)


@pytest.mark.parametrize(
    "instruction", ["flt.d t1, fa0, fa1", "fcvt.w.d t1, fa0", "fcvt.d.w fa0, t1", "feq.d t1, fa0, fa1"]
)
def test_no_moves_between_register_files_in_hardware_loops(instruction: str) -> None:
    with pytest.raises(SimulationError, match="cannot be repeated"):
        run(f"li t0, 3\nfrep.o t0, 2, 0, 0\nfadd.d fa2, fa3, fa4\n{instruction}")
