"""Intrinsics in machine files: what is refused, and what the backend makes of a template."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pdojo.backends.executable import compile as compile_kernel
from pdojo.backends.llvm.lowering import lower
from pdojo.dialect.analysis.program import Program
from pdojo.dialect.analysis.tensor import available
from pdojo.dialect.analysis.validate import validate
from pdojo.dialect.machines.intrinsic import LANGUAGES
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.machines.pattern import pattern_of
from pdojo.dialect.machines.registry import machine, machines
from pdojo.dialect.notation import parse_notation
from pdojo.dialect.ops import KernelOp
from pdojo.errors import InvalidKernel, LoweringError, NotationError, UsageError
from pdojo.transforms.game import Game

MEANING = "kernel f(a) -> (b)\na f32 [2] heap\nb f32 [2] heap\n2 b[{0}] = a[{0}]\n"
TEMPORARY = "kernel f(a) -> (b)\na f32 [2] heap\nb f32 [2] heap\nt f32 [2] heap\n2\n"
ALL = [(name, i) for name in machines() for i in machine(name).intrinsics]


def described(folder: Path, intrinsic: str) -> Machine:
    path = folder / "m.toml"
    path.write_text(f'inherits = "toy"\nname = "m"\n{intrinsic}')
    return machine(str(path), trust=True)


def table(meaning: str = MEANING, **values: str) -> str:
    rows = "".join(f"{key} = {value}\n" for key, value in values.items())
    return f'[[intrinsics]]\nname = "f"\nmeaning = """\n{meaning}"""\n{rows}'


@pytest.mark.parametrize(("name", "intrinsic"), ALL, ids=lambda v: getattr(v, "name", v))
def test_shipped(name: str, intrinsic: object) -> None:
    """Every meaning is a valid kernel that the game accepts, and a pattern."""
    found = next(i for i in machine(name).intrinsics if i is intrinsic)
    pattern = pattern_of(found)
    validate(Program(pattern.nest.kernel, machine("toy")))
    assert set(found.templates) <= set(LANGUAGES)


MISTAKES = {
    "no list": ("intrinsics = 3\n", "key 'intrinsics': must be tables: begin each with [[intrinsics]]"),
    "no table": ("intrinsics = [3]\n", "key 'intrinsics': must be tables: begin each with [[intrinsics]]"),
    "no name": ("[[intrinsics]]\nmeaning = ''\n", "every intrinsic needs a name of letters, digits and _"),
    "strange name": ("[[intrinsics]]\nname = 'a b'\n", "every intrinsic needs a name of letters, digits and _"),
    "unknown key": (table(maening="''"), "intrinsic 'f': no such key 'maening'; did you mean 'meaning'?"),
    "far key": (table(xyzzy="1"), "intrinsic 'f': no such key 'xyzzy'; known keys are name, meaning,"),
    "no meaning": ("[[intrinsics]]\nname = 'f'\n", "intrinsic 'f': 'meaning' must be a kernel in the notation"),
    "templates": (table(templates="3"), "intrinsic 'f': 'templates' must be a table of texts"),
    "backend": (table(templates="{ lvm = '' }"), "no backend is called 'lvm'; templates are for llvm, c, cuda"),
    "numerics": (
        table(numerics="['fast']"),
        "'fast' is no numerics class: reassociate, contract, flush, reciprocal, numbers",
    ),
    "registers": (table(registers="-1"), "intrinsic 'f': 'registers' must be a whole number"),
    "features": (table(features="[1]"), "intrinsic 'f': 'features' must be a list of texts"),
    "strides": (table(strides="{ a = 1 }"), "intrinsic 'f': 'strides' must give each operand a list of whole numbers"),
    "number of strides": (table(strides="{ a = [1, 1] }"), "'a' needs a stride for each of its dimensions, not 2"),
    "strides of none": (table(strides="{ c = [1] }"), "strides are given for 'c', which is no operand: a, b"),
    "twice": (table() + table(), "there are two intrinsics 'f'"),
    "syntax": (table("2 b\n"), "intrinsic 'f': the meaning is no kernel: meaning of 'f':1:1: error:"),
    "other name": (table(MEANING.replace("kernel f", "kernel g")), "must be one kernel of the name 'f'"),
    "two nests": (table(MEANING + "2 b[{0}] = a[{0}]\n"), "the meaning must be one nest"),
    "mapped": (table(MEANING.replace("2 b[", "2:u b[")), "the scope of extent 2 has a mapping or a guard"),
    "index": (table(MEANING.replace("= a[{0}]", "= a[{0}] + {0}")), "the meaning cannot use an iteration as a value"),
    "division": (table(MEANING.replace("= a[{0}]", "= a[({0}+1)//2]")), "'a' must be indexed without '//' and '%'"),
    "unused": (table(MEANING.replace("f(a)", "f(a, c)").replace("b f32", "c f32 [2] heap\nb f32")), "'c' is not used"),
    "free": (table(MEANING.replace("= a[{0}]", "= a[1-{0}]"), strides="{ a = ['*'] }"), "'a' has a free stride"),
    "accumulating temporary": (
        table(TEMPORARY + "| t[{0}] += a[{0}]\n| b[{0}] = t[{0}]\n"),
        "temporary 't' must be written by one statement that does not accumulate",
    ),
    "temporary elsewhere": (
        table(TEMPORARY + "| t[0] = a[{0}]\n| b[{0}] = t[{0}]\n"),
        "temporary 't' must be used at one index, in the body that writes it",
    ),
    "temporary before": (
        table(TEMPORARY + "| b[{0}] = t[{0}]\n| t[{0}] = a[{0}]\n"),
        "temporary 't' must be read behind the statement that writes it",
    ),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_mistake(case: str, tmp_path: Path) -> None:
    text, expected = MISTAKES[case]
    with pytest.raises(UsageError) as caught:
        described(tmp_path, text)
    assert expected in str(caught.value)
    assert "m.toml" in str(caught.value)


def test_inheritance_replaces_by_name(tmp_path: Path) -> None:
    other = table(MEANING.replace("kernel f", "kernel toy_dot")).replace('"f"', '"toy_dot"')
    found = described(tmp_path, table() + other).intrinsics
    assert [i.name for i in found] == ["toy_add", "f", "toy_dot"]
    assert "f32 [2]" in found[2].meaning


def test_availability() -> None:
    assert set(available(machine("x86-64-avx512"))) == {"interleave_4_i8", "interleave_2_bf16"}
    assert {"vpdpbusd_512", "vdpbf16ps_512"} <= set(available(machine("x86-64-zen4")))
    assert "toy_dot" in available(machine("toy"))


def mapped(name: str = "f") -> KernelOp:
    header = "kernel k(x) -> (y)\nx f32 [8] heap\ny f32 [8] heap\n"
    return parse_notation(f"{header}4 2:m({name}) y[{{0}}*2+{{1}}] = x[{{0}}*2+{{1}}]\n")[0]


COPY = """
define void @f(ptr %a, ptr %b) alwaysinline {
  %v = load <2 x float>, ptr %a, align 4
  store <2 x float> %v, ptr %b, align 4
  ret void
}
"""

TEMPLATES = {
    "no template": ("", "whose description has no template for llvm"),
    "no IR": ("define", "the llvm template of intrinsic 'f' is no LLVM IR: "),
    "other function": (COPY.replace("@f", "@g"), "the llvm template of intrinsic 'f' does not define @f"),
    "declared only": ("declare void @f(ptr, ptr)", "does not define @f"),
    "other arguments": (
        COPY.replace("ptr %b)", "ptr %b, i64 %n)"),
        "must define void @f(ptr, ptr), not void (ptr, ptr, i64)",
    ),
    "not inlined": (COPY.replace(" alwaysinline", ""), "must have the attribute alwaysinline"),
}


@pytest.mark.parametrize("case", TEMPLATES)
def test_wrong_template(case: str, tmp_path: Path) -> None:
    text, expected = TEMPLATES[case]
    template = f'[intrinsics.templates]\nllvm = """{text}"""\n' if text else ""
    unit = described(tmp_path, table() + template)
    with pytest.raises(LoweringError) as caught:
        compile_kernel(mapped(), unit)
    assert expected in str(caught.value)


def test_lowering_refuses() -> None:
    toy = machine("toy")
    with pytest.raises(LoweringError, match=r"mapped to 'g', which the machine does not have; it has toy_dot"):
        compile_kernel(mapped("g"), toy)
    with pytest.raises(LoweringError, match="is not what 'toy_dot' computes: the nest has another form"):
        compile_kernel(mapped("toy_dot"), toy)
    lacking = replace(toy, intrinsics=tuple(replace(i, features=("imaginary",)) for i in toy.intrinsics))
    with pytest.raises(LoweringError, match="which needs imaginary: this processor lacks it"):
        compile_kernel(mapped("toy_dot"), lacking)
    with pytest.raises(LoweringError, match="which the machine does not have"):
        lower(mapped("nothing"))


def test_registers_are_indexed_by_constants() -> None:
    text = """kernel k(x, z) -> (y)
