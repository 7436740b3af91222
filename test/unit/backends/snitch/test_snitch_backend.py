"""Assembly for Snitch cores: registers, stack frames, branches, the operations that xDSL lacks."""

from __future__ import annotations

import re
from io import StringIO
from pathlib import Path
from random import Random

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.riscv import print_assembly
from xdsl.parser import Parser
from xdsl.universe import Universe

from pdojo.backends import snitch
from pdojo.backends.snitch.assembly import AssemblyFunction, Line, function_ops, operations
from pdojo.backends.snitch.assignment import Assignment, check
from pdojo.backends.snitch.code import SP, ZERO, CodeLine, FrameKind, Register, SnitchCode
from pdojo.backends.snitch.finish import finish, with_far_branches
from pdojo.backends.snitch.liveness import ControlFlow, Numbering, live_after, without_dead_code
from pdojo.backends.snitch.ops import TABLE
from pdojo.backends.snitch.registers import assign
from pdojo.backends.snitch.repeats import without_repeats
from pdojo.backends.snitch.targets import snitch_source
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation import parse_notation
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.rules.stream_patterns import pattern_of
from pdojo.dialect.view.build import nest_of
from pdojo.dialect.view.nest import Leaf
from pdojo.errors import LoweringError

SNITCH = machine("snitch")


def kernel(text: str) -> KernelOp:
    """The one kernel of a text."""
    (found,) = parse_notation(text)
    return found


def assembly(text: str) -> list[str]:
    """The instructions of a kernel."""
    return [line.strip() for line in snitch_source(kernel(text), SNITCH).text.splitlines() if line.startswith(" ")]


# Registers


def straight(count: int) -> SnitchCode:
    """Code that loads `count` numbers, then adds them up."""
    code = SnitchCode("k")
    base = Register("x", "a0")
    code.emit("entry", (base,))
    values = [code.f("fld", base, immediate=8 * k) for k in range(count)]
    total = values[0]
    for value in values[1:]:
        total = code.f("fadd.d", total, value)
    code.emit("fsd", (), (base, total), 0)
    return code


@pytest.mark.parametrize("count", [2, 32, 33, 60])
def test_no_register_holds_two_values(count: int) -> None:
    code = straight(count)
    assignment = assign(code.finished, code, "k")
    check(assignment)
    spilled = [i for i in assignment.code if i.uses[:1] == (SP,)]
    assert bool(spilled) is (count > 32)


def test_the_check_finds_wrong_names() -> None:
    """Give every register another's name, and see that it is noticed unless the two never meet."""
    noticed = 0
    for seed in range(20):
        code = straight(8)
        good = assign(code.finished, code, "k")
        free = [r for r in good.names if r.fixed is None]
        one, other = Random(seed).sample(free, 2)
        try:
            check(Assignment(good.code, {**good.names, one: good.names[other]}))
        except AssertionError:
            noticed += 1
    assert noticed > 10


def test_the_check_follows_both_ways_of_a_branch() -> None:
    code = SnitchCode("k")
    base, one, other = Register("x", "a0"), Register("x"), Register("x")
    code.emit("entry", (base,))
    code.x("lw", base, immediate=0, to=one)
    code.emit("beq", (), (one, ZERO), ".L1")
    code.x("lw", base, immediate=4, to=other)
    code.emit("label", immediate=".L1")
    code.emit("sw", (), (base, one), 0)
    assert assign(code.finished, code, "k").names[one] not in ("a0", "zero")
    with pytest.raises(AssertionError, match="does not find its operand"):
        check(Assignment(code.finished, {base: "a0", one: "t0", other: "t0"}))


def test_values_live_through_loops() -> None:
    """What is written at the end of an iteration and read at the start of the next one is live in between."""
    start, value, copy = Register("x", "a0"), Register("x"), Register("x")
    body = [
        CodeLine("entry", (start,)),
        CodeLine("mv", (value,), (start,)),
        CodeLine("label", immediate=".L"),
        CodeLine("sw", (), (start, value), 0),
        CodeLine("addi", (copy,), (value,), 1),
        CodeLine("mv", (value,), (copy,)),
        CodeLine("bne", (), (value, ZERO), ".L"),
    ]
    numbering = Numbering(body)
    after = live_after(ControlFlow(body), numbering)
    assert set(numbering.members(after[6])) == {start, value, ZERO}
    assert ControlFlow(body).depths == [0, 0, 1, 1, 1, 1, 1]


