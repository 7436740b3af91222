"""Products of warpgroups, whose units read shared memory themselves, by fibers with the tables of the PTX ISA."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

import pdojo.kernels
from differential.compiled import Arrays, kernel, random_inputs
from differential.device_code import (
    CompiledKernels,
    compile_kernels,
    first_line,
    run_fibers,
    unnoticed,
)
from differential.library import close
from pdojo.backends.calling.arrays import parameters_of
from pdojo.backends.gpu import nvrtc
from pdojo.backends.gpu.backend import CUDA
from pdojo.backends.gpu.resources import MissingTool
from pdojo.backends.gpu.spelling import CudaSpelling, FiberSpelling
from pdojo.backends.gpu.targets import device_text
from pdojo.dialect.assumptions import with_alignment, with_permission
from pdojo.dialect.attributes import Numerics
from pdojo.dialect.flow.program import Program
from pdojo.dialect.functions import byte_width
from pdojo.dialect.intrinsic import Intrinsic
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.machines.pattern import pattern_of
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation import print_notation
from pdojo.dialect.notation.bound import bound
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.rules.tensor import tensor_problems
from pdojo.dialect.rules.threads import visibility_problems
from pdojo.dialect.semantics.interpreter import interpret
from pdojo.dialect.view.build import nest_of, nest_on
from pdojo.errors import LoweringError
from pdojo.kernels import workload
from pdojo.passes.gpu.cost_model import estimate_gpu
from pdojo.passes.passes import run_pass
from pdojo.transforms.game import Game
from pdojo.transforms.trace import Trace
from toolchain import require_fibers

MACHINE = machine("nvidia-sm90a")
UNITS = {unit.name: unit for unit in MACHINE.intrinsics if unit.shared}
FORMS: tuple[tuple[str, str], ...] = (("k", "k"), ("k", "n"), ("m", "k"), ("m", "n"))
"""The dimensions along which elements of both operands are neighbours."""
TRACE = Path(pdojo.kernels.__file__).parent / "traces" / "matmul_bf16-nvidia-sm90a.trace"


def tiles(unit: Intrinsic, first: str, second: str, memory: str = "register") -> KernelOp:
    """A block of two warpgroups with a tile each; operands in shared memory are contiguous along a dimension."""
    shapes = {name: array.shape for name, array in pattern_of(unit).operands.items()}
    (m, k), n = shapes["a"], shapes["b"][1]
    narrow = pattern_of(unit).operands["a"].dtype
    row = 128 // byte_width(narrow)
    form = f"{row}^{{by}}*{16 // byte_width(narrow)}"
    left = {"k": f"[{2 * m}, {form.format(by=0)}]", "m": f"[{2 * m // row}, {row}, {form.format(by=1)}]"}[first]
    right = {"k": f"[{n}, {form.format(by=0)}]", "n": f"[{n // row}, {row}, {form.format(by=1)}]"}[second]
    to = {"k": "{1},{2}", "m": f"{{1}}//{row},{{2}},{{1}}%{row}"}
    term = f"{{2}}*{k}+{{5}}"
    a = {"k": f"p[{{1}}*{m}+{{3}},{term}]", "m": f"p[{{1}},{term},{{3}}]"}[first]
    b = {"k": f"q[{{4}},{term}]", "n": f"q[{{4}}//{row},{term},{{4}}%{row}]"}[second]
    own = "{1},{2},{3},{4},{5}"
    elements = f"| 2:b 4:b 2:u {n // 8}:u 32:w 2:u"
    lane = "{2}*16+{3}*8+{5}//4,{4}*8+{6}+{5}%4*2"
    casts = f"| | u[{own}] = cast({a})\n| | v[{own}] = cast({b})\n"
    factors = f"u[{own}] * v[{own}]"
    temporaries = "".join(f"{name} f32 [2:N, {row // k}:N, {m}:N, {n}:N, {k}:N] stack\n" for name in "uv")
    if narrow == "f32":
        casts, factors, temporaries = "", f"{a} * {b}", ""
    return kernel(
        f"""kernel {unit.name}_{first}{second}_{memory}(x, z) -> (y)
