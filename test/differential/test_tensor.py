"""Nests that one instruction computes: machine code against the interpreter, which runs their meaning."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from differential.compiled import kernel, random_inputs, run, same
from pdojo.backends.calling.arrays import parameters_of
from pdojo.backends.llvm.executable import compile as compile_kernel
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.machines.registry import host, machine
from pdojo.dialect.notation import print_notation
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.semantics.interpreter import interpret
from pdojo.dialect.view.build import nest_of
from pdojo.transforms.game import Game

BYTES = """
kernel product(a, b) -> (c)
a i8 [7, 20] heap
b i8 [5, 32, 4] heap
c i32 [7, 32] heap
u i32 [7, 2, 5, 16, 4] stack
s i32 [7, 2, 5, 16, 4] stack
acc i32 [7, 2, 16] stack

7 2
| 16 acc[{0},{1},{2}] = 0
| 5 16 4
| | u[{0},{1},{2},{3},{4}] = ucast(a[{0},{2}*4+{4}])
| | s[{0},{1},{2},{3},{4}] = cast(b[{2},{1}*16+{3},{4}])
| | acc[{0},{1},{3}] += u[{0},{1},{2},{3},{4}] * s[{0},{1},{2},{3},{4}]
| 16 c[{0},{1}*16+{2}] = acc[{0},{1},{2}]
"""
"""A product of unsigned and signed bytes; b is packed in groups of four rows."""
PACKED = """
kernel groups(a, b, c) -> (c)
a i8 [3, 16, 4] heap
b i8 [3, 16, 4] heap
c i32 [3, 16] heap
u i32 [3, 16, 4:N] heap
s i32 [3, 16:N, 4:N] register

3 16 4
| u[{0},{1},{2}] = ucast(a[{0},{1},{2}])
| s[{0},{1},{2}] = cast(b[{0},{1},{2}])
| c[{0},{1}] += u[{0},{1},{2}] * s[{0},{1},{2}]
"""
SHORT = """
kernel short(a, b, c) -> (c)
numerics reassociate contract flush
a bf16 [6, 16, 2] heap
b bf16 [6, 16, 2] heap
c f32 [16] heap
u f32 [6:N, 16:N, 2:N] stack
v f32 [6:N, 16:N, 2:N] stack

6 16 2
| u[{0},{1},{2}] = cast(a[{0},{1},{2}])
| v[{0},{1},{2}] = cast(b[{0},{1},{2}])
| c[{1}] fma= u[{0},{1},{2}] * v[{0},{1},{2}]
"""
DOTS = """
kernel dots(x, z) -> (y)
x f32 [7, 6] heap
z f32 [4, 6] heap
y f32 [7, 4] heap

