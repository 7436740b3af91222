"""Dot products of narrow numbers: the heuristic pass gives them to the machine's instructions, and they are right."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from differential.compiled import kernel, run
from differential.test_heuristic import check, tuned
from pdojo.backends.calling.arrays import parameters_of
from pdojo.backends.llvm.executable import compile as compile_kernel
from pdojo.backends.llvm.targets import asm_text
from pdojo.backends.llvm.tiles import permit_tiles
from pdojo.backends.measure.arrays import random_inputs
from pdojo.dialect.assumptions import with_alignment
from pdojo.dialect.intrinsic import Intrinsic
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.machines.registry import host, machine
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.rules.validate import validate
from pdojo.dialect.semantics.interpreter import interpret
from pdojo.dialect.view.build import nest_of
from pdojo.dialect.view.nest import Nest
from pdojo.errors import LoweringError
from pdojo.kernels import workload
from pdojo.passes.scheduled_kernel import make_moves

ZEN4 = "x86-64-zen4"
DOTS = {"matmul_i8": "vpdpbusd_512_broadcast", "matmul_bf16": "vdpbf16ps_512_broadcast"}
AVX2 = "x86-64-avx2"
PAIRS = "vpmaddwd_256_broadcast"
INSTRUCTIONS = [*((name, ZEN4, instruction) for name, instruction in DOTS.items()), ("matmul_i8", AVX2, PAIRS)]
MISSING = sorted({"avx512vnni", "avx512bf16"} - set(host().features))
SHAPES = (
    "64x64x64",
    "20x30x40",
    "1x64x64",
    "3x7x100",
    "64x3x48",
    "17x65x33",
    "48x64x15",
    "7x260x260",
    "2x8x16",
    "100x129x17",
)
needs_avx2 = pytest.mark.skipif("avx2" not in host().features, reason="the processor has no AVX2")
needs_dots = pytest.mark.skipif(bool(MISSING), reason=f"the processor has no {', '.join(MISSING)}")

BATCHED = """
kernel batched(a, b) -> (c)
a i8 [3, 9, 22] heap
b i8 [3, 22, 40] heap
c i32 [3, 9, 40] heap
u i32 [3, 9, 22] heap
v i32 [3, 22, 40] heap

3 9 22 u[{0},{1},{2}] = ucast(a[{0},{1},{2}])
3 22 40 v[{0},{1},{2}] = cast(b[{0},{1},{2}])
3 9 40
| c[{0},{1},{2}] = 0
| 22 c[{0},{1},{2}] += u[{0},{1},{3}] * v[{0},{3},{2}]
"""
TURNED = """
kernel turned(a, b) -> (c)
a i8 [37, 13] heap
b i8 [50, 37] heap
c i32 [13, 50] heap
u i32 [37, 13] heap
v i32 [50, 37] heap

37 13 u[{0},{1}] = ucast(a[{0},{1}])
50 37 v[{0},{1}] = cast(b[{0},{1}])
13 50
| c[{0},{1}] = 0
| 37 c[{0},{1}] += u[{2},{0}] * v[{1},{2}]
"""
"""Both operands lie the other way round: a is copied in groups, b only in panels."""
CHANNELS = """
kernel channels(x, w) -> (y)
x i8 [3, 18, 10] heap
w i8 [3, 10, 48] heap
y i32 [16, 48] heap
u i32 [3, 18, 10] heap
v i32 [3, 10, 48] heap

3 18 10 u[{0},{1},{2}] = ucast(x[{0},{1},{2}])
3 10 48 v[{0},{1},{2}] = cast(w[{0},{1},{2}])
16 48
| y[{0},{1}] = 0
| 3 10 y[{0},{1}] += u[{2},{0}+{2},{3}] * v[{2},{3},{1}]
"""
"""A window of three positions in channels of ten: two loops of terms, the inner of which has a rest."""
ROW = """
kernel row(a, b) -> (c)
a i8 [70] heap
b i8 [70, 90] heap const
c i32 [90] heap
u i32 [70] heap
v i32 [70, 90] heap

