"""Operands that a warp loads as matrices (ldmatrix): in which layouts, and what fibers, which know PTX's table, say."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache

import pytest

from differential.compiled import Arrays, kernel, random_inputs
from differential.device_code import (
    CompiledKernels,
    compile_kernels,
    first_line,
    is_noticed,
    run_text,
    unnoticed,
)
from differential.library import close
from pdojo.backends.calling.arrays import parameters_of
from pdojo.backends.gpu import nvrtc
from pdojo.backends.gpu.fibers import FiberError
from pdojo.backends.gpu.resources import MissingTool
from pdojo.backends.gpu.spelling import CudaSpelling, FiberSpelling
from pdojo.backends.gpu.targets import device_text
from pdojo.dialect.machines.pattern import pattern_of
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.semantics.interpreter import interpret
from pdojo.dialect.view.build import nest_of
from pdojo.transforms.game import Game
from toolchain import require_fibers

NVIDIA = machine("nvidia-sm90")


@dataclass(frozen=True)
class Case:
    """A product of one block of two warps, and the loads of its operands."""

    unit: str
    first: str
    """How p, the first operand, lies in shared memory: `SHAPE INDEX` with R and C for row and column."""
    second: str
    wanted: tuple[str, ...]
    """The calls that load p and q."""
    more: str = ""
    """A declaration before p, which moves it."""


ROWS, COLUMNS = "[{rows}, {terms}] R,T", "[{terms}, {rows}] T,R"
"""Rows of terms, and terms of rows, without gaps."""
CASES = {
    "rows of terms": Case("mma_16x8x16_bf16", ROWS, ROWS, ("ldmatrix<4>", "ldmatrix<2>")),
    "terms of rows": Case("mma_16x8x16_bf16", COLUMNS, COLUMNS, ("ldmatrix_trans<4>", "ldmatrix_trans<2>")),
    "halves": Case("mma_16x8x16_f16", ROWS, COLUMNS, ("ldmatrix<4>", "ldmatrix_trans<2>")),
    "padded": Case("mma_16x8x16_bf16", "[{rows}, 56] R,T", "[{terms}, 40] T,R", ("ldmatrix<4>", "ldmatrix_trans<2>")),
    "padded too little": Case("mma_16x8x16_bf16", "[{rows}, 52] R,T", "[{terms}, 36] T,R", ()),
    "swizzled": Case(
        "mma_16x8x16_bf16", "[{rows}, 64^0*8] R,T", "[{terms}, 32^0*8] T,R", ("ldmatrix<4>", "ldmatrix_trans<2>")
    ),
    "swizzled in halves of rows": Case("mma_16x8x16_bf16", "[{rows}, 64^0*4] R,T", "[{terms}, 32^0*4] T,R", ()),
    "shifted": Case(
        "mma_16x8x16_bf16", "[{rows}, 64] R,T+8", "[{terms}, 40] T,R+8", ("ldmatrix<4>", "ldmatrix_trans<2>")
    ),
    "shifted by half a row": Case("mma_16x8x16_bf16", "[{rows}, 64] R,T+4", "[{terms}, 40] T,R+4", ()),
    "every other": Case("mma_16x8x16_bf16", "[{rows}, 96] R,T*2", "[{terms}, 64] T,R*2", ()),
    "tf32": Case("mma_16x8x8_tf32", ROWS, ROWS, ("ldmatrix<4>", "ldmatrix<2>")),
    "3xtf32, padded": Case("mma_16x8x8_3xtf32", "[{rows}, 28] R,T", "[{rows}, 36] R,T", ("ldmatrix<4>", "ldmatrix<2>")),
    "tf32, terms of rows": Case("mma_16x8x8_tf32", COLUMNS, COLUMNS, ()),
    "behind something small": Case(
        "mma_16x8x16_bf16", ROWS, COLUMNS, ("ldmatrix<4>", "ldmatrix_trans<2>"), "w bf16 [3] shared"
    ),
}


def product(case: Case, name: str = "product") -> KernelOp:
    (unit,) = (i for i in NVIDIA.intrinsics if i.name == case.unit)
    operands = pattern_of(unit).operands
    (m, k), n, dtype = operands["a"].shape, operands["b"].shape[1], operands["a"].dtype
    terms = 2 * k

    def place(name: str, form: str, row: str, term: str) -> str:
        index = form.partition("] ")[2].replace("R", f"({row})").replace("T", f"({term})")
        return f"{name}[{index}]"

    def declared(name: str, form: str, rows: int) -> str:
        return f"{name} {dtype} {form.partition('] ')[0].format(rows=rows, terms=terms)}] shared"

    p, q = (
        place(*given)
        for given in (
            ("p", case.first, f"{{1}}*{m}+{{4}}", f"{{3}}*{k}+{{6}}"),
            ("q", case.second, f"{{2}}*{n}+{{5}}", f"{{3}}*{k}+{{6}}"),
        )
    )
    lines = [
        f"kernel {name}(x, z) -> (y)",
        "numerics contract reassociate tf32",
        f"x {dtype} [{2 * m}, {terms}] heap",
        f"z {dtype} [{2 * n}, {terms}] heap",
        f"y f32 [{2 * m}, {2 * n}] heap",
        f"s f32 [2, 2, {m}, {n}] register",
        *([case.more] if case.more else []),
        declared("p", case.first, 2 * m),
        declared("q", case.second, 2 * n),
    ]
    if dtype != "f32":
        lines += [f"{name} f32 [2:N, 2:N, 2:N, {m}:N, {n}:N, {k}:N] stack" for name in "uv"]
    lines += ["", "1:g", "| 2:b 2:u 2:u 32:w 2:u s[{1},{2},{3}*8+{4}//4,{4}%4*2+{5}] = 0"]
    lines += [f"| 3:b {case.more.split()[0]}[{{1}}] = x[0,{{1}}]"] if case.more else []
    lines += [f"| {2 * m}:b {terms} {place('p', case.first, '{1}', '{2}')} = x[{{1}},{{2}}]"]
    lines += [f"| {2 * n}:b {terms} {place('q', case.second, '{1}', '{2}')} = z[{{1}},{{2}}]"]
    lines += [f"| 2:b 2:u 2:u {m}:m({case.unit}) {n} {k}"]
    if dtype == "f32":
        lines[-1] += f" s[{{1}},{{2}},{{4}},{{5}}] fma= {p} * {q}"
    else:
        own = "{1},{2},{3},{4},{5},{6}"
        lines += [f"| | u[{own}] = cast({p})", f"| | v[{own}] = cast({q})"]
        lines += [f"| | s[{{1}},{{2}},{{4}},{{5}}] fma= u[{own}] * v[{own}]"]
    tile = f"y[{{1}}*{m}+{{3}}*8+{{4}}//4,{{2}}*{n}+{{4}}%4*2+{{5}}]"
    lines += [f"| 2:b 2:u 2:u 32:w 2:u {tile} = s[{{1}},{{2}},{{3}}*8+{{4}}//4,{{4}}%4*2+{{5}}]"]
    return kernel("\n".join(lines) + "\n")


def prepared(case: Case, name: str = "product") -> tuple[KernelOp, Arrays, Arrays]:
    program = product(case, name)
    Game(program, NVIDIA)
    inputs = random_inputs(parameters_of(nest_of(program)), 1)
    return program, inputs, dict(interpret(program, inputs))


def agrees(found: Arrays, wanted: Arrays, case: Case, program: KernelOp) -> None:
    if case.unit == "mma_16x8x8_tf32":
        assert abs(found["y"] - wanted["y"]).max() < 1e-2 * abs(wanted["y"]).max()
    else:
        close(found, wanted, program)


PRODUCTS = {name: f"product{number}" for number, name in enumerate(CASES)}
"""The names of the cases' kernels where all are in one text, because each text costs a run of a compiler."""