def test_a_pointer_that_only_moves_is_dead() -> None:
    pointer, count = Register("x"), Register("x")
    code = [
        CodeLine("li", (pointer,), (), 0),
        CodeLine("li", (count,), (), 4),
        CodeLine("label", immediate=".L"),
        CodeLine("addi", (pointer,), (pointer,), 8),
        CodeLine("addi", (count,), (count,), -1),
        CodeLine("bne", (), (count, ZERO), ".L"),
    ]
    assert [i.name for i in without_dead_code(code)] == ["li", "label", "addi", "bne"]


def test_hardware_loops_keep_what_is_for_nothing() -> None:
    """The loop counts instructions: none may go, be it a copy to itself or a result that nobody reads."""
    lines = assembly(
        "kernel k(x) -> (y)\nx f64 [8] heap\ny f64 [8] heap\nt f64 [1] register\nu f64 [1] register\n\n"
        "t[0] = 1\n1:s 8:f\n| y[{1}] = x[{1}]\n| u[0] = t[0]\n| t[0] = u[0]\n"
    )
    at = next(k for k, line in enumerate(lines) if line.startswith("frep.o"))
    assert lines[at].endswith(", 3, 0, 0")
    assert [line.split()[0] for line in lines[at + 1 : at + 4]] == ["fmv.d"] * 3
    assert lines[at + 4].startswith("csrrci")


def test_hardware_loops_of_other_instructions_are_errors() -> None:
    code = SnitchCode("k")
    scope = nest_of(kernel("kernel k(x) -> (y)\nx f64 [8] heap\ny f64 [8] heap\n\n1:s 8:f y[{1}] = x[{1}]\n")).scopes[1]
    for emit, expected in ((("fadd.d", 1), 2), (("lw", 0), 1)):
        with code.frame(FrameKind.HARDWARE_LOOP, scope) as frame:
            kind = "f" if emit[1] else "x"
            code.emit(emit[0], (Register(kind),), (Register(kind), Register(kind)))
        with pytest.raises(LoweringError, match="a hardware loop of"):
            code.close_hardware_loop(frame, expected, 8, "snitch")


def test_streams_keep_their_registers() -> None:
    """While streams are on, no value is in ft0 to ft2."""
    text = "kernel k(x) -> (y)\nx f64 [8, 24] heap\ny f64 [24] heap\nt f64 [24] register\n\n24:u t[{0}] = 0\n"
    lines = assembly(text + "1:s 8:f 24:u t[{2}] += x[{1},{2}]\n24:u y[{0}] = t[{0}]\n")
    body = [line.split(None, 1)[1] for line in lines if line.startswith("fadd.d")]
    assert len({line.split(",")[0] for line in body}) == 24
    assert not any(line.split(",")[0] in ("ft0", "ft1", "ft2") for line in body)
    assert all(f"fsd fs{k}, " in " ".join(lines) and f"fld fs{k}, " in " ".join(lines) for k in range(4))


# Frames and branches


def test_frames() -> None:
    code = straight(60)
    lines, size = finish(code, 4096, "k")
    assert size % 16 == 0
    assert size > 4096
    assert lines[0] == Line("li", ("t0",), (), -size)
    assert lines[-1] == Line("ret")
    slots = {line.immediate for line in lines if line.name == "fsd" and line.uses[0] == "sp"}
    assert max(s for s in slots if isinstance(s, int)) < 2048


def test_far_branches_jump() -> None:
    far = [Line("label", immediate=".L"), *[Line("nop")] * 1200, Line("bne", (), ("a0", "zero"), ".L"), Line("ret")]
    found = with_far_branches(far)
    assert found[-4:] == [
        Line("beq", (), ("a0", "zero"), ".L_1201"),
        Line("j", immediate=".L"),
        Line("label", immediate=".L_1201"),
        Line("ret"),
    ]
    assert with_far_branches(far[:1] + far[500:]) == far[:1] + far[500:]


# Streams