70 u[{0}] = ucast(a[{0}])
70 90 v[{0},{1}] = cast(b[{0},{1}])
90
| c[{0}] = 0
| 70 c[{0}] += u[{1}] * v[{1},{0}]
"""
STEPS = """
kernel steps(x, r) -> (h)
x i8 [5, 3, 90] heap
r i8 [90, 90] heap const
h i8 [6, 3, 90] heap
u i32 [5, 3, 90] heap
v i32 [90, 90] heap
s i32 [5, 3, 90] heap
t i32 [5, 3, 90] heap
w i32 [5, 3, 90] heap

90 90 v[{0},{1}] = cast(r[{0},{1}])
3 90 h[0,{0},{1}] = x[0,{0},{1}]
5
| 3 90 u[{0},{1},{2}] = ucast(h[{0},{1},{2}])
| 3 90
| | s[{0},{1},{2}] = 0
| | 90 s[{0},{1},{2}] += u[{0},{1},{3}] * v[{3},{2}]
| 3 90 w[{0},{1},{2}] = cast(x[{0},{1},{2}])
| 3 90 t[{0},{1},{2}] = s[{0},{1},{2}] ^ w[{0},{1},{2}]
| 3 90 h[{0}+1,{1},{2}] = cast(t[{0},{1},{2}])
"""
"""The states of three rows, as those of a recurrent network: products in a loop of steps."""
STEPS_OF_A_ROW = STEPS.replace(" 3 90\n", " 1 90\n").replace("3 90 ", "1 90 ").replace(", 3, ", ", 1, ")
SIGNED = """
kernel signed(a, b) -> (c)
a i8 [16, 64] heap
b i8 [64, 32] heap
c i32 [16, 32] heap
u i32 [16, 64] heap
v i32 [64, 32] heap

16 64 u[{0},{1}] = cast(a[{0},{1}])
64 32 v[{0},{1}] = cast(b[{0},{1}])
16 32
| c[{0},{1}] = 0
| 64 c[{0},{1}] += u[{0},{2}] * v[{2},{1}]
"""
EXACT = """
kernel exact(a, b) -> (c)
a bf16 [16, 64] heap
b bf16 [64, 32] heap
c f32 [16, 32] heap
u f32 [16, 64] heap
v f32 [64, 32] heap

