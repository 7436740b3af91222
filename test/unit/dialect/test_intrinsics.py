"""Intrinsics in machine files: what is refused, and what the backend makes of a template."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pdojo.backends.llvm.executable import compile as compile_kernel
from pdojo.backends.llvm.lowering import lower
from pdojo.dialect.flow.program import Program
from pdojo.dialect.intrinsic import LANGUAGES, Intrinsic
from pdojo.dialect.machines import intrinsic_file
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.machines.machine_file import machine_from_json, machine_to_json
from pdojo.dialect.machines.pattern import pattern_of
from pdojo.dialect.machines.registry import machine, machines
from pdojo.dialect.notation import parse_notation
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.plugins import BACKENDS
from pdojo.dialect.rules.tensor import available
from pdojo.dialect.rules.validate import validate
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


def test_templates_of_another_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = table(templates="{ acme = 'ACC' }")
    with pytest.raises(UsageError, match="no backend is called 'acme'"):
        described(tmp_path, text)

    def installed(group: str, _: object) -> set[str]:
        return {"acme"} if group == BACKENDS else set()

    monkeypatch.setattr(intrinsic_file, "plugins", installed)
    (found,) = (i for i in described(tmp_path, text).intrinsics if i.name == "f")
    assert found.template("acme") == "ACC"


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
    "syntax": (table("2 b\n"), "intrinsic 'f': 'meaning' is no kernel: meaning of 'f':1:1: error:"),
    "other name": (table(MEANING.replace("kernel f", "kernel g")), "must be one kernel with the name 'f'"),
    "two nests": (table(MEANING + "2 b[{0}] = a[{0}]\n"), "'meaning' must be one nest"),
    "mapped": (table(MEANING.replace("2 b[", "2:u b[")), "the scope of extent 2 has a mapping or a guard"),
    "index": (table(MEANING.replace("= a[{0}]", "= a[{0}] + {0}")), "'meaning' must not use an iteration as a value"),
    "division": (
        table(MEANING.replace("[2]", "[3]").replace("2 b[", "3 b[").replace("= a[{0}]", "= a[{0}//2]")),
        "'a' must be indexed without '//' and '%'",
    ),
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
        "temporary 't' must be read after the statement that writes it",
    ),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_mistake(case: str, tmp_path: Path) -> None:
    text, expected = MISTAKES[case]
    with pytest.raises(UsageError) as caught:
        described(tmp_path, text)
    assert expected in str(caught.value)
    assert "m.toml" in str(caught.value)


PRODUCT = """kernel f(a, b) -> (c)
a f32 [4, 2] heap
b f32 [2, 2] heap
c f32 [4, 2] heap
4 2 2 c[{0},{1}] += a[{0},{2}] * b[{2},{1}]
"""
FRAGMENTS = {"a": "{0}, {1}", "b": "{1}*2+{0}, 0", "c": "{0}%2*2+{1}, {0}//2"}


def warp_table(meaning: str = PRODUCT, threads: int = 4, more: str = "", **fragments: str) -> str:
    given = {**FRAGMENTS, **fragments}
    rows = ", ".join(f'{name} = "{text}"' for name, text in given.items() if text)
    return table(meaning, threads=str(threads), fragments="{ " + rows + " }" + more)


WARP_MISTAKES = {
    "no warp": (
        warp_table(threads=2, a="{0}%2, {0}//2*2+{1}", b="{1}, {0}", c="{1}, {0}"),
        "'threads' must be a whole warp, gpu.warp_size = 4, not 2",
    ),
    "two warps": (
        warp_table(more="\nwarps = 2"),
        "'threads' must be 2 whole warps ('warps'), gpu.warp_size = 4, not 4",
    ),
    "warps": (warp_table(more="\nwarps = -2"), "'warps' must be a whole number, the warps that run it together"),
    "atom": (
        warp_table(b="", more="\nshared = { b = [2, 8] }"),
        "operand 'b' of 'shared': write three powers of two: rows, bytes of a row, bytes of a granule",
    ),
    "a third dimension": (
        warp_table(b="", more="\nshared = { b = [2, 8, 4, 2] }"),
        "if only elements along one dimension may be neighbours, its number, 0 or 1",
    ),
    "granules": (
        warp_table(b="", more="\nshared = { b = [2, 16, 4] }"),
        "operand 'b' of 'shared': a row must have as many granules as an atom has rows, 2",
    ),
    "atoms": (warp_table(more="\nshared = { b = 3 }"), "'shared' must give each operand three whole numbers"),
    "written and shared": (
        warp_table(c="", more="\nshared = { c = [2, 8, 4] }"),
        "operand 'c' of 'shared' must be a matrix that an instruction of whole warps reads",
    ),
    "shared, no operand": (
        warp_table(more="\nshared = { d = [2, 8, 4] }"),
        "'shared' has 'd', which is no operand: a, b, c",
    ),
    "shared, with a fragment": (
        warp_table(more="\nshared = { b = [2, 8, 4] }"),
        "a fragment is given for 'b', which is no operand in registers",
    ),
    "negative": (warp_table(threads=-1), "'threads' must be a whole number, the threads of a warp"),
    "no threads": (
        warp_table(threads=0),
        "'fragments' are for the instructions of a warp, whose number of threads 'threads' must give",
    ),
    "missing": (warp_table(b=""), "operand 'b' needs a fragment, as 4 threads share it"),
    "no operand": (warp_table(d="{0}, {1}"), "a fragment is given for 'd', which is no operand in registers: a, b, c"),
    "no text": (table(PRODUCT, threads="4", fragments="3"), "'fragments' must be a table of texts"),
    "no expression": (warp_table(a="{0}, x"), "fragment of 'a': '{0}, x' is no fragment: "),
    "no dimension": (warp_table(a="{0}, {2}"), "fragment of 'a': '{0}, {2}' is no fragment: "),
    "one expression": (warp_table(a="{0}"), "write two expressions, 'lane, slot'"),
    "collision": (
        warp_table(c="{0}%2*2+{1}, {0}%2"),
        "fragment of 'c': elements [0, 0] and [2, 0] would both be in lane 0, slot 0",
    ),
    "outside": (
        warp_table(c="{0}*2+{1}, 0"),
        "fragment of 'c': element [2, 0] would be in lane 4, slot 0: there are 4 lanes of 2 slots",
    ),
    "not alike": (
        warp_table(
            PRODUCT.replace("4 2 2 c", "4 2 3 c").replace("[2, 2]", "[3, 2]").replace("a f32 [4, 2]", "a f32 [4, 3]")
        ),
        "fragment of 'b': 6 elements cannot be shared equally by 4 threads",
    ),
    "too many": (
        warp_table(PRODUCT.replace("b f32 [2, 2]", "b f32 [2147483647, 2]")),
        "fragment of 'b': 4294967294 elements are too many for a fragment; operands have at most 65536",
    ),
    "irregular": (
        warp_table(b="({1}*2+{0}+3)%4, 0", c="({0}+1)%4, {1}"),
        "fragment of 'b': lane 3, slot 0 has element [0, 0]; the elements must be linear in the bits of the "
        "lane's number",
    ),
    "strides": (
        table(
            PRODUCT,
            threads="4",
            strides="{ a = ['*', 1] }",
            fragments='{ a = "{0}, {1}", b = "{1}*2+{0}, 0", c = "{0}%2*2+{1}, {0}//2" }',
        ),
        "'strides' do not apply to a warp, whose threads load their elements one by one",
    ),
    "two indices": (
        warp_table(
            PRODUCT.replace("b[{2},{1}]", "a[{0},{1}]").replace("f(a, b)", "f(a)").replace("b f32 [2, 2] heap\n", ""),
            b="",
        ),
        "operand 'a' must be used at one index, so that each thread has its elements",
    ),
    "shifted": (
        warp_table(PRODUCT.replace("a[{0},{2}]", "a[3-{0},{2}]")),
        "each dimension of operand 'a' must be indexed by a scope of its own",
    ),
}


@pytest.mark.parametrize("case", WARP_MISTAKES)
def test_mistake_about_warps(case: str, tmp_path: Path) -> None:
    text, expected = WARP_MISTAKES[case]
    path = tmp_path / "m.toml"
    path.write_text(f'inherits = "toy-gpu"\nname = "m"\n{text}')
    with pytest.raises(UsageError) as caught:
        machine(str(path))
    assert expected in str(caught.value)
    assert str(caught.value).startswith(f"machine file '{path}': key 'intrinsics': intrinsic 'f': ")


WARP_INTRINSICS = [(name, i) for name, i in ALL if i.threads]


@pytest.mark.parametrize(("name", "intrinsic"), WARP_INTRINSICS, ids=lambda v: getattr(v, "name", v))
def test_fragments(name: str, intrinsic: Intrinsic) -> None:
    """Forwards and backwards: `element` finds what `lane` and `slot` number."""
    assert intrinsic.threads == intrinsic.warps * machine(name).gpu.warp_size
    assert machine_from_json(machine_to_json(machine(name))) == machine(name)
    for fragment in pattern_of(intrinsic).fragments.values():
        extents = (intrinsic.threads,)
        for slot in range(fragment.slots):
            element = fragment.element(slot, 0, extents)
            for lane in range(intrinsic.threads):
                index = [e.evaluate([lane]) for e in element]
                assert (fragment.lane.evaluate(index), fragment.slot.evaluate(index)) == (lane, slot)


def test_inheritance_replaces_by_name(tmp_path: Path) -> None:
    other = table(MEANING.replace("kernel f", "kernel toy_dot")).replace('"f"', '"toy_dot"')
    found = described(tmp_path, table() + other).intrinsics
    assert [i.name for i in found] == ["toy_add", "f", "toy_dot"]
    assert "f32 [2]" in found[2].meaning


def test_availability() -> None:
    assert set(available(machine("x86-64-avx512"))) == {"interleave_4_i8", "interleave_2_bf16"}
    assert set(available(machine("x86-64-avx2"))) == {"vpmaddwd_256_broadcast", "interleave_4_i8_256"}
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