@pytest.mark.parametrize(
    ("index", "bounds", "strides", "repeat"),
    [
        ("{0}*12+{1}*4+{2}", (24,), (8,), 1),
        ("{0}*12+{1}*4", (6,), (32,), 4),
        ("{2}", (6, 4), (0, 8), 1),
        ("{0}*12+{2}", (2, 3, 4), (96, 0, 8), 1),
        ("23-{0}*12-{1}*4-{2}", (24,), (-8,), 1),
        ("0", (24,), (0,), 1),
    ],
)
def test_patterns(index: str, bounds: tuple[int, ...], strides: tuple[int, ...], repeat: int) -> None:
    text = f"kernel k(x) -> (y)\nx f64 [24] heap\ny f64 [24] heap\n\n2:s 3 4 y[{{0}}*12+{{1}}*4+{{2}}] = x[{index}]\n"
    nest = nest_of(kernel(text))
    leaf = nest.leaves[0]
    assert isinstance(leaf, Leaf)
    found = pattern_of(nest, leaf, leaf.reads[0], nest.scopes[0], writes=False, most_repeats=16)
    assert (found.bounds, found.strides, found.repeat) == (bounds, strides, repeat)
    # Every address of the pattern, in the order of the scopes.
    offsets = [0]
    for bound, stride in zip(found.bounds, found.strides, strict=True):
        offsets = [o + k * stride for o in offsets for k in range(bound)]
    values = [leaf.reads[0].index[0].evaluate((i, j, k)) for i in range(2) for j in range(3) for k in range(4)]
    assert [o for o in offsets for _ in range(found.repeat)] == [8 * (v - values[0]) for v in values]


def test_writes_are_not_repeated() -> None:
    nest = nest_of(kernel("kernel k(x) -> (y)\nx f64 [8] heap\ny f64 [1] heap\n\n8:s y[0] = x[{0}]\n"))
    leaf = nest.leaves[0]
    found = pattern_of(nest, leaf, leaf.output, nest.scopes[0], writes=True, most_repeats=16)
    assert (found.bounds, found.strides, found.repeat) == ((8,), (0,), 1)


# xDSL


def test_bytes_and_halves_are_written_as_assemblers_want() -> None:
    """xDSL's own operations leave out the parentheses."""
    text = assembly(
        "kernel k(x, h) -> (y, g)\nx i8 [4] heap\ny i8 [4] heap\nh i16 [4] heap\ng i16 [4] heap\n\n"
        "4 y[{0}] = x[{0}] + 1\n4 g[{0}] = h[{0}] + 1\n"
    )
    assert any(line.startswith("lb ") and line.endswith("(a0)") for line in text)
    assert {line.split()[0] for line in text if "(" in line} == {"lb", "sb", "lh", "sh"}


def test_conversions_round_to_zero() -> None:
    text = assembly("kernel k(x) -> (y)\nx f64 [4] heap\ny i32 [4] heap\n\n4 y[{0}] = cast(x[{0}])\n")
    assert any(line.startswith("fcvt.w.d") and line.endswith(", rtz") for line in text)


def test_packed_constants_are_in_all_lanes() -> None:
    declared = "kernel k(x) -> (y)\nx f32 [4] heap align 8\ny f32 [4] heap align 8\n\n"
    source = snitch_source(kernel(declared + "2 2:v y[{0}*2+{1}] = x[{0}*2+{1}] * 1.5\n"), SNITCH)
    assert ".word 0x3fc00000, 0x3fc00000" in source.text


def test_long_repeats_are_dimensions() -> None:
    """The hardware's counter has four bits, which xDSL does not check."""
    text = "kernel k(x) -> (y)\nx f64 [8] heap\ny f64 [8, {n}] heap\n\n8:s {n} y[{{0}},{{1}}] = x[{{0}}]\n"
    assert any(line == "scfgwi a3, 33" for line in assembly(text.format(n=16)) if line.endswith(" 33"))
    # Both streams at once: everything is read once.
    assert "scfgwi zero, 63" in assembly(text.format(n=17))


def test_loops_around_a_hardware_loop_alone_are_part_of_it() -> None:
    text = "kernel k(x) -> (y)\nx f64 [4, {n}, 3] heap\ny f64 [3, {n}, 4] heap\n\n"
    text += "1:s 4 {n} 3:f y[{{3}},{{2}},{{1}}] = x[{{1}},{{2}},{{3}}]\n"
    lines = assembly(text.format(n=5))
    assert "li a2, 59" in lines
    assert not any(line.startswith("bne") for line in lines)


