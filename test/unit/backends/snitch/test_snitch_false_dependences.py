"""Registers with a pending result, and the numbers that the instructions behind them should not have."""

from __future__ import annotations

import pytest

from pdojo.backends.snitch.code import SP, ZERO, CodeLine, FrameOffset, Register, SnitchCode
from pdojo.backends.snitch.executable import load
from pdojo.backends.snitch.false_dependences import false_dependences
from pdojo.backends.snitch.liveness import ControlFlow
from pdojo.backends.snitch.registers import assign
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation import parse_notation
from pdojo.kernels import workload
from pdojo.passes.scheduled_kernel import make_moves
from pdojo.snitch_sim.assembler import assemble
from pdojo.snitch_sim.assembler.instruction import Instruction
from pdojo.snitch_sim.assembler.registers import INTEGER
from pdojo.snitch_sim.simulator.configuration import Timing

X, Y, COUNT = (Register("x") for _ in range(3))
F, G = (Register("f") for _ in range(2))


def loop(*body: CodeLine) -> list[CodeLine]:
    return [
        CodeLine("li", (COUNT,), (), 9),
        CodeLine("label", immediate=".L"),
        *body,
        CodeLine("addi", (COUNT,), (COUNT,), -1),
        CodeLine("bne", (), (COUNT, ZERO), ".L"),
    ]


def met(*body: CodeLine) -> list[Register | int]:
    code = loop(*body)
    return [other for register, other in false_dependences(code, ControlFlow(code), (), Timing()) if register is X]


LOAD, USE = CodeLine("lw", (X,), (SP,), 0), CodeLine("addi", (Y,), (X,), 1)
ADD, STORE = CodeLine("fadd.d", (F,), (G, G)), CodeLine("sw", (), (SP, Y), 8)


def test_what_is_behind_a_pending_result() -> None:
    assert met(LOAD, ADD, STORE, USE) == [F, 8]
    assert met(LOAD, CodeLine("fsd", (), (SP, G), 40), USE) == [8]
    assert met(LOAD, CodeLine("fsd", (), (SP, G), FrameOffset("slot", 48)), USE) == [16]


def test_only_until_it_is_used() -> None:
    assert met(LOAD, USE, ADD, STORE) == []


def test_three_instructions_behind_a_load() -> None:
    nop = CodeLine("addi", (Y,), (ZERO,), 0)
    assert met(LOAD, nop, nop, ADD, STORE, USE) == [F]
    assert met(CodeLine("feq.d", (X,), (G, G)), nop, nop, nop, ADD, USE) == [F]


def test_offsets_of_branches_and_the_next_iteration() -> None:
    """12 bytes back: bits 1 to 4 are 10, bit 11 is set. Behind the branch comes the beginning of the loop."""
    assert met(ADD, LOAD) == [(-12 & 30) | 1, F]


def test_outside_of_loops_it_does_not_matter() -> None:
    code = [LOAD, ADD, USE]
    assert list(false_dependences(code, ControlFlow(code), (), Timing())) == []


def test_numbers_that_differ() -> None:
    """Twelve loads and twelve sums behind each: without a choice, a0 and fa0, a1 and fa1 and so on meet."""
    code: list[CodeLine] = []
    for _ in range(5):
        value, kept = Register("x"), Register("f")
        code += [
            CodeLine("lw", (value,), (SP,), 0),
            CodeLine("fmv.d", (kept,), (F,)),
            CodeLine("fadd.d", (F,), (kept, F)),
        ]
        code.append(CodeLine("add", (Y,), (Y, value)))
    assignment = assign(
        [CodeLine("entry", (Y, F)), *loop(*code), CodeLine("sw", (), (SP, Y), 0), CodeLine("fsd", (), (SP, F), 8)],
        SnitchCode("k"),
        "k",
    )
    flow = ControlFlow(assignment.code)
    for register, other in false_dependences(assignment.code, flow, (), Timing()):
        number = INTEGER[assignment.name(register)]
        if isinstance(other, Register):
            assert assembled(f"fmv.d {assignment.name(other)}, ft0").rd != number


def assembled(text: str) -> Instruction:
    return assemble(f"f: {text}\n", "t.s").instructions[0]


LONG = ("lw", "lh", "lb", "lhu", "lbu", "mul", "feq", "flt", "fle", "fclass", "fmv.x", "fcvt.w")


def waits(program: list[Instruction]) -> list[str]:
    """Instructions in loops, up to three behind one with a pending result, that wait for it without using it."""
    backwards = [(k + i.imm // 4, k) for k, i in enumerate(program) if "p" in i.encoding.operands and i.imm < 0]
    found: list[str] = []
    for k, i in enumerate(program):
        if not i.name.startswith(LONG) or not any(start <= k <= end for start, end in backwards):
            continue
        for other in program[k + 1 : k + 4]:
            letters = other.encoding.operands.split(",")
            uses = {other.rs1 for c in letters if c in "soq"} | {other.rs2 for c in letters if c == "t"}
            if i.rd in uses or ("d" in letters and other.rd == i.rd) or "p" in letters:
                break
            if other.encode() >> 7 & 31 == i.rd:
                found.append(f"{i.text}; {other.text}")
    return found


@pytest.mark.parametrize(
    "name", ["sigmoid:8x8", "softmax:4x8", "layernorm:4x8", "relu:8x8", "matmul:4x4x4", "argmax:4x8"]
)
@pytest.mark.parametrize("strategy", ["naive", "heuristic"])
@pytest.mark.parametrize("dtype", ["f64", "f32"])
def test_kernels_do_not_wait(name: str, strategy: str, dtype: str) -> None:
    described = machine("snitch-xdiv")
    after = make_moves(workload(name, dtype).instantiate(), described, strategy).after
    assert waits(list(load(after, described).program.instructions)) == []


def test_waits_are_found() -> None:
    text = "f:\n1:\nfeq.d a0, ft3, ft4\nfmv.d fa0, ft5\nbnez t0, 1b\nret\n"
    assert waits(list(assemble(text, "t.s").instructions)) == ["feq.d a0, ft3, ft4; fmv.d fa0, ft5"]
    (parsed,) = parse_notation("kernel k() -> (y)\ny f64 [4] heap\n\n4 y[{0}] = 1\n")
    assert waits(list(load(parsed, machine("snitch")).program.instructions)) == []