x f32 [2, 4] heap
z f32 [2, 4] heap
y f32 [2, 4] heap
r f32 [2, 4] register

2
| 4:m(toy_add) r[{0},{1}] = x[{0},{1}] + z[{0},{1}]
| 4:v y[{0},{1}] = r[{0},{1}]
"""
    with pytest.raises(LoweringError, match="works on 'r', which is in registers"):
        compile_kernel(parse_notation(text)[0], machine("toy"))
    assert compile_kernel(parse_notation(text.replace("\n2\n", "\n2:u\n"))[0], machine("toy"))
    in_slots = text.replace("[2, 4] register", "[2:N, 4] register")
    game = Game(parse_notation(in_slots)[0], machine("toy"))
    refused = {str(r.move): r.reason for r in game.refused()}
    assert refused["unmap@r:1"] == "'r' is in registers, which only constants index"


def test_game_begins_only_where_the_instruction_fits() -> None:
    with pytest.raises(InvalidKernel, match="toy has no intrinsic 'f' for scope"):
        Game(mapped(), machine("toy"))
    with pytest.raises(InvalidKernel, match="would not be what the instruction computes"):
        Game(mapped("toy_dot"), machine("toy"))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("2:m y[{0}] = x[{0}]", "expected '('"),
        ("2:m(3) y[{0}] = x[{0}]", "the name of the instruction"),
        ("2:m(f y[{0}] = x[{0}]", "after the name of an instruction"),
        ("2:m(a.b) y[{0}] = x[{0}]", "'a.b' is no name of an intrinsic"),
        ("2:m(f) 1:u y[{0}] = x[{0}]", "cannot be inside scope {0} of extent 2:m(f): one instruction is all of it"),
    ],
)
def test_syntax(line: str, expected: str) -> None:
    with pytest.raises(NotationError) as caught:
        parse_notation(f"kernel k(x) -> (y)\nx f32 [2] heap\ny f32 [2] heap\n{line}\n")
    assert expected in str(caught.value)