SAMPLES = (
    ("lb$|lbu$|lh$|lhu$", ("a1",), ("a0",), 4),
    ("flh$", ("ft3",), ("a0",), 4),
    ("sb$|sh$", (), ("a0", "a1"), 4),
    ("fsh$", (), ("a0", "ft3"), 4),
    ("feq|flt|fle|vfeq", ("a1",), ("ft3", "ft4"), None),
    ("fcvt.w|fclass|fmv.x", ("a1",), ("ft3",), None),
    (r".*\.(w|wu|x)$", ("ft3",), ("a1",), None),
    ("fcvt|fsqrt|vfsqrt", ("ft3",), ("ft4",), None),
    ("fmadd|fmsub|fnm", ("ft3",), ("ft4", "ft5", "ft6"), None),
    ("vfm(ac|re)", ("ft3",), ("ft3", "ft4", "ft5"), None),
    ("", ("ft3",), ("ft4", "ft5"), None),
)
"""Operands of our own operations, by the beginning of their names."""


def sample(name: str) -> Line:
    """An instruction of one of our operations."""
    _, defs, uses, immediate = next(row for row in SAMPLES if re.match(row[0], name))
    return Line(name, defs, uses, immediate)


def test_own_operations_print_and_parse() -> None:
    lines = [sample(name) for name in TABLE]
    lines += [Line("fence"), Line("la", ("a0",), (), "k_constants"), Line("scfgr", ("a1",), ("a0",)), Line("ret")]
    module = ModuleOp(function_ops(AssemblyFunction("k", lines, {"k_constants": (1, 0)})))
    module.verify()
    context = Context()
    for name, factory in Universe.get_multiverse().all_dialects.items():
        context.register_dialect(name, factory)
    again = Parser(context, str(module)).parse_module()
    assert str(again) == str(module)
    texts: list[str] = []
    for each in (module, again):
        output = StringIO()
        print_assembly(each, output)
        texts.append(output.getvalue())
    assert texts[0] == texts[1]
    written = [line.split()[0] for line in texts[0].splitlines() if line.startswith(" ")]
    assert written == [line.name.removesuffix(".rtz") for line in lines]
    assert set(TABLE) <= set(operations())


def test_repeats_in_straight_code_go() -> None:
    """Equal computations of registers that are written once; loads until something is stored; hardware loops stay."""
    x, p, q, r, s, t, v = (Register("f") for _ in range(7))
    base = Register("x")
    code = [
        CodeLine("flw", (x,), (base,), 0),
        CodeLine("vfcpka.s.s", (p,), (x, x)),
        CodeLine("flw", (q,), (base,), 0),
        CodeLine("vfcpka.s.s", (r,), (q, q)),
        CodeLine("vfadd.s", (s,), (p, r)),
        CodeLine("fsd", (), (base, s), 8),
        CodeLine("flw", (t,), (base,), 0),
        CodeLine("label", (), (), "again"),
        CodeLine("vfcpka.s.s", (v,), (x, x)),
    ]
    kept = without_repeats(code)
    assert [i.name for i in kept] == ["flw", "vfcpka.s.s", "vfadd.s", "fsd", "flw", "label", "vfcpka.s.s"]
    assert kept[2].uses == (p, p)
    accumulated = [CodeLine("fadd.d", (s,), (s, x)), CodeLine("fadd.d", (s,), (s, x))]
    assert len(without_repeats(accumulated)) == 2
    inside = [
        CodeLine("frep.o", (), (base,), 2),
        CodeLine("fmul.d", (p,), (x, x)),
        CodeLine("fmul.d", (q,), (x, x)),
        CodeLine("frep.end"),
    ]
    assert len(without_repeats(inside)) == 4


def test_loads_stay_known_past_stores_to_other_arrays() -> None:
    """Not past those to their own, or to memory of which nothing is known."""
    arrays = {name: Register("x", area=name) for name in "xy"}
    unknown, value = Register("x"), Register("f")
    for base, kept in ((arrays["y"], 2), (arrays["x"], 3), (unknown, 3)):
        code = [
            CodeLine("flw", (Register("f"),), (arrays["x"],), 4),
            CodeLine("fsw", (), (base, value), 8),
            CodeLine("flw", (Register("f"),), (arrays["x"],), 4),
        ]
        assert len(without_repeats(code)) == kept
    code = [CodeLine("flw", (Register("f"),), (unknown,), 4), CodeLine("fsw", (), (arrays["y"], value), 8)]
    assert len(without_repeats([*code, CodeLine("flw", (Register("f"),), (unknown,), 4)])) == 3


def test_only_the_walk_counts_lanes() -> None:
    """Code that counts the lanes of a scope itself forgets the guard."""
    for path in Path(snitch.__file__).parent.glob("*.py"):
        assert not re.findall(r"range\([^)\n]*extent", path.read_text(encoding="utf-8")), path