numerics contract reassociate tf32
x {narrow} [{2 * m}, {row}] heap
z {narrow} [{n}, {row}] heap
y f32 [{2 * m}, {n}] heap
s f32 [2, {m}, {n}] {memory}
p {narrow} {left} shared
q {narrow} {right} shared
{temporaries}
1:g
{elements} s[{{1}},{lane}] = 0
| {2 * m}:b {row} p[{to[first]}] = x[{{1}},{{2}}]
| {n}:b {row} q[{to["m" if second == "n" else "k"]}] = z[{{1}},{{2}}]
| 2:b {row // k} {m}:m({unit.name}) {n} {k}
{casts}| | s[{{1}},{{3}},{{4}}] fma= {factors}
{elements} y[{{1}}*{m}+{lane}] = s[{{1}},{lane}]
"""
    )


def forms(unit: Intrinsic) -> tuple[tuple[str, str], ...]:
    """The forms that an instruction takes: terms of tf32 must be neighbours."""
    return FORMS[:1] if pattern_of(unit).shared["a"].major is not None else FORMS


@cache
def compiled(name: str) -> tuple[CompiledKernels, list[KernelOp]]:
    """The tiles of an instruction, in all forms; and with accumulators in memory."""
    programs = [tiles(UNITS[name], *form) for form in forms(UNITS[name])]
    programs.append(tiles(UNITS[name], *forms(UNITS[name])[-1], "heap"))
    return compile_kernels(programs, described=MACHINE), programs


@pytest.mark.parametrize("name", UNITS)
def test_every_instruction_in_all_forms(name: str) -> None:
    require_fibers()
    code, programs = compiled(name)
    for number, program in enumerate(programs):
        Game(program, MACHINE)
        inputs = random_inputs(parameters_of(nest_of(program)), number)
        wanted = interpret(program, inputs)
        for found in code.run(program, inputs):
            alike(found, wanted, program, name)


def alike(found: Arrays, wanted: Arrays, program: KernelOp, name: str) -> None:
    """Check results, to the precision of the factors."""
    if "tf32" not in name:
        close(found, wanted, program)
    else:
        assert abs(found["y"] - wanted["y"]).max() < 1e-2 * abs(wanted["y"]).max()


@pytest.mark.parametrize("name", UNITS)
def test_a_wrong_fragment_is_noticed(name: str) -> None:
    require_fibers()
    unit = UNITS[name]
    program = tiles(unit, *forms(unit)[-1], "heap")
    inputs = random_inputs(parameters_of(nest_of(program)), 2)
    wanted = interpret(program, inputs)
    lane, slot = unit.fragments["c"].split(",")
    for other in (f"127 - ({lane}), {slot}", f"{lane}, {pattern_of(unit).fragments['c'].slots - 1} - ({slot})"):
        wrong = replace(unit, fragments={"c": other})
        mistaken = replace(MACHINE, intrinsics=(wrong,))
        (found,) = run_fibers(program, inputs, described=mistaken, ways=[(True, "ascending")])
        with pytest.raises(AssertionError):
            alike(found, wanted, program, name)


def replayed(text: str) -> tuple[KernelOp, KernelOp]:
    """A library product at a size, and what the trace makes of it."""
    trace = Trace.load(TRACE)
    program = with_alignment(workload(text).instantiate(), 16)
    by_location, by_identifier = Game(program, MACHINE), Game(program, MACHINE)
    by_location.apply_all(trace.moves)
    assert by_identifier.replay(trace.steps) == []
    assert by_location.program.text == by_identifier.program.text
    return program, by_identifier.kernel


def test_the_trace_and_its_defects() -> None:
    """The trace gives a right program; without any fence, wait or barrier, or at other addresses, it is wrong."""
    require_fibers()
    program, final = replayed("matmul_bf16:256x320x512")
    inputs = random_inputs(parameters_of(nest_of(program)), 4)
    wanted = interpret(program, inputs)
    text = device_text(final, spelling=FiberSpelling(), machine=MACHINE).text
    assert unnoticed(text, defects(text), program, final, inputs, wanted, warp=32, scratch=0) == []


def defects(text: str) -> dict[str, dict[int, str]]:
    """Lines of a text without synchronisation, with waits for fewer groups, or with other addresses."""
    lines, found = text.split("\n"), dict[str, dict[int, str]]()
    replaced = (
        *(("_wait<1>", "_wait<2>"), ("1024, 8192>", "1024, 4096>"), ("<1, 1024", "<1, 2048")),
        *((" ^ ", " + 0 * "), ("(i2+2)%4*8192", "(i2+1)%4*8192"), ("&as[i4*4096+i5*16", "&as[i4*4096+i5*8")),
    )
    for k in range(first_line(text), len(lines)):
        line = lines[k].strip()
        # What holds the accumulators concerns compilers only.
        if line.startswith(("__sync", "pd_copy_wait", "pd_unit")) and not line.startswith("pd_unit_hold"):
            found[f"{k} without {line}"] = {k: ""}
        found |= {f"{k} with {b}": {k: lines[k].replace(a, b)} for a, b in replaced if a in lines[k]}
    assert len(found) == 7 + 2 + 6
    return found


def compile_units(kernel: KernelOp) -> tuple[nvrtc.CudaImage, str]:
    """The image of a kernel, and its instructions; empty without a disassembler."""
    text = device_text(kernel, spelling=CudaSpelling(), machine=MACHINE).text
    try:
        image = nvrtc.compile_cuda(text, processor=MACHINE.processor)
    except MissingTool as error:
        pytest.skip(str(error))
    (resources,) = image.kernels.values()
    assert (resources.spill_stores, resources.spill_loads, resources.stack) == (0, 0, 0)
    return image, "" if nvrtc.disassembler() is None else nvrtc.disassemble(image.cubin)


def test_the_trace_compiles() -> None:
    """A step has four instructions, one wait for products, one barrier; the products are not serialised."""
    image, code = compile_units(replayed("matmul_bf16:4096x4096x4096")[1])
    assert "serialized" not in image.log
    if code:
        assert re.findall(r"\bHGMMA\.(\S+)", code) == ["64x256x16.F32.BF16"] * 4
        assert re.findall(r"\bWARPGROUP\.DEPBAR\.LE gsb0, (\w+)", code) == ["0x1", "0x0"]
        assert len(re.findall(r"\bBAR\.SYNC", code)) == 1
        # One access of each thread serves eight numbers.
        assert len(re.findall(r"\bLDGSTS\.E\.BYPASS\.128", code)) == 4 + 8


@pytest.mark.parametrize(("name", "form"), [(name, form) for name, unit in UNITS.items() for form in forms(unit)])
def test_every_form_compiles(name: str, form: tuple[str, str]) -> None:
    image, code = compile_units(tiles(UNITS[name], *form))
    assert "serialized" not in image.log
    if code:
        shapes = re.findall(r"\bHGMMA\.([^.]+)\S* \w+, gdesc\[\w+\]((?:\.\w+)*)", code)
        expected = "".join(f".tnsp{operand}" for operand, major in zip("AB", form, strict=True) if major != "k")
        assert {flags for _, flags in shapes} == {expected}


REFUSED = {
    "must be in shared memory": ("p bf16 [128, 64^0*8] shared", "p bf16 [128, 64] heap"),
    "must be exchanged by the number of the row: swizzle_dim@p:1{by=0 granule=8}": ("64^0*8", "64"),
    "granules of 16 bytes in the rows of 'q'": ("q bf16 [1, 64, 64^1*8]", "q bf16 [1, 64, 64^1*4]"),
    "must have rows of 128 bytes": ("p bf16 [128, 64^0*8]", "p bf16 [128, 128^0*8]"),
    "must begin with the first of 8 rows of 'p'": ("p[{1}*64+{3},", "p[{1}*63+{3},"),
    "rows of 'p' must be neighbours in groups of 8": (
        "p[{1}*64+{3},",
        "p[{1}*64+{3}//8*8+{3}%2+{3}//4%2*2+{3}//2%2*4,",
    ),
    "rows and columns of 'p' are mixed": ("p[{1}*64+{3},{2}*16+{5}]", "p[{1}*64+{3},({3}+{5})%64]"),
    "must be in registers or in memory of the block": ("s f32 [2, 64, 64] register", "s f32 [2, 64, 64] stack"),
    "every access must be indexed by the same threads": ("2:b 4:b 2:u 8:u 32:w", "2:b 4:u 2:u 8:u 32:w"),
    "two threads access one of its cells": ("{5}//4,{4}*8+{6}+{5}%4*2]\n", "{5}%8,{4}*8+{6}+{5}//8*2]\n"),
}
"""Parts of reasons, and changes of a program that lead to them."""


@pytest.mark.parametrize("reason", REFUSED)
def test_other_operands_are_refused(reason: str) -> None:
    text = print_notation(tiles(UNITS["wgmma_64x64x16_bf16"], "k", "n"))
    old, new = REFUSED[reason]
    assert old in text
    program = kernel(text.replace(old, new))
    problems = [*tensor_problems(Program(program, MACHINE)), *visibility_problems(Program(program, MACHINE))]
    assert reason in str(problems[0])
    with pytest.raises(LoweringError):
        device_text(program, spelling=CudaSpelling(), machine=MACHINE)


def passed(text: str, dtype: str | None, multiprocessors: int = 132) -> tuple[KernelOp, KernelOp, Machine]:
    """A library kernel and what the pass makes of it for a device with so many multiprocessors."""
    described = replace(MACHINE, gpu=replace(MACHINE.gpu, multiprocessors=multiprocessors))
    program = with_alignment(workload(text, dtype=dtype).instantiate(), 16)
    game = Game(program, described)
    run_pass("heuristic", game)
    return program, game.kernel, described


def units_in(final: KernelOp) -> set[str]:
    return {scope.intrinsic for scope in nest_of(final).scopes if scope.intrinsic}


CHOSEN = [
    ("matmul_bf16:256x320x512", None, "wgmma_64x256x16_bf16"),
    # Tails in every dimension; rows whose vectors are not aligned go through registers.
    ("matmul_bf16:130x65x264", None, "wgmma_64x64x16_bf16"),
    ("matmul_bf16:100x64x135", None, "wgmma_64x64x16_bf16"),
    ("matmul_nt:128x128x256", "bf16", "wgmma_64x256x16_bf16"),
    ("matmul_tn:192x136x128", "f16", "wgmma_64x64x16_f16"),
    ("matmul_tt:136x72x64", "f16", "wgmma_64x64x16_f16"),
    ("bmm:2x64x128x128", "bf16", "wgmma_64x128x16_bf16"),
]
"""Products, element types, and the instruction that the pass chooses for a device with two multiprocessors."""


@pytest.mark.parametrize(("text", "dtype", "name"), CHOSEN)
def test_the_pass_uses_the_instructions(text: str, dtype: str | None, name: str) -> None:
    require_fibers()
    program, final, described = passed(text, dtype, 2)
    assert units_in(final) == {name}
    inputs = random_inputs(parameters_of(nest_of(program)), 7)
    wanted = interpret(program, inputs)
    for found in run_fibers(final, inputs, described=described, ways=[(True, "ascending"), (False, 3)]):
        close(found, wanted, program)


@pytest.mark.parametrize(
    ("text", "dtype"),
    [("matmul_bf16:4096x4096x4096", None), ("matmul_nt:1000x1000x1000", "f16"), ("matmul_tn:512x2048x512", "bf16")],
)
def test_the_products_of_the_pass_are_not_serialised(text: str, dtype: str | None) -> None:
    """One barrier a step; products of a step run while the block comes to the next one."""
    _, final, _ = passed(text, dtype)
    text = device_text(final, spelling=CudaSpelling(), machine=MACHINE).text
    try:
        image = nvrtc.compile_cuda(text, processor=MACHINE.processor)
    except MissingTool as error:
        pytest.skip(str(error))
    assert "serialized" not in image.log
    assert not any(resources.spills or resources.stack for resources in image.kernels.values())
    if nvrtc.disassembler() is not None:
        code = nvrtc.disassemble(image.cubin)
        assert re.search(r"\bHGMMA\.", code)
        assert "0x1" in re.findall(r"\bWARPGROUP\.DEPBAR\.LE gsb0, (\w+)", code)


def test_the_pass_takes_other_instructions_for_few_rows() -> None:
    assert units_in(passed("matmul_bf16:32x128x256", None)[1]) == {"mma_16x8x16_bf16"}


def test_the_model_prefers_products_of_warpgroups() -> None:
    final = passed("matmul_bf16:4096x4096x4096", None)[1]
    other = Game(with_alignment(workload("matmul_bf16:4096x4096x4096").instantiate(), 16), machine("nvidia-sm90"))
    run_pass("heuristic", other)
    new, old = (estimate_gpu(nest_on(k, m), m) for k, m in ((final, MACHINE), (other.kernel, machine("nvidia-sm90"))))
    assert new is not None
    assert old is not None
    # At the peak, 4096^3 products take 253,000 cycles of 132 multiprocessors.
    assert 253_000 < new.launches[0].issue < 0.7 * old.launches[0].issue


def test_rows_that_calls_choose() -> None:
    require_fibers()
    described = replace(MACHINE, gpu=replace(MACHINE.gpu, multiprocessors=2))
    game = Game(with_alignment(workload("matmul_bf16:1..300x192x256").instantiate(), 16), described)
    run_pass("heuristic", game)
    assert units_in(game.kernel) == {"wgmma_64x128x16_bf16"}
    code = compile_kernels([game.kernel], described=described)
    for rows in (1, 64, 201):
        known = bound(workload("matmul_bf16:1..300x192x256").instantiate(), {"M": rows})
        inputs = random_inputs(parameters_of(nest_of(known)), rows)
        wanted = interpret(known, inputs)
        for found in code.run(game.kernel, inputs, sizes={"M": rows}, ways=[(True, "ascending"), (False, 3)]):
            close(found, wanted, known)


def test_terms_of_tf32_must_be_neighbours() -> None:
    program = Program(tiles(UNITS["wgmma_64x64x8_tf32"], "k", "n"), MACHINE)
    assert "this instruction takes those along dimension 0" in str(next(iter(tensor_problems(program))))


def test_the_pass_uses_tf32_where_terms_are_neighbours() -> None:
    """`a b^T` takes the products of warpgroups; `a b`, whose columns are neighbours, those of a warp."""
    require_fibers()
    described = replace(MACHINE, gpu=replace(MACHINE.gpu, multiprocessors=2))
    for text, name in (("matmul_nt:130x72x128", "wgmma_64x64x8_tf32"), ("matmul:128x64x128", "mma_16x8x8_tf32")):
        program = with_permission(with_alignment(workload(text).instantiate(), 16), Numerics.TF32)
        game = Game(program, described)
        run_pass("heuristic", game)
        assert units_in(game.kernel) == {name}
        inputs = random_inputs(parameters_of(nest_of(program)), 3)
        wanted = interpret(program, inputs)["c"]
        for found in run_fibers(game.kernel, inputs, described=described, ways=[(True, "ascending"), (False, 3)]):
            assert abs(found["c"] - wanted).max() < 1e-2 * abs(wanted).max()


@pytest.mark.cuda
@pytest.mark.parametrize(("name", "form"), [(name, form) for name, unit in UNITS.items() for form in forms(unit)])
def test_every_form_on_a_real_device(name: str, form: tuple[str, str]) -> None:
    """The device itself agrees on descriptors, swizzles and fragments."""
    try:
        CUDA.check_runs_here(MACHINE)
    except LoweringError as error:
        pytest.skip(f"needs a device: {error}")
    program = tiles(UNITS[name], *form)
    inputs = random_inputs(parameters_of(nest_of(program)), 6)
    alike(dict(CUDA.call(program, MACHINE, inputs)), interpret(program, inputs), program, name)


@pytest.mark.cuda
@pytest.mark.parametrize("text", ["matmul_bf16:1024x1024x1024", "matmul_bf16:1000x520x776", "matmul_bf16:130x65x264"])
def test_products_on_a_real_device(text: str) -> None:
    try:
        CUDA.check_runs_here(MACHINE)
    except LoweringError as error:
        pytest.skip(f"needs a device: {error}")
    program, final, described = passed(text, None)
    inputs = random_inputs(parameters_of(nest_of(program)), 8)
    close(dict(CUDA.call(final, described, inputs)), interpret(program, inputs), program)


@pytest.mark.parametrize(
    ("slots", "stages", "copies", "waits"),
    [
        pytest.param(1, 1, True, (0, 0), marks=pytest.mark.slow),
        (3, 2, True, (0, 1)),
        pytest.param(3, 3, True, (1, 0), marks=pytest.mark.slow),
        pytest.param(4, 2, True, (0, 2), marks=pytest.mark.slow),
        pytest.param(4, 3, False, (None, 1), marks=pytest.mark.slow),
    ],
)
def test_other_stages(slots: int, stages: int, copies: bool, waits: tuple[int | None, int]) -> None:
    """Slots and stages decide how many groups of copies, and of products, may run at the barrier of a step."""
    require_fibers()
    program = with_alignment(workload("matmul_bf16:256x320x512").instantiate(), 16)
    stage = ("fold_dim", "pipeline", "async_copy", "unroll@as:5", "unroll@bs:5")
    game = Game(program, MACHINE)
    game.apply_all(move for move in Trace.load(TRACE).moves if not str(move).startswith(stage))
    if slots > 1:
        game.apply_all(f"fold_dim@{name}:2{{slots={slots}}}" for name in ("as", "bs"))
        game.apply(f"pipeline@as:2{{stages={stages} after=2}}")
    if copies:
        game.apply_all(f"async_copy@{name}" for name in ("as", "bs"))
    text = device_text(game.kernel, spelling=FiberSpelling(), machine=MACHINE).text
    lines = {k: line.strip() for k, line in enumerate(text.split("\n")) if k >= first_line(text)}
    found = [int(n[1]) for line in lines.values() if (n := re.match(r"pd_(?:copy|unit)_wait<(\d+)>", line))]
    assert found[: 1 + copies] == [wait for wait in waits if wait is not None]
    inputs = random_inputs(parameters_of(nest_of(program)), 4)
    wanted = interpret(program, inputs)
    calls = ("__sync", "pd_copy_wait", "pd_unit_wait", *["pd_unit_show"] * (slots > 1))
    # With one slot a second barrier stands before the copies, where nothing new is to be shown.
    missing = {f"{k} without {line}": {k: ""} for k, line in lines.items() if line.startswith(calls)}
    assert unnoticed(text, missing, program, game.kernel, inputs, wanted, warp=32, scratch=0) == []