16 64 u[{0},{1}] = cast(a[{0},{1}])
64 32 v[{0},{1}] = cast(b[{0},{1}])
16 32
| c[{0},{1}] = 0
| 64 c[{0},{1}] += u[{0},{2}] * v[{2},{1}]
"""
"""Without the permission to take denormal numbers for zero."""


def used(nest: Nest) -> set[str]:
    return {scope.intrinsic for scope in nest.scopes if scope.intrinsic}


def inputs_of(nest: Nest, seed: int) -> dict[str, Any]:
    """Random inputs, bytes over their whole range."""
    inputs = random_inputs(parameters_of(nest), seed)
    generator = np.random.default_rng(seed)
    for name, values in inputs.items():
        if values.dtype == np.int8:
            values[...] = generator.integers(-128, 128, values.shape)
            inputs[name] = values
    return inputs


@needs_dots
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", DOTS)
def test_products_at_odd_sizes(name: str, shape: str) -> None:
    check(name, shape)


@needs_avx2
@pytest.mark.parametrize("shape", SHAPES)
def test_pairs_of_bytes_at_odd_sizes(shape: str) -> None:
    run_exactly(workload(f"matmul_i8:{shape}").instantiate(), tuned("matmul_i8", shape, on=AVX2).after, AVX2)


@pytest.mark.parametrize(("name", "on", "instruction"), INSTRUCTIONS)
def test_whole_tiles_and_rests(name: str, on: str, instruction: str) -> None:
    """The instruction does all that fills tiles; accumulators are in registers; rests are vectors."""
    for shape, rests in (("48x64x64", False), ("37x65x75", True), ("5000x16x64", False)):
        nest = tuned(name, shape, on=on).game.program.nest
        sums = [leaf for leaf in nest.leaves if leaf.accumulate is not None]
        assert instruction in used(nest)
        assert all(leaf.output.array.buffer.memory.value == "register" for leaf in sums)
        assert any(not any(s.intrinsic for s in leaf.chain) for leaf in sums) == rests
        if not rests:
            assert "v" not in nest.arrays, "something is cast outside of the product"


@pytest.mark.parametrize(("name", "on", "instruction"), INSTRUCTIONS)
def test_straight_code(name: str, on: str, instruction: str) -> None:
    """All accumulators stay in registers over the sum."""
    code = asm_text(tuned(name, "48x64x64", on=on).after, machine(on))
    lines = [line for line in code.splitlines() if instruction.partition("_")[0] in line]
    assert len(lines) >= 16
    assert not any("%rsp" in line for line in lines)


@pytest.mark.parametrize("text", [BATCHED, TURNED, CHANNELS, ROW, STEPS, STEPS_OF_A_ROW])
@pytest.mark.parametrize(("on", "instruction"), [(ZEN4, DOTS["matmul_i8"]), (AVX2, PAIRS)])
def test_other_products(on: str, instruction: str, text: str) -> None:
    """Batches, operands that lie the other way round, several loops of terms, one row, steps."""
    plain = with_alignment(kernel(text), 64)
    found = make_moves(plain, machine(on), "heuristic")
    validate(found.game.program)
    assert instruction in used(found.game.program.nest)
    missing = sorted(set(machine(on).features) - set(host().features))
    if missing:
        pytest.skip(f"the processor has no {', '.join(missing)}")
    run_exactly(plain, found.after, on)


def run_exactly(plain: KernelOp, after: KernelOp, on: str) -> None:
    """Run a program on bytes of their whole range; the results are those of the interpreter, to the bit."""
    executable = compile_kernel(after, machine(on), threads=2)
    for seed in range(3):
        inputs = inputs_of(nest_of(plain), seed)
        expected = interpret(plain, {name: values.copy() for name, values in inputs.items()})
        got = run(executable, inputs)
        for name, values in got.items():
            np.testing.assert_array_equal(values, np.asarray(expected[name]))


@pytest.mark.parametrize("text", [SIGNED, EXACT])
def test_what_the_instruction_does_not_mean(text: str) -> None:
    """Signed times signed is another product, and rounding is the kernel's to permit."""
    for on in (ZEN4, AVX2):
        found = make_moves(with_alignment(kernel(text), 64), machine(on), "heuristic")
        assert not used(found.game.program.nest)


def test_without_the_instructions() -> None:
    assert not used(tuned("matmul_i8", "48x64x64", on="x86-64-avx512").game.program.nest)


# Tiles: 16 rows of 64 bytes.

AMX = "x86-64-amx"
TILES = {"matmul_i8": "tdpbusd", "matmul_bf16": "tdpbf16ps"}
WIDEN = {
    "i8": {
        "cast": "  %{0}w = sext i8 %{0} to i32",
        "ucast": "  %{0}w = zext i8 %{0} to i32",
    },
    "bf16": {
        "cast": "  %{0}z = zext i16 %{0} to i32\n  %{0}s = shl i32 %{0}z, 16\n  %{0}w = bitcast i32 %{0}s to float",
    },
}


def counted(total: int, digits: tuple[int, ...], body: str) -> str:
    """LLVM IR of a loop over `total` iterations; %i0, %i1 ... are the digits of the counter, the last the fastest."""
    lines = ["entry:", "  br label %loop", "loop:", "  %n = phi i64 [ 0, %entry ], [ %next, %loop ]"]
    rest = "%n"
    for position in reversed(range(len(digits))):
        lines.append(f"  %i{position} = urem i64 {rest}, {digits[position]}")
        lines.append(f"  %r{position} = udiv i64 {rest}, {digits[position]}")
        rest = f"%r{position}"
    lines += [body, "  %next = add i64 %n, 1", f"  %more = icmp ult i64 %next, {total}"]
    return "\n".join([*lines, "  br i1 %more, label %loop, label %end", "end:", "  ret void"])


