"""Loops that begin with the divisions of the iteration before, and copies that go."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from pdojo.backends.snitch.code import ZERO, CodeLine, Register
from pdojo.backends.snitch.copies import without_copies
from pdojo.backends.snitch.executable import load
from pdojo.backends.snitch.rotation import rotated
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation import parse_notation
from pdojo.dialect.semantics.interpreter import interpret
from pdojo.dialect.view.build import nest_of
from pdojo.snitch_sim.simulator.configuration import Timing

X, A, B, Q, R = (Register("f") for _ in range(5))
COUNT, POINTER = Register("x"), Register("x")
LOOP = [
    CodeLine("li", (COUNT,), (), 5),
    CodeLine("label", immediate=".L"),
    CodeLine("fadd.d", (A,), (A, X)),
    CodeLine("fmul.d", (B,), (A, A)),
    CodeLine("fmul.d", (R,), (R, B)),
    CodeLine("fsub.d", (X,), (X, B)),
    CodeLine("fmadd.d", (X,), (X, A, R)),
    CodeLine("fdiv.d", (Q,), (A, B)),
    CodeLine("fdiv.d", (Q,), (B, Q)),
    CodeLine("addi", (COUNT,), (COUNT,), -1),
    CodeLine("bne", (), (COUNT, ZERO), ".L"),
    CodeLine("fadd.d", (A,), (Q, R)),
]


def execute(code: Sequence[CodeLine]) -> dict[Register, object]:
    """The registers after the code, as terms over what they were before; the counter is a number."""
    labels = {i.immediate: k for k, i in enumerate(code) if i.name == "label"}
    values: dict[Register, object] = {}
    count = position = 0
    while position < len(code):
        line = code[position]
        position += 1
        if line.name == "li":
            count = int(str(line.immediate))
        elif line.name == "addi":
            count -= 1
        elif line.name == "bne":
            position = labels[line.immediate] if count else position
        elif line.name != "label":
            values |= {line.defs[0]: hash((line.name, *(values.get(r, id(r)) for r in line.uses)))}
    return values


def test_a_loop_begins_with_the_divisions_of_the_iteration_before() -> None:
    found = rotated(LOOP, Timing())
    names = [i.name for i in found]
    inside = names[names.index("label") + 1 : names.index("bne")]
    assert inside[:2] == ["fdiv.d", "fdiv.d"]
    assert "fdiv.d" not in names[: names.index("label")]
    assert names[names.index("bne") + 1 :] == ["fdiv.d", "fdiv.d", "fadd.d"]
    before, after = execute(LOOP), execute(found)
    assert all(after[register] == before[register] for register in (X, A, Q, R))


@pytest.mark.parametrize(
    "change",
    [
        # One division; a quotient that most of the code needs; other code inside.
        {8: CodeLine("fmul.d", (Q,), (B, Q))},
        {
            7: CodeLine("fcvt.d.w", (Q,), (COUNT,)),
            8: CodeLine("fdiv.d", (Q,), (Q, B)),
            2: CodeLine("fdiv.d", (A,), (A, X)),
        },
        {4: CodeLine("fence")},
    ],
)
def test_other_loops_stay(change: dict[int, CodeLine]) -> None:
    code = [change.get(k, line) for k, line in enumerate(LOOP)]
    assert rotated(code, Timing()) == code


def test_divisions_run_beside_the_next_iteration() -> None:
    """The bits of the interpreter, in fewer cycles than divisions and the rest one after the other."""
    (kernel,) = parse_notation("""kernel k(x) -> (y)
x f64 [16, 4] heap align 8
y f64 [16, 4] heap align 8
e f64 [16:N, 4] register

1:s 16
| 4:u e[{1},{2}] = x[{1},{2}] * x[{1},{2}]
| 4:u e[{1},{2}] = e[{1},{2}] * 3
| 4:u e[{1},{2}] = e[{1},{2}] + 5
| 4:u e[{1},{2}] = e[{1},{2}] * e[{1},{2}]
| 4:u e[{1},{2}] = e[{1},{2}] - 0.125
| 4:u y[{1},{2}] = 1 / e[{1},{2}]
""")
    x = np.random.default_rng(0).normal(size=(16, 4))
    run = load(kernel, machine("snitch-xdiv")).run({"x": x})
    assert run.outputs["y"].tobytes() == interpret(nest_of(kernel), {"x": x})["y"].tobytes()
    # 64 divisions of 19 cycles are all that takes time.
    assert run.result.cycles < 64 * 19 + 120


def test_copies_whose_readers_can_read_the_original_go() -> None:
    p, q, r, s = (Register("f") for _ in range(4))
    branch = CodeLine("bne", (), (COUNT, ZERO), ".L")
    start = [CodeLine("label", immediate=".L"), CodeLine("fmv.d", (p,), (q,))]
    kept = without_copies([*start, CodeLine("fadd.d", (r,), (p, s)), CodeLine("fmv.d", (p,), (r,)), branch])
    assert [i.name for i in kept] == ["label", "fadd.d", "bne"]
    assert kept[1].uses == (q, s)
    kept = without_copies([*start, CodeLine("fadd.d", (p,), (p, s)), branch])
    assert [(i.name, i.uses) for i in kept[1:2]] == [("fadd.d", (q, s))]


@pytest.mark.parametrize("case", ["read later", "changed", "adds to it"])
def test_other_copies_stay(case: str) -> None:
    p, q, r, s = (Register("f") for _ in range(4))
    copy, last = CodeLine("fmv.d", (p,), (q,)), CodeLine("fsd", (), (POINTER, r), 0)
    code = {
        "read later": [copy, CodeLine("label", immediate=".L"), CodeLine("fadd.d", (r,), (p, s)), last],
        "changed": [copy, CodeLine("fadd.d", (q,), (s, s)), CodeLine("fadd.d", (r,), (p, q)), last],
        "adds to it": [copy, CodeLine("vfmac.s", (p,), (p, s, s)), CodeLine("fadd.d", (r,), (p, q)), last],
    }[case]
    assert without_copies(code) == code