@cache
def compiled() -> CompiledKernels:
    """All cases in one text."""
    return compile_kernels((product(CASES[name], PRODUCTS[name]) for name in CASES), described=NVIDIA)


@pytest.mark.parametrize("name", CASES)
def test_layouts(name: str) -> None:
    require_fibers()
    case = CASES[name]
    program, inputs, wanted = prepared(case, PRODUCTS[name])
    text = device_text(program, spelling=CudaSpelling(), machine=NVIDIA).text
    assert tuple(re.findall(r"^ +(ldmatrix\w*<\d>)\(", text, re.MULTILINE)) == case.wanted
    for found in compiled().run(program, inputs):
        agrees(found, wanted, case, program)


def test_layouts_compile() -> None:
    """All in one text, because each text costs a run of the disassembler."""
    programs = [product(case, PRODUCTS[name]) for name, case in CASES.items()]
    try:
        image = nvrtc.compile_cuda(device_text(*programs, spelling=CudaSpelling(), machine=NVIDIA).text)
    except MissingTool as error:
        pytest.skip(str(error))
    assert len(image.kernels) == len(CASES)
    for resources in image.kernels.values():
        assert (resources.spill_stores, resources.spill_loads, resources.stack) == (0, 0, 0)
    if nvrtc.disassembler() is not None:
        code = nvrtc.disassemble(image.cubin)
        parts = dict(re.findall(r"^\.text\.product(\d+)_0:$(.*?)(?=^\.text\.|\Z)", code, re.MULTILINE | re.DOTALL))
        for number, case in enumerate(CASES.values()):
            forms = {"MT88" if "trans" in call else "M88" for call in case.wanted}
            assert set(re.findall(r"\bLDSM\.16\.(\w+)\.", parts[str(number)])) == forms