def emulated_product(intrinsic: Intrinsic) -> str:
    """What a tile instruction does, in plain LLVM IR: the same operands and strides, no tiles."""
    found = re.search(r"a (\w+) \[16, (\d+)\]", intrinsic.meaning)
    assert found is not None
    dtype, group = found[1], int(found[2]) // 16
    casts = re.findall(r"= (u?cast)\(", intrinsic.meaning)
    element = {"i8": "i8", "bf16": "i16"}[dtype]
    sums = {
        "i8": ("i32", "  %p = mul i32 %aw, %bw\n  %new = add i32 %old, %p"),
        "bf16": ("float", "  %new = call float @llvm.fma.f32(float %aw, float %bw, float %old)"),
    }
    kind, add = sums[dtype]
    body = f"""
  %ar = mul i64 %i0, %a_0
  %ag = mul i64 %i2, {group}
  %ak = add i64 %ag, %i3
  %ai = add i64 %ar, %ak
  %ap = getelementptr {element}, ptr %a, i64 %ai
  %a_ = load {element}, ptr %ap
  %br = mul i64 %i2, %b_0
  %bc = mul i64 %i1, {group}
  %bk = add i64 %bc, %i3
  %bi = add i64 %br, %bk
  %bp = getelementptr {element}, ptr %b, i64 %bi
  %b_ = load {element}, ptr %bp
{WIDEN[dtype][casts[0]].format("a_").replace("%a_w", "%aw")}
{WIDEN[dtype][casts[1]].format("b_").replace("%b_w", "%bw")}
  %cr = mul i64 %i0, 16
  %ci = add i64 %cr, %i1
  %cp = getelementptr {kind}, ptr %c, i64 %ci
  %old = load {kind}, ptr %cp
{add}
  store {kind} %new, ptr %cp"""
    loop = counted(16 * 16 * 16 * group, (16, 16, 16, group), body)
    arguments = "ptr %a, ptr %b, ptr %c, i64 %a_0, i64 %b_0"
    function = f"define void @{intrinsic.name}({arguments}) alwaysinline {{\n{loop}\n}}\n"
    return f"declare float @llvm.fma.f32(float, float, float)\n{function}"


def emulated_copy(intrinsic: Intrinsic) -> str:
    """Zeros for a tile, or a tile to memory."""
    place = "  %cr = mul i64 %i0, 16\n  %ci = add i64 %cr, %i1\n  %cp = getelementptr i32, ptr %c, i64 %ci\n"
    if intrinsic.name.startswith("tilezero"):
        loop = counted(256, (16, 16), place + "  store i32 0, ptr %cp")
        return f"define void @{intrinsic.name}(ptr %c) alwaysinline {{\n{loop}\n}}\n"
    body = place + (
        "  %v = load i32, ptr %cp\n  %dr = mul i64 %i0, %d_0\n  %di = add i64 %dr, %i1\n"
        "  %dp = getelementptr i32, ptr %d, i64 %di\n  store i32 %v, ptr %dp"
    )
    return (
        f"define void @{intrinsic.name}(ptr %c, ptr %d, i64 %d_0) alwaysinline {{\n{counted(256, (16, 16), body)}\n}}\n"
    )


