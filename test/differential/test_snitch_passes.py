"""The expert passes for Snitch cores: what they make is right on the simulator, and uses what the core has."""

from __future__ import annotations

from functools import cache

import pytest

from benchmarks.snitch.kernels import DTYPES, MICRO_KERNELS
from differential.library import close
from differential.snitch import DIVIDES, run_snitch
from differential.test_snitch import agree, inputs_for, is_exact
from pdojo.backends.snitch import schedule
from pdojo.backends.snitch.targets import snitch_source
from pdojo.dialect.assumptions import with_alignment, with_permission
from pdojo.dialect.attributes import Mapping, Numerics
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.semantics.interpreter import interpret_stepwise
from pdojo.dialect.view.build import nest_of
from pdojo.kernels import workload
from pdojo.names import EXPERT_PASSES
from pdojo.passes.scheduled_kernel import ScheduledKernel, make_moves
from pdojo.passes.verification.verify import verify_moves
from pdojo.snitch_sim.simulator import Result
from pdojo.transforms.trace import Trace

KERNELS = (
    "fill:8x8",
    "axpy:1x64",
    "dot:1x64",
    "reducesum:8x16",
    "reducemax:8x16",
    "relu:8x12",
    "gemv:8x12",
    "matmul:8x8x8",
    "matmul:5x7x3",
    "transpose:8x8",
    "conv:1x1x1x6x6x3",
    "maxpool:1x1x6x6x3,S=1,P=1",
    "batchnorm_folded:8x8",
    "batchnorm:2x2x4x4",
    "layernorm:8x16",
    "layernorm:3x5",
    "rmsnorm:8x16",
    "softmax:8x16",
    "argmax:4x8",
    "attention:1x4x4x4",
)


def plain(name: str, dtype: str) -> KernelOp:
    """A library kernel whose maxima may lose NaN, as those of hardware loops do."""
    return with_permission(with_alignment(workload(name, dtype).instantiate(), 8), Numerics.NUMBERS)


def sums_lanes(program: KernelOp) -> bool:
    """Whether lanes are added up, in an order that the program leaves open."""
    return any(
        leaf.accumulate is not None
        and s.mapping is Mapping.VECTOR
        and not any(e.uses(s.depth) for e in leaf.output.index)
        for leaf in nest_of(program).leaves
        for s in leaf.chain
    )


@cache
def tuned(name: str, dtype: str, expert: str, on: str = "snitch-xdiv") -> ScheduledKernel:
    return make_moves(plain(name, dtype), machine(on), expert)


@cache
def ran(name: str, dtype: str, expert: str, on: str = "snitch-xdiv") -> Result:
    """What the simulator says, after the results were compared."""
    tuning = tuned(name, dtype, expert, on)
    inputs = inputs_for(tuning.before, 5)
    found, result = run_snitch(tuning.after, inputs, machine(on))
    exact = is_exact(tuning.after) and not sums_lanes(tuning.after)
    agree(tuning.after, found, interpret_stepwise(tuning.after, inputs), exact=exact)
    close(found, interpret_stepwise(tuning.before, inputs), tuning.before)
    return result


@pytest.mark.parametrize("expert", EXPERT_PASSES)
@pytest.mark.parametrize("name", KERNELS)
def test_what_they_make_is_right(name: str, expert: str) -> None:
    ran(name, "f64", expert)
    assert verify_moves(tuned(name, "f64", expert)).fault is None


@pytest.mark.parametrize(
    "name", ["axpy:1x64", "dot:1x64", "matmul:8x8x8", "softmax:8x16", "conv:1x1x1x6x6x3", "gemv:8x16"]
)
def test_single_precision(name: str) -> None:
    ran(name, "f32", "heuristic")


@pytest.mark.parametrize("name", ["matmul:8x8x8", "conv:1x1x1x6x6x3", "reducemax:8x16"])
def test_older_cores(name: str) -> None:
    """Shorter hardware loops, which do not nest."""
    ran(name, "f64", "heuristic", "snitch-2024")