7 4 y[{0},{1}] = 0
7:p 3 4 2 y[{0},{2}] += x[{0},{1}*2+{3}] * z[{2},{1}*2+{3}]
"""


def needs(feature: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(feature not in host().features, reason=f"the processor has no {feature}")


def played(text: str, described: Machine, *moves: str) -> KernelOp:
    game = Game(kernel(text), described)
    game.apply_all(moves)
    return game.kernel


def outputs(program: KernelOp, described: Machine, seed: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """What machine code and the interpreter make of random inputs; outputs are poisoned and guarded."""
    executable = compile_kernel(program, described, threads=2)
    inputs = random_inputs(executable.parameters, seed)
    for name, values in inputs.items():
        if values.dtype == np.int8:
            inputs[name] = np.random.default_rng(seed).integers(-128, 128, values.shape).astype(np.int8)
    expected = interpret(program, {name: values.copy() for name, values in inputs.items()})
    return run(executable, inputs), dict(expected)


def agree(program: KernelOp, described: Machine) -> bool:
    dtypes = {p.name: p.dtype for p in parameters_of(nest_of(program))}
    for seed in range(5):
        found, expected = outputs(program, described, seed)
        if not all(same(found[name], expected[name], dtypes[name]) for name in found):
            return False
    return True


@needs("avx512vnni")
@pytest.mark.parametrize(("optimised", "memory"), [(False, "stack"), (True, "stack"), (True, "register")])
def test_bytes(optimised: bool, memory: str) -> None:
    """Exact, to the bit; with accumulators in registers where only constants index them."""
    moves = ["tensorize@acc#1:3{intrinsic=vpdpbusd_512_broadcast}"]
    if optimised:
        moves += ["vectorize@acc#0:2", "vectorize@c:2", "reuse_dims@acc:0", "reuse_dims@acc:1", "unroll@acc#0:1"]
    if memory == "register":
        moves.append("set_location@acc{location=register}")
    program = played(BYTES, machine("host"), *moves)
    assert "16:m(vpdpbusd_512_broadcast)" in print_notation(program)
    assert agree(program, machine("host"))
    if optimised:
        asm = compile_kernel(program, machine("host")).native.asm
        assert "vpdpbusd" in asm
        assert "%rsp)" not in asm, "accumulators are on the stack"
        assert "callq" not in asm


@needs("avx512vnni")
def test_groups() -> None:
    assert agree(played(PACKED, machine("host"), "tensorize@c:1{intrinsic=vpdpbusd_512}"), machine("host"))


@needs("avx512vnni")
@needs("avx512bf16")
def test_named_machine() -> None:
    described = machine("x86-64-zen4")
    missing = set(described.features) - set(host().features)
    if missing:
        pytest.skip(f"the processor has no {', '.join(sorted(missing))}")
    assert agree(played(PACKED, described, "tensorize@c:1{intrinsic=vpdpbusd_512}"), described)


def tensorized_short() -> KernelOp:
    return played(SHORT, machine("host"), "tensorize@c:1{intrinsic=vdpbf16ps_512}")


@needs("avx512bf16")
def test_short_floats_up_to_rounding() -> None:
    program = tensorized_short()
    for seed in range(5):
        found, expected = outputs(program, machine("host"), seed)
        np.testing.assert_allclose(found["c"], expected["c"], rtol=1e-5, atol=1e-5)


@needs("avx512bf16")
def test_short_floats_flush() -> None:
    """Why the kernel must permit it: the product of a denormal number and a large one is lost."""
    program = tensorized_short()
    executable = compile_kernel(program, machine("host"))
    tiny, large = np.uint16(0x0040), np.uint16(0x7F00)  # 2^-127, 2^127
    a: NDArray[np.uint16] = np.full((6, 16, 2), tiny)
    b: NDArray[np.uint16] = np.full((6, 16, 2), large)
    c = np.zeros(16, np.float32)
    executable(a=a, b=b, c=c)
    assert (c == 0).all()
    expected = interpret(program, {"a": a, "b": b, "c": np.zeros(16, np.float32)})
    assert (np.asarray(expected["c"]) == 12).all()


def test_toy() -> None:
    """Free strides, threads, extents that do not divide."""
    assert agree(played(DOTS, machine("toy"), "tensorize@y#1:2{intrinsic=toy_dot}"), machine("toy"))


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("%half = fadd", "%half = fsub"),
        ("ptr %a, i64 1", "ptr %a, i64 0"),
        ("%next, 4", "%next, 3"),
        ("mul i64 %i, %b_0", "mul i64 %i, 2"),
    ],
)
def test_a_wrong_template_is_found(right: str, wrong: str) -> None:
    toy = machine("toy")
    (dot,) = (i for i in toy.intrinsics if i.name == "toy_dot")
    assert right in dot.templates["llvm"]
    broken = replace(dot, templates={"llvm": dot.templates["llvm"].replace(right, wrong)})
    described = replace(toy, intrinsics=(broken,))
    assert not agree(played(DOTS, described, "tensorize@y#1:2{intrinsic=toy_dot}"), described)