def emulated() -> Machine:
    """The processor with tiles that plain code stands for."""
    described = machine(AMX)
    plain: list[Intrinsic] = []
    for intrinsic in described.intrinsics:
        text = intrinsic.templates["llvm"]
        if intrinsic.name.startswith("tdp"):
            text = emulated_product(intrinsic)
        elif intrinsic.name.startswith("tile"):
            text = emulated_copy(intrinsic)
        elif not intrinsic.name.startswith("interleave"):
            plain.append(intrinsic)
            continue
        plain.append(replace(intrinsic, features=(), templates={"llvm": text}))
    return replace(described, features=host().features, threads=2, intrinsics=tuple(plain))


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        *(("matmul_i8", shape) for shape in ("64x128x64", "70x520x50", "33x100x40")),
        *(("matmul_bf16", shape) for shape in ("64x128x64", "37x64x48", "16x192x17", "33x100x40")),
        *(pytest.param("matmul_i8", shape, marks=pytest.mark.slow) for shape in ("37x64x48", "16x192x17")),
        pytest.param("matmul_bf16", "70x520x50", marks=pytest.mark.slow),
    ],
)
def test_tiles_by_plain_code(name: str, shape: str) -> None:
    """The nests, the layouts and the strides that tiles get are right, whole and with rests."""
    described = emulated()
    plain = with_alignment(workload(f"{name}:{shape}").instantiate(), 64)
    found = make_moves(plain, described, "heuristic")
    validate(found.game.program)
    assert (TILES[name] in used(found.game.program.nest)) == (shape != "33x100x40" or name == "matmul_bf16")
    inputs = inputs_of(nest_of(plain), 5)
    expected = interpret(plain, {key: values.copy() for key, values in inputs.items()})
    got = run(compile_kernel(found.after, described, threads=2), inputs)
    np.testing.assert_allclose(got["c"], np.asarray(expected["c"]), rtol=1e-4, atol=1e-4)


def test_every_tile_product() -> None:
    """All four kinds of bytes; the emulation and the meaning agree."""
    described = emulated()
    header = (
        "a i8 [32, 128] heap\nb i8 [128, 32] heap\nc i32 [32, 32] heap\nu i32 [32, 128] heap\nv i32 [128, 32] heap\n\n"
    )
    for name, first, second in (
        ("tdpbusd", "ucast", "cast"),
        ("tdpbsud", "cast", "ucast"),
        ("tdpbssd", "cast", "cast"),
        ("tdpbuud", "ucast", "ucast"),
    ):
        text = (
            f"kernel k(a, b) -> (c)\n{header}32 128 u[{{0}},{{1}}] = {first}(a[{{0}},{{1}}])\n"
            f"128 32 v[{{0}},{{1}}] = {second}(b[{{0}},{{1}}])\n"
            "32 32\n| c[{0},{1}] = 0\n| 128 c[{0},{1}] += u[{0},{2}] * v[{2},{1}]\n"
        )
        plain = with_alignment(kernel(text), 64)
        found = make_moves(plain, described, "heuristic")
        assert name in used(found.game.program.nest)
        inputs = inputs_of(nest_of(plain), 7)
        expected = interpret(plain, {key: values.copy() for key, values in inputs.items()})
        got = run(compile_kernel(found.after, described, threads=2), inputs)
        np.testing.assert_array_equal(got["c"], np.asarray(expected["c"]))


@pytest.mark.parametrize("name", TILES)
def test_tiles_in_machine_code(name: str) -> None:
    """Tiles are configured; accumulators stay in them over the whole sum, from their zeros to their store."""
    described = machine(AMX)
    code = asm_text(tuned(name, "64x256x64", on=AMX).after, described)
    lines = [line.split()[0] for line in code.splitlines() if "tmm" in line or "tilecfg" in line]
    steps = [line for line in lines if line != "tileloadd"]
    assert steps == ["ldtilecfg", *["tilezero"] * 4, *[TILES[name]] * 4, *["tilestored"] * 4]


@pytest.mark.parametrize("name", TILES)
def test_tiles_of_this_processor(name: str) -> None:
    if "amx-tile" not in host().features:
        pytest.skip("the processor has no tiles (amx-tile)")
    try:
        permit_tiles()
    except LoweringError as error:
        pytest.skip(str(error))
    for shape in ("64x128x64", "70x520x50"):
        check(name, shape)
        assert TILES[name] in used(tuned(name, shape).game.program.nest)


@pytest.mark.skipif("amx-tile" in host().features, reason="the processor has tiles")
def test_tiles_are_refused() -> None:
    """A program that uses them is not loaded where the system does not permit it."""
    with pytest.raises(LoweringError, match="the system refuses the tiles of AMX, which this program uses: "):
        permit_tiles()
    with pytest.raises(LoweringError, match="amx-"):
        compile_kernel(tuned("matmul_i8", "64x128x64", on=AMX).after, machine(AMX))