@pytest.mark.parametrize("name", ["axpy:1x64", "dot:1x64", "reducemax:8x16", "gemv:8x12", "matmul:8x8x8", "relu:8x12"])
def test_each_pass_is_faster_than_the_one_before(name: str) -> None:
    naive, greedy, heuristic = (ran(name, "f64", expert) for expert in EXPERT_PASSES)
    assert naive.cycles > greedy.cycles >= heuristic.cycles - 4
    assert heuristic.utilisation > 2 * naive.utilisation


def test_four_sums_at_a_time() -> None:
    """Streams around, four sums in registers, a hardware loop: the latency of the FPU is hidden."""
    nest = nest_of(tuned("matmul:8x8x8", "f64", "heuristic").after)
    mappings = {scope.mapping for scope in nest.scopes}
    assert {Mapping.STREAM, Mapping.FREP, Mapping.UNROLL} <= mappings
    (sum_,) = [leaf for leaf in nest.leaves if leaf.contracted]
    assert [scope.mapping for scope in sum_.chain[-2:]] == [Mapping.FREP, Mapping.UNROLL]
    assert ran("matmul:8x8x8", "f64", "heuristic").utilisation > 0.85


@pytest.mark.parametrize(
    ("name", "part"), [("sigmoid:16x16", 0.6), ("softmax:8x16", 0.6), ("tanh:8x8", 0.6), ("layernorm:8x16", 1.0)]
)
def test_copies_overlap(name: str, part: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four copies of a function of many instructions take little more than half of what they do one after the other."""
    now = ran(name, "f64", "heuristic").cycles
    monkeypatch.setattr(schedule, "_SLACK", ())
    after = tuned(name, "f64", "heuristic").after
    _, before = run_snitch(after, inputs_for(after, 5))
    assert now <= part * before.cycles


def test_functions_are_copied_four_times() -> None:
    """Short sums alone would be copied eight times; eight copies of `exp` do not fit in the registers."""
    nest = nest_of(tuned("swiglu:1x8x8x8", "f64", "heuristic").after)
    (leaf,) = [leaf for leaf in nest.leaves if leaf.function == "math.exp"]
    assert [scope.extent for scope in leaf.chain if scope.mapping is Mapping.UNROLL] == [4]


def test_what_has_no_stream_left_is_loaded() -> None:
    """All scales are in registers while a hardware loop goes through the rows; a stream delivers the shifts."""
    nest = nest_of(tuned("batchnorm_folded:8x8", "f64", "heuristic").after)
    (row,) = [leaf for leaf in nest.leaves if leaf.output.array.intent is not None]
    assert [(s.mapping.name, s.extent) for s in row.chain[1:]] == [("FREP", 8), ("UNROLL", 8)]
    memory = {access.array.name: access.array.buffer.memory.value for access in row.reads}
    assert memory == {"x": "heap", "g_in": "register", "b": "heap"}


def test_packed_numbers() -> None:
    """Two f32 in a register, four registers of partial sums, one hardware loop."""
    nest = nest_of(tuned("dot:1x256", "f32", "heuristic").after)
    (sum_,) = [leaf for leaf in nest.leaves if leaf.contracted]
    assert [scope.mapping for scope in sum_.chain[-3:]] == [Mapping.FREP, Mapping.UNROLL, Mapping.VECTOR]
    assert ran("dot:1x256", "f32", "heuristic").cycles < ran("dot:1x256", "f64", "heuristic").cycles


HANDWRITTEN = {
    ("matmul:16x16x16", "f64"): 4150,
    ("matmul:8x8x8", "f64"): 566,
    ("matmul:16x16x16", "f32"): 4025,
    ("batchnorm_folded:16x16", "f64"): 363,
    ("transpose:16x16", "f64"): 284,
}
"""Cycles on RTL of what others wrote by hand."""


def test_traces_made_by_hand() -> None:
    """They apply, mean the same, and are as fast as what others wrote in assembly."""
    found = [(kernel, dtype) for kernel in MICRO_KERNELS for dtype in DTYPES if kernel.trace(dtype) is not None]
    assert HANDWRITTEN.keys() <= {(kernel.text, dtype) for kernel, dtype in found}
    for kernel, dtype in found:
        path = kernel.trace(dtype)
        assert path is not None
        on = kernel.machine(machine("snitch"))
        tuning = make_moves(kernel.instantiate(dtype), on, None, Trace.load(path))
        inputs = inputs_for(tuning.before, 3)
        results, simulated = run_snitch(tuning.after, inputs, on)
        agree(tuning.after, results, interpret_stepwise(tuning.after, inputs))
        close(results, interpret_stepwise(tuning.before, inputs), tuning.before)
        assert verify_moves(tuning).fault is None
        if (kernel.text, dtype) in HANDWRITTEN:
            assert simulated.cycles <= HANDWRITTEN[kernel.text, dtype]


@pytest.mark.parametrize(("name", "cycles"), [("relu:16x16", 3108), ("reducemax:16x16", 3396)])
def test_naive_maxima_take_the_cycles_of_rtl(name: str, cycles: int) -> None:
    """Those that keep NaN: half of the time they wait for comparisons, whose results go to the integer core."""
    program = make_moves(with_alignment(workload(name, "f64").instantiate(), 64), DIVIDES, "naive").after
    found, result = run_snitch(program, inputs := inputs_for(program, 5))
    agree(program, found, interpret_stepwise(program, inputs))
    assert result.cycles == pytest.approx(cycles, rel=0.01)


@pytest.mark.parametrize("dtype", ["f64", "f32"])
@pytest.mark.parametrize("name", ["relu:8x12", "reducemax:8x16", "maxpool:1x1x6x6x3,S=1,P=1", "softmax:8x16"])
def test_maxima_that_may_lose_nan_are_one_instruction(name: str, dtype: str) -> None:
    """No comparison and no branch, in hardware loops or not; exp restores NaN by a comparison of its argument."""
    permitted = snitch_source(tuned(name, dtype, "naive").after, DIVIDES).text
    exact = snitch_source(make_moves(workload(name, dtype).instantiate(), DIVIDES, "naive").after, DIVIDES).text
    inside = 1 if name.startswith("softmax") else 0
    assert (permitted.count("feq."), permitted.count("ordered")) == (0, 2 * inside)
    assert exact.count("feq.") > 0
    ran(name, dtype, "naive")


PACKED = (
    "fill:8x8",
    "axpy:1x64",
    "dot:1x64",
    "reducesum:8x16",
    "reducemax:8x16",
    "relu:8x8",
    "gemv:8x16",
    "matmul:8x8x8",
    "transpose:8x8",
    "conv:1x1x1x10x10x3",
    "maxpool:1x1x10x10x3,S=1,P=0",
    "sumpool:1x1x10x10x3,S=1,P=0",
    "batchnorm_folded:8x8",
    "layernorm:8x16",
    "rmsnorm:8x16",
    "softmax:8x16",
    "sigmoid:8x8",
    "reducemean:8x16",
)


@pytest.mark.parametrize("expert", ["greedy", "heuristic"])
@pytest.mark.parametrize("name", PACKED)
def test_f32_is_packed(name: str, expert: str) -> None:
    """Results are right, statements of innermost loops are packed, and numbers are packed outside of loops."""
    tuning = tuned(name, "f32", expert)
    ran(name, "f32", expert)
    assert verify_moves(tuning).fault is None
    leaves = nest_of(tuning.after).leaves
    deepest = max(len([s for s in leaf.chain if s.extent > 1]) for leaf in leaves)
    inside = [leaf for leaf in leaves if len([s for s in leaf.chain if s.extent > 1]) == deepest]
    assert all(leaf.chain[-1].mapping is Mapping.VECTOR for leaf in inside)
    text = snitch_source(tuning.after, DIVIDES).text
    for body in hardware_loops(text):
        assert not any("vfcpka" in line for line in body) or name.startswith("fill")


def hardware_loops(text: str) -> list[list[str]]:
    """The instructions of each hardware loop of a program."""
    lines = text.splitlines()
    starts = [number for number, line in enumerate(lines) if "frep.o" in line]
    return [lines[start + 1 : start + 1 + int(lines[start].split(",")[1])] for start in starts]


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
@pytest.mark.parametrize(
    "name",
    [
        "fill:8x8",
        "relu:8x16",
        "transpose:8x8",
        "axpy:1x64",
        "dot:1x64",
        "gemv:8x16",
        "matmul:8x8x8",
        "reducemax:4x16",
        "softmax:8x16",
    ],
)
def test_half_precision(name: str, dtype: str) -> None:
    """Four f16 in a register where a kernel computes in f16, else f32 between casts."""
    ran(name, dtype, "heuristic")
    if (name, dtype) in (("relu:8x16", "f16"), ("fill:8x8", "f16")):
        nest = nest_of(tuned(name, dtype, "heuristic").after)
        assert {leaf.chain[-1].extent for leaf in nest.leaves if leaf.depth > 1} == {4}


CLANG = {
    "fill:16x16": (301, 300),
    "copy:16x16": (573, 572),
    "transpose:16x16": (572, 572),
    "axpy:1x256": (2316, 2315),
    "dot:1x256": (1550, 1549),
    "reducesum:1x128": (653, 653),
    "reducesum:16x16": (1163, 1163),
    "reducemax:16x16": (636, 620),
    "relu:16x16": (909, 908),
    "gemv:16x32": (3230, 3230),
    "matmul:8x8x8": (2522, 2522),
    "conv:1x1x1x10x10x3": (2587, 2716),
    "maxpool:1x1x10x10x3,S=1,P=0": (1141, 1047),
    "sumpool:1x1x10x10x3,S=1,P=0": (1174, 1174),
    "batchnorm_folded:16x16": (2700, 2700),
    "reducemean:16x16": (1215, 1216),
}
"""Cycles of plain C by Clang 22.1.8 -O2, f64 and f32, on the simulator."""


@pytest.mark.parametrize("name", CLANG)
def test_no_pass_is_behind_a_compiler(name: str) -> None:
    """The heuristic pass is 1.3 times as fast, except where f64 are only stored: that takes a cycle each."""
    for dtype, cycles in zip(("f64", "f32"), CLANG[name], strict=True):
        (kernel,) = [each for each in MICRO_KERNELS if each.text == name]
        on = kernel.machine(machine("snitch"))
        for expert, factor in (("greedy", 1.0), ("heuristic", 1.0 if (name[:4], dtype) == ("fill", "f64") else 1.3)):
            tuning = make_moves(kernel.instantiate(dtype), on, expert)
            _, result = run_snitch(tuning.after, inputs_for(tuning.before, 5), on)
            assert result.cycles * factor <= cycles, (dtype, expert)


@pytest.mark.parametrize("size", [32, 64, 96])
def test_packed_sums_are_in_a_hardware_loop(size: int) -> None:
    """Also that of 64 numbers, of whose loops both have eight iterations: only the inner one is unrolled."""
    nest = nest_of(tuned(f"reducesum:1x{size}", "f32", "heuristic").after)
    ran(f"reducesum:1x{size}", "f32", "heuristic")
    (packed,) = [leaf for leaf in nest.leaves if any(a.array.name == "x" for a in leaf.reads)]
    assert [(s.extent, s.mapping.name) for s in packed.chain][1:] == [(size // 8, "FREP"), (4, "UNROLL"), (2, "VECTOR")]
