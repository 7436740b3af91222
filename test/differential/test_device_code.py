"""Device code of the expert pass and of random games, run by fibers, against the interpreter."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest

from differential.compiled import kernel, random_inputs
from differential.device_code import MACHINES, first_line, is_noticed, run_fibers, run_text, unnoticed
from differential.library import close, library_kernel
from pdojo.backends.calling.arrays import parameters_of
from pdojo.backends.gpu.fibers import Order
from pdojo.backends.gpu.spelling import FiberSpelling
from pdojo.backends.gpu.targets import device_text
from pdojo.dialect.assumptions import with_alignment
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.semantics.interpreter import interpret
from pdojo.dialect.view.build import nest_of
from pdojo.kernels import workload
from pdojo.passes.passes import run_pass
from pdojo.transforms.game import Game
from sample import sampled
from toolchain import require_fibers

FEW_WAYS: tuple[tuple[bool, Order], ...] = ((True, "ascending"), (False, "descending"), (True, 1))
TILED = (
    "matmul:256x192x128",
    "matmul:130x75x66",
    "matmul_nt:96x64x160",
    "matmul_tn:64x96x64",
    "matmul_tt:64x64x64",
    "bmm:3x64x48x80",
    "conv:2x32x8x14",
    "grouped_conv",
    "swiglu:1x64x96x64",
    "matmul_bf16:64x64x64",
    "attention:2x32x16",
)
"""Contractions at sizes that have tiles in shared memory."""
PRODUCTS = (
    *(
        (f"{name}:{sizes}", 32, "mma_16x8x8_3xtf32")
        for name, sizes in (
            ("matmul", "130x75x66"),
            ("matmul_nt", "40x64x160"),
            ("matmul_tn", "64x64x96"),
            ("matmul_tt", "64x64x64"),
            ("bmm", "3x64x48x80"),
            ("conv", "1x32x16x8"),
        )
    ),
    ("matmul_bf16:64x96x128", 32, "mma_16x8x16_bf16"),
    pytest.param("matmul_bf16:130x75x66", 32, "mma_16x8x16_bf16", marks=pytest.mark.slow),
    # Tails of whole vectors, which are copied asynchronously.
    ("matmul_bf16:130x72x68", 32, "mma_16x8x16_bf16"),
    ("matmul_bf16:128x64x256", 64, "mfma_32x32x8_bf16"),
    ("matmul_bf16:97x130x70", 64, "mfma_32x32x8_bf16"),
    ("matmul_tn:64x64x64", 64, "mfma_32x32x2_f32"),
    pytest.param("matmul:130x75x66", 64, "mfma_32x32x2_f32", marks=pytest.mark.slow),
)
"""Contractions, the threads of a warp, and the instruction that computes them."""
USER_KERNELS = sorted((Path(__file__).parent / "user_kernels").iterdir())
BROKEN = ("softmax:12x200", "layernorm:6x700", "matmul:66x75x66", "matmul_nt:64x36x40", "colmean:300x70")


def small(warp: int, multiprocessors: int) -> Machine:
    """A machine with few multiprocessors, so that small kernels have choices of large ones."""
    described = machine(MACHINES[warp])
    return replace(described, gpu=replace(described.gpu, multiprocessors=multiprocessors))


def played(program: KernelOp, described: Machine) -> KernelOp:
    game = Game(program, described)
    run_pass("heuristic", game)
    return game.program.kernel


def agree(program: KernelOp, final: KernelOp, described: Machine, *, seed: int = 0) -> None:
    inputs = random_inputs(parameters_of(nest_of(program)), seed)
    wanted = interpret(program, inputs)
    for found in run_fibers(final, inputs, described=described, ways=FEW_WAYS):
        close(found, wanted, program)


@pytest.mark.parametrize("warp", [32, 64])
@pytest.mark.parametrize("name", sampled())
def test_library_kernels_by_the_heuristic_pass(name: str, warp: int) -> None:
    require_fibers()
    random = Random(f"{name} {warp}")
    described = small(warp, random.choice([1, 3, 16]))
    program = with_alignment(library_kernel(name, random.randrange(1000)), random.choice([4, 16, 64]))
    agree(program, played(program, described), described)


@pytest.mark.parametrize("path", USER_KERNELS, ids=lambda path: path.stem)
def test_kernels_that_are_in_no_library(path: Path) -> None:
    require_fibers()
    random = Random(path.stem)
    described = small(random.choice([32, 64]), random.choice([1, 4]))
    program = with_alignment(kernel(path.read_text()), 64)
    agree(program, played(program, described), described)


@pytest.mark.parametrize("text", TILED)
def test_contractions_have_tiles_in_shared_memory(text: str) -> None:
    require_fibers()
    warp = 32 if TILED.index(text) % 2 else 64
    described = small(warp, 4)
    program = with_alignment(workload(text).instantiate(), 64)
    final = played(program, described)
    assert any(buffer.memory.value == "shared" for buffer in nest_of(final).buffers)
    agree(program, final, described)


@pytest.mark.parametrize(("text", "warp", "unit"), PRODUCTS)
def test_contractions_on_tensor_units(text: str, warp: int, unit: str) -> None:
    require_fibers()
    described = small(warp, 4)
    program = with_alignment(workload(text).instantiate(), 64)
    game = Game(program, described)
    (result,) = (p.name for p in parameters_of(nest_of(program)) if p.written)
    choices = run_pass("heuristic", game, {f"products of {result}": unit}).choices
    assert unit in {c.taken for c in choices}
    assert any(scope.intrinsic == unit for scope in nest_of(game.kernel).scopes)
    agree(program, game.kernel, described, seed=len(text))


SUMS = {
    "rows": "x f32 [3, 5003] heap\ny f32 [3] heap\n\n3 y[{0}] = 0\n3 5003 y[{0}] += x[{0},{1}]\n",
    "columns": "x f32 [600, 40] heap\ny f32 [40] heap\n\n40 y[{0}] = 0\n40 600 y[{0}] += x[{1},{0}]\n",
    "columns, terms first": ("x f32 [600, 40] heap\ny f32 [40] heap\n\n40 y[{0}] = 0\n600 40 y[{1}] += x[{0},{1}]\n"),
}
"""Sums of few results."""


@pytest.mark.parametrize(
    ("name", "warp", "numerics"),
    [
        *((name, 32, "reassociate flush") for name in SUMS),
        *((name, 64, "reassociate flush") for name in ("rows", "columns")),
        *(("rows", warp, "reassociate") for warp in MACHINES),
    ],
)
def test_parts_of_sums(name: str, warp: int, numerics: str) -> None:
    """Partial sums are added up by a second launch, or by atomic operations where the kernel permits their rounding."""
    require_fibers()
    described = small(warp, 4)
    program = with_alignment(kernel(f"kernel sums(x) -> (y)\nnumerics {numerics}\n{SUMS[name]}"), 64)
    choices = {c.question: c.options for c in run_pass("heuristic", Game(program, described)).choices}
    question = "parts of y are added up by"
    flushes = "add.f32" in described.gpu.flushing_atomics
    assert (question in choices) == ("flush" in numerics or not flushes)
    for answer in choices.get(question, ("a second launch",)):
        game = Game(program, described)
        run_pass("heuristic", game, {question: answer})
        text = device_text(game.kernel, spelling=FiberSpelling(), machine=described).text
        assert ("pd_atomic_add(" in text[text.index("// kernel") :]) == (answer == "atomic operations")
        agree(program, game.kernel, described)


@pytest.mark.parametrize("text", BROKEN)
def test_broken_code_is_noticed(text: str) -> None:
    require_fibers()
    described = small(32, 4)
    program = with_alignment(workload(text).instantiate(), 64)
    inputs = random_inputs(parameters_of(nest_of(program)), 3)
    wanted = interpret(program, inputs)
    final = played(program, described)
    made = device_text(final, spelling=FiberSpelling(), machine=described)
    defects = broken(made.text, [p.name for p in parameters_of(nest_of(final))])
    assert defects
    scratch = made.kernels[0].workspace.size_bytes
    assert unnoticed(made.text, defects, program, final, inputs, wanted, warp=32, scratch=scratch) == []


def broken(text: str, arrays: list[str]) -> dict[str, dict[int, str]]:
    """Texts without a barrier, a wait, a step of a butterfly, or a guard of an access to the caller's memory."""
    lines = text.split("\n")
    found: dict[str, dict[int, str]] = {}
    for number in range(first_line(text), len(lines)):
        line = lines[number].strip()
        if line.startswith(("__sync", "pd_sync", "pd_copy_wait")) or "pd_shfl_xor(" in line:
            found[f"line {number} without {line}"] = {number: ""}
        guard = re.match(r"if \((.* < \d+)\)", line)
        if guard is not None and any(re.search(rf"\b{name}\[", lines[number + 1]) for name in arrays):
            found[f"line {number} without {line}"] = {number: lines[number].replace(guard[1], "true", 1)}
    return found