MUTANTS = {
    "a column too far": (r"(ldmatrix<4>\(&lane0\[0\], &p\[)", r"\g<1>8+"),
    "the row of another lane": (r"(ldmatrix_trans<2>\(&lane1\[0\], &q\[.*?)(i7%16)", r"\g<1>(\g<2> ^ 1)"),
    "no .trans": (r"ldmatrix_trans<2>\(&lane1", "ldmatrix<2>(&lane1"),
    ".trans": (r"ldmatrix<4>\(&lane0", "ldmatrix_trans<4>(&lane0"),
    "half of the matrices": (r"ldmatrix<4>\(&lane0", "ldmatrix<2>(&lane0"),
    "another half": (r"(ldmatrix<4>\(&lane0\[)0", r"\g<1>2"),
    "not to its slots": (r"ldmatrix_trans<2>\(&lane1\[0\]", "ldmatrix_trans<1>(&lane1[2]"),
    "no barrier": (r"__syncthreads\(\);", ""),
}
"""What is wrong in the code of `halves`: a pattern, and what is in its place."""


def test_mutants_are_noticed() -> None:
    require_fibers()
    program, inputs, wanted = prepared(CASES["halves"])
    text = device_text(program, spelling=FiberSpelling(), machine=NVIDIA).text
    lines = text.split("\n")
    defects: dict[str, dict[int, str]] = {}
    for name, (pattern, other) in MUTANTS.items():
        mutants = {k: re.sub(pattern, other, lines[k]) for k in range(first_line(text), len(lines))}
        defects[name] = {k: mutant for k, mutant in mutants.items() if mutant != lines[k]}
        assert defects[name]
    assert unnoticed(text, defects, program, program, inputs, wanted, warp=32, scratch=0) == []


TRAPS = {
    "misaligned": ((r"(ldmatrix<4>\(&lane0\[0\], &p\[)", r"\g<1>1+"), r"a row is misaligned, its address % 16 = 2"),
    "outside": ((r"(ldmatrix<4>\(&lane0\[0\], )&p\[", r"\g<1>(uint16_t *)p + 8 * ("), r"a row is outside of shared"),
    "not in shared memory": (
        (r"(ldmatrix<4>\(&lane0\[0\], )&p\[.*\]", r"\g<1>(const void *)((uintptr_t)x / 16 * 16)"),
        r"a row is outside of shared memory",
    ),
    "a part of the warp": (
        (r"( +)(ldmatrix<4>.*)", r"\g<1>if (thread % 32 != 5) \g<2>"),
        r"waits in pd_ldmatrix at line \d+ for thread \d+, which waits in pd_ldmatrix at line \d+",
    ),
}
"""What is an error of its own."""


@pytest.mark.parametrize("name", TRAPS)
def test_traps(name: str) -> None:
    require_fibers()
    program, inputs, _ = prepared(CASES["halves"])
    text = device_text(program, spelling=FiberSpelling(), machine=NVIDIA).text
    (before, after), message = TRAPS[name]
    start = text.index("// kernel")
    mutant, count = re.subn(before, after, text[start:])
    assert count == 1
    if name == "outside":
        mutant = re.sub(r"(\(uint16_t \*\)p \+ 8 \* \(.*)\]\);", r"\g<1>));", mutant)
    with pytest.raises(FiberError, match=message):
        run_text(text[:start] + mutant, program, inputs, warp=32, scratch=0, ways=[(True, "ascending")])


WRONG = {
    "rows for columns": ("halves", {"ldmatrix": "{1}*4 + {0}//2, {0}%2"}, "ldmatrix<4>"),
    "columns for rows": ("halves", {"ldmatrix_trans": "{0}*4 + {1}//2, {1}%2"}, "ldmatrix_trans<2>"),
    "rows backwards": ("halves", {"ldmatrix": "28 - {0}*4 + {1}//2, {1}%2"}, "ldmatrix<4>"),
}
"""Fragments that are not those of the instruction: a case, the fragments, and a call that they lead to."""


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_fragment_is_noticed(name: str) -> None:
    """Where a machine description is mistaken, products are wrong, because fibers do not ask it."""
    require_fibers()
    case, fragments, call = WRONG[name]
    # The layouts that the wrong fragments fit.
    layouts = {
        "rows for columns": replace(CASES[case], first=COLUMNS),
        "columns for rows": replace(CASES[case], second=ROWS),
        "rows backwards": CASES[case],
    }
    program, inputs, wanted = prepared(layouts[name])
    loads = [replace(load, fragment=fragments.get(load.name, load.fragment)) for load in NVIDIA.matrix_loads]
    mistaken = replace(NVIDIA, matrix_loads=tuple(load for load in loads if load.name in fragments))
    text = device_text(program, spelling=FiberSpelling(), machine=mistaken).text
    assert f"{call}(" in text
    assert is_noticed(text, program, program, inputs, wanted, warp=32, scratch=0)
