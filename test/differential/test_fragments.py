"""Instructions of a warp, run by fibers, whose helpers have the layouts from the vendors' manuals; and compiled."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from differential.compiled import kernel, random_inputs
from differential.device_code import (
    MACHINES,
    CompiledKernels,
    compile_kernels,
    first_line,
    run_fibers,
    unnoticed,
)
from differential.library import close
from pdojo.backends.calling.arrays import parameters_of
from pdojo.backends.gpu import hip, nvrtc
from pdojo.backends.gpu.backend import CUDA, HIP
from pdojo.backends.gpu.resources import MissingTool
from pdojo.backends.gpu.spelling import CudaSpelling, FiberSpelling, HipSpelling
from pdojo.backends.gpu.targets import device_text
from pdojo.dialect.intrinsic import Intrinsic
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.machines.pattern import pattern_of
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.semantics.interpreter import interpret
from pdojo.dialect.view.build import nest_of
from pdojo.errors import LoweringError
from pdojo.transforms.game import Game
from toolchain import require_fibers

UNITS = [(name, i.name) for name in MACHINES.values() for i in machine(name).intrinsics if i.threads]
IN_MEMORY = ("mma_16x8x8_3xtf32", "mfma_32x32x8_bf16")
"""An instruction of each vendor, whose accumulators are in every memory; those of the others, with `--slow`."""
PRODUCTS = Path(__file__).parent / "warp_products"
"""Products as moves: `NAME.pdojo` is the kernel, `NAME.moves` are the moves."""


def unit_of(name: str, described: Machine) -> Intrinsic:
    return next(i for i in described.intrinsics if i.name == name)


def tiles(unit: Intrinsic, memory: str, *, operands: str = "heap") -> KernelOp:
    """A block of two warps with two tiles each, whose operands are transposed, padded, or swizzled in shared memory."""
    pattern = pattern_of(unit)
    m, k = pattern.operands["a"].shape
    n = pattern.operands["b"].shape[1]
    narrow = pattern.operands["a"].dtype
    rows, columns, terms = 2 * m, 2 * n, 3 * k
    lines = [
        f"kernel tiles_of_{unit.name}(x, z) -> (y)",
        "numerics contract reassociate tf32",
        f"x {narrow} [{rows}, {terms}] heap",
        f"z {narrow} [{columns}, {terms}] heap",
        f"y f32 [{rows}, {columns}] heap",
        f"s f32 [2, 2, {m}, {n}] {memory}",
    ]
    if operands == "shared":
        lines += [f"p {narrow} [{terms}, {rows}^0] shared", f"q {narrow} [{columns}, {terms + 8}] shared"]
    if narrow != "f32":
        lines += [f"{name} f32 [2:N, 2:N, 3:N, {m}:N, {n}:N, {k}:N] stack" for name in "uv"]
    lines += ["", "1:g"]
    lines += [_elementwise(unit, "s[{1},{2},ROW,COLUMN] = 0")]
    if operands == "shared":
        lines += [
            f"| {rows}:b {terms} p[{{2}},{{1}}] = x[{{1}},{{2}}]",
            f"| {columns}:b {terms} q[{{1}},{{2}}] = z[{{1}},{{2}}]",
        ]
    first = f"p[{{3}}*{k}+{{6}},{{1}}*{m}+{{4}}]" if operands == "shared" else f"x[{{1}}*{m}+{{4}},{{3}}*{k}+{{6}}]"
    second = f"{'q' if operands == 'shared' else 'z'}[{{2}}*{n}+{{5}},{{3}}*{k}+{{6}}]"
    lines += [f"| 2:b 2:u 3 {m}:m({unit.name}) {n} {k}"]
    own = "{1},{2},{3},{4},{5},{6}"
    if narrow == "f32":
        lines[-1] += f" s[{{1}},{{2}},{{4}},{{5}}] fma= {first} * {second}"
    else:
        lines += [f"| | u[{own}] = cast({first})", f"| | v[{own}] = cast({second})"]
        lines += [f"| | s[{{1}},{{2}},{{4}},{{5}}] fma= u[{own}] * v[{own}]"]
    lines += [_elementwise(unit, f"y[{{1}}*{m}+ROW,{{2}}*{n}+COLUMN] = s[{{1}},{{2}},ROW,COLUMN]")]
    return kernel("\n".join(lines) + "\n")


@cache
def compiled(name: str, memory: str, units: tuple[str, ...]) -> tuple[CompiledKernels, dict[str, KernelOp]]:
    """The tiles of several instructions of a machine in one text, because each text costs a run of a compiler."""
    described = machine(name)
    operands = "shared" if memory == "register" else "heap"
    programs = {unit: tiles(unit_of(unit, described), memory, operands=operands) for unit in units}
    return compile_kernels(programs.values(), described=described), programs


def _elementwise(unit: Intrinsic, statement: str) -> str:
    """A statement for all elements of a tile, by lane and slot as the accumulators of the instruction lie."""
    if unit.threads == 32:
        loops, row, column = "2:u 32:w 2:u", "{3}*8+{4}//4", "{4}%4*2+{5}"
    else:
        loops, row, column = "4:u 64:w 4:u", "{3}*8+{4}//32*4+{5}", "{4}%32"
    return f"| 2:b 2:u {loops} {statement}".replace("ROW", row).replace("COLUMN", column)


@pytest.mark.parametrize(
    ("name", "unit", "memory"),
    [
        *((name, unit, "register") for name, unit in UNITS),
        *(
            pytest.param(name, unit, memory, marks=() if unit in IN_MEMORY else pytest.mark.slow)
            for name, unit in UNITS
            for memory in ("stack", "shared", "heap")
        ),
    ],
)
def test_every_instruction(name: str, unit: str, memory: str) -> None:
    require_fibers()
    described = machine(name)
    units = tuple(other for owner, other in UNITS if owner == name) if memory == "register" else (unit,)
    code, programs = compiled(name, memory, units)
    program = programs[unit]
    Game(program, described)
    inputs = random_inputs(parameters_of(nest_of(program)), 1)
    wanted = interpret(program, inputs)
    for found in code.run(program, inputs):
        if "3xtf32" in unit or "tf32" not in unit:
            close(found, wanted, program)
        else:
            assert abs(found["y"] - wanted["y"]).max() < 1e-2 * abs(wanted["y"]).max()


def test_one_of_several_warps_stores() -> None:
    """A block of three warps, whose threads all come to an instruction with accumulators that they share."""
    require_fibers()
    described = machine("nvidia-sm90")
    program = kernel(
        """kernel some(x, z) -> (y, w)
        x f32 [32, 8] heap
        z f32 [8, 8] heap
        y f32 [32, 8] heap
        w f32 [2, 96] heap
        s f32 [2:N, 16, 8] shared
        2:g
        | 96:b w[{0},{1}] = 1
        | 16:b 8 s[{0},{1},{2}] = 0
        | 16:m(mma_16x8x8_3xtf32) 8 8 s[{0},{1},{2}] fma= x[{0}*16+{1},{3}] * z[{3},{2}]
        | 16:b 8 y[{0}*16+{1},{2}] = s[{0},{1},{2}]
        """
    )
    inputs = random_inputs(parameters_of(nest_of(program)), 5)
    wanted = interpret(program, inputs)
    for found in run_fibers(program, inputs, described=described):
        close(found, wanted, program)


def test_each_block_has_its_own_tile_on_the_heap() -> None:
    require_fibers()
    described = machine("nvidia-sm90")
    text = """kernel k(a, b) -> (c)
        a f32 [32, 16] heap
        b f32 [16, 16] heap
        c f32 [32, 16] heap
        acc f32 [2:N, 2:N, 16, 8] register

        2:g 2:g
        | 2:u 32:w 2:u acc[{0},{1},{2}*8+{3}//4,{3}%4*2+{4}] = 0
        | 2 16:m(mma_16x8x8_3xtf32) 8 8 acc[{0},{1},{3},{4}] fma= a[{0}*16+{3},{2}*8+{5}] * b[{2}*8+{5},{1}*8+{4}]
        | 2:u 32:w 2:u c[{0}*16+{2}*8+{3}//4,{1}*8+{3}%4*2+{4}] = acc[{0},{1},{2}*8+{3}//4,{3}%4*2+{4}]
        """
    game = Game(kernel(text), described)
    game.apply("set_location@acc{location=heap}")
    inputs = random_inputs(parameters_of(nest_of(game.kernel)), 1)
    wanted = interpret(game.kernel, inputs)
    for found in run_fibers(game.kernel, inputs, described=described):
        close(found, wanted, game.kernel)


@pytest.mark.parametrize(("name", "unit"), UNITS)
def test_a_wrong_fragment_is_noticed(name: str, unit: str) -> None:
    """Lanes or slots that the machine description takes for others give wrong products."""
    require_fibers()
    described = machine(name)
    right = unit_of(unit, described)
    program = tiles(right, "heap")
    inputs = random_inputs(parameters_of(nest_of(program)), 2)
    wanted = interpret(program, inputs)
    for operand, text in right.fragments.items():
        lane, slot = text.split(",")
        slots = pattern_of(right).fragments[operand].slots
        other = (
            f"{lane}, {slots - 1} - ({slot})"
            if operand == "a" and slots > 1
            else f"{right.threads - 1} - ({lane}), {slot}"
        )
        wrong = replace(right, fragments={**right.fragments, operand: other})
        mistaken = replace(described, intrinsics=(wrong,))
        (found,) = run_fibers(program, inputs, described=mistaken, ways=[(True, "ascending")])
        with pytest.raises(AssertionError):
            close(found, wanted, program)


def played(path: Path, size: int) -> tuple[KernelOp, KernelOp, Machine]:
    """A product at a size, and what its moves make of it."""
    text = path.with_suffix(".pdojo").read_text().replace("SIZE", str(size))
    program, described = kernel(text), machine("amd-gfx942" if "mfma" in path.stem else "nvidia-sm90")
    game = Game(program, described)
    for line in path.read_text().splitlines():
        if line and not line.startswith("#"):
            game.apply(line)
    return program, game.kernel, described


PATHS = sorted(PRODUCTS.glob("*.moves"))


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_products(path: Path) -> None:
    """Moves lead to code that is right, and wrong without any of its barriers."""
    require_fibers()
    program, final, described = played(path, 256)
    inputs = random_inputs(parameters_of(nest_of(program)), 4)
    wanted = interpret(program, inputs)
    made = device_text(final, spelling=FiberSpelling(), machine=described)
    defects = without_barriers(made.text)
    assert defects
    warp = described.gpu.warp_size
    assert unnoticed(made.text, defects, program, final, inputs, wanted, warp=warp, scratch=0) == []


def without_barriers(text: str) -> dict[str, dict[int, str]]:
    lines = text.split("\n")
    waits = ("__sync", "pd_sync", "pd_copy_wait")
    kernels = range(first_line(text), len(lines))
    return {f"{k} without {lines[k]}": {k: ""} for k in kernels if lines[k].strip().startswith(waits)}


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_products_compile(path: Path) -> None:
    """Accumulators stay in registers: nothing is spilled, and no thread has a stack."""
    _, final, described = played(path, 1024)
    try:
        if described.backend == "cuda":
            image = nvrtc.compile_cuda(device_text(final, spelling=CudaSpelling(), machine=described).text)
            if nvrtc.disassembler() is not None:
                code = nvrtc.disassemble(image.cubin)
                assert re.search(r"\bHMMA\.", code)
                # Once for each row of tiles and each column of tiles, and nothing by elements.
                assert len(re.findall(r"\bLDSM\.", code)) == 4 + 16
                assert not re.search(r"\bLDS\b", code)
        else:
            image = hip.compile_hip(device_text(final, spelling=HipSpelling(), machine=described).text)
            assert "v_mfma_f32_32x32x" in image.assembly
    except MissingTool as error:
        pytest.skip(str(error))
    (resources,) = image.kernels.values()
    assert (resources.spill_stores, resources.spill_loads, resources.stack) == (0, 0, 0)


@pytest.mark.parametrize(("name", "unit"), UNITS)
def test_every_instruction_compiles(name: str, unit: str) -> None:
    described = machine(name)
    final = tiles(unit_of(unit, described), "register", operands="shared")
    try:
        if described.backend == "cuda":
            image = nvrtc.compile_cuda(device_text(final, spelling=CudaSpelling(), machine=described).text)
        else:
            image = hip.compile_hip(device_text(final, spelling=HipSpelling(), machine=described).text)
    except MissingTool as error:
        pytest.skip(str(error))
    (resources,) = image.kernels.values()
    assert (resources.spill_stores, resources.spill_loads, resources.stack) == (0, 0, 0)


@pytest.mark.parametrize(
    ("name", "unit"),
    [pytest.param(n, u, marks=pytest.mark.cuda if n.startswith("nvidia") else pytest.mark.hip) for n, u in UNITS],
)
def test_every_instruction_on_a_real_device(name: str, unit: str) -> None:
    """The device itself agrees on where the elements are."""
    described = machine(name)
    backend = CUDA if described.backend == "cuda" else HIP
    try:
        backend.check_runs_here(described)
    except LoweringError as error:
        pytest.skip(f"needs a device: {error}")
    program = tiles(unit_of(unit, described), "register", operands="shared")
    inputs = random_inputs(parameters_of(nest_of(program)), 6)
    wanted = interpret(program, inputs)["y"]
    found = backend.call(program, described, inputs)["y"]
    assert abs(found - wanted).max() < (1e-2 if unit == "mma_16x8x8_tf32" else 1e-4) * abs(wanted).max()