def test_a_block_runs_its_phases_in_order() -> None:
    """Shared memory between threads, a loop of the host, two slots that take turns."""
    require_fibers()
    program = kernel(
        """kernel rows(x, f) -> (y, s)
        x f32 [30, 96] heap align 16
        f f32 [96] heap
        y f32 [30, 96] heap align 16
        s f32 [30] heap
        t f32 [30:N, 96] shared
        3 10:g
        | 24:b 4:v t[{0}*10+{1},{2}*4+{3}] async= x[{0}*10+{1},{2}*4+{3}]
        | 96:b y[{0}*10+{1},{2}] = t[{0}*10+{1},95-{2}] * f[{2}]!readonly
        | s[{0}*10+{1}] = 0
        | 3:b 32:w s[{0}*10+{1}] += y[{0}*10+{1},{2}*32+{3}]
        """
    )
    agree(program, program, machine("nvidia-sm90"))


def test_what_is_kept_between_launches_outlives_them() -> None:
    """Outside of grids each node is a launch, so that not even a stack buffer is local memory of one."""
    require_fibers()
    program = kernel(
        """kernel kept(x) -> (y)
        x f32 [3, 6] heap
        y f32 [3, 6] heap
        t f32 [6] stack
        6 t[{0}] = x[1,{0}]
        3 6:g y[{0},{1}] = x[{0},{1}]
        6 y[2,{0}] = t[{0}] * 2
        """
    )
    agree(program, program, machine("nvidia-sm90"))


RING = """kernel ring(x) -> (y)
x f32 [3, 12, 64] heap align 16
y f32 [3, 12, 64] heap align 16
t f32 [3:N, 12:N3, 64] shared
3:g 14
| 1 where ({1} < 12) 16:b 4:v t[{0},{1},{3}*4+{4}] async= x[{0},{1},{3}*4+{4}]
| 1 where ({1} >= 2) 64:b y[{0},{1}-2,{3}] = t[{0},{1}-2,63-{3}]
"""


def test_a_group_of_copies_ends_in_iterations_without_copies() -> None:
    """Three slots: reads wait for the copies of two iterations before, by the number of groups since."""
    require_fibers()
    described = machine("nvidia-sm90")
    program = kernel(RING)
    inputs = random_inputs(parameters_of(nest_of(program)), 5)
    wanted = interpret(program, inputs)
    for found in run_fibers(program, inputs, described=described):
        close(found, wanted, program)
    made = device_text(program, spelling=FiberSpelling(), machine=described)
    body = made.text[made.text.index("// kernel") :]
    assert [int(n) for n in re.findall(r"pd_copy_wait<(\d+)>", body)] == [1]
    guarded = re.search(r"if \(i1 < 12\) \{\n(.*?)\n    \}\n    pd_copy_commit\(\);", body, re.DOTALL)
    assert guarded is not None
    inside = f"if (i1 < 12) {{\n{guarded[1]}\n      pd_copy_commit();\n    }}"
    broken_text = made.text.replace(guarded[0], inside)
    scratch = made.kernels[0].workspace.size_bytes
    assert is_noticed(broken_text, program, program, inputs, wanted, warp=32, scratch=scratch)
    for late in (True, False):
        (found,) = run_text(broken_text, program, inputs, warp=32, scratch=1, ways=[(late, "ascending")])
        assert np.array_equal(found["y"], wanted["y"]) is not late
