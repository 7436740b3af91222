"""The exact oracle: it accepts what is right under every schedule, and sees every planted illegal rewrite."""

from __future__ import annotations

from time import process_time

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin
from xdsl.parser import Parser

from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation import parse_notation
from pdojo.dialect.ops import PDOJO, KernelOp
from pdojo.dialect.semantics.oracle import Oracle, check_valid, equivalent, meaning, reduce_sizes, valid_by_sets
from pdojo.dialect.semantics.oracle.instances import count_instances
from pdojo.dialect.view.build import nest_of
from pdojo.dialect.view.nest import Nest
from pdojo.errors import InvalidKernel, PdojoError
from pdojo.kernels import kernel_names, workload

SEEDS = range(4)


def program(text: str) -> Nest:
    return nest_of(parse_notation(text)[0])


SOFTMAX = """
kernel softmax(x) -> (y)
x f32 [6, 8] heap
y f32 [6, 8] heap
m f32 [{R}] heap
e f32 [{R}, 8] heap
s f32 [{R}] heap

"""
PLAIN = (
    SOFTMAX.replace("{R}", "6")
    + """
6
| m[{0}] = -inf
| 8 m[{0}] max= x[{0},{1}]
6 8 e[{0},{1}] = x[{0},{1}] - m[{0}]
6 8 e[{0},{1}] = exp(e[{0},{1}])
6
| s[{0}] = 0
| 8 s[{0}] += e[{0},{1}]
6 8 y[{0},{1}] = e[{0},{1}] / s[{0}]
"""
)
FUSED = """
6
| m[{0}] = -inf
| 8 m[{0}] max= x[{0},{1}]
| 8 e[{0},{1}] = x[{0},{1}] - m[{0}]
| 8 e[{0},{1}] = exp(e[{0},{1}])
| s[{0}] = 0
| 8 s[{0}] += e[{0},{1}]
| 8 y[{0},{1}] = e[{0},{1}] / s[{0}]
"""

SHARED = "sm f32 [6] heap -> s, m"

RIGHT = {
    "fused": SOFTMAX.replace("{R}", "6") + FUSED,
    "blocks of a grid add up": PLAIN.replace(
        "6\n| s[{0}] = 0\n| 8 s[{0}] += e[{0},{1}]", "6 s[{0}] = 0\n8:g 6:b s[{1}] += e[{1},{0}]"
    ),
    "a grid for each sum": PLAIN.replace("| 8 s[{0}]", "| 8:g s[{0}]"),
    "fused and reused": SOFTMAX.replace("{R}", "6:N") + FUSED,
    "parallel with private rows": SOFTMAX.replace("{R}", "6:N") + FUSED.replace("6\n", "6:p\n"),
    "rows of a grid, lanes of a warp reduce": SOFTMAX.replace("{R}", "6:N")
    + FUSED.replace("6\n", "6:g\n").replace("| 8", "| 8:w"),
    "vectors of four": PLAIN.replace("6 8 y[{0},{1}] = e[{0},{1}]", "6 2 4:v y[{0},{1}*4+{2}] = e[{0},{1}*4+{2}]"),
    "vector reduction": PLAIN.replace("| 8 s[{0}] += e[{0},{1}]", "| 8:v s[{0}] += e[{0},{1}]"),
    "memory shared": SOFTMAX.replace("{R}", "6").replace("m f32 [6] heap\n", "").replace("s f32 [6] heap", SHARED)
    + FUSED,
    "guarded tiles": PLAIN.replace(
        "6 8 y[{0},{1}] = e[{0},{1}]", "6 3 3 where ({1}*3+{2} < 8) y[{0},{1}*3+{2}] = e[{0},{1}*3+{2}]"
    ),
    "reduction turned around": PLAIN.replace("| 8 s[{0}] += e[{0},{1}]", "| 8 s[{0}] += e[{0},7-{1}]"),
}

WRONG = {
    "parallel reduction": PLAIN.replace("| 8 s[{0}]", "| 8:p s[{0}]"),
    "parallel maximum": PLAIN.replace("| 8 m[{0}]", "| 8:p m[{0}]"),
    "grid reduction with its init": PLAIN.replace(
        "6\n| s[{0}] = 0\n| 8 s[{0}] += e[{0},{1}]", "8:g 6\n| s[{1}] = 0\n| s[{1}] += e[{1},{0}]"
    ),
    "grid reduction that is read inside": PLAIN.replace(
        "| 8 s[{0}] += e[{0},{1}]\n6 8 y[{0},{1}] = e[{0},{1}] / s[{0}]",
        "8:g 6\n| s[{1}] += e[{1},{0}]\n| y[{1},{0}] = e[{1},{0}] / s[{1}]",
    ),
    "shared row under parallel rows": SOFTMAX.replace("{R}", "6")
    + FUSED.replace("6\n", "6:p\n").replace("e[{0},", "e[0,"),
    "reuse without fusion": PLAIN.replace("m f32 [6]", "m f32 [6:N]"),
    "reuse of both dimensions": RIGHT["fused and reused"].replace("e f32 [6:N, 8]", "e f32 [6:N, 8:N]"),
    "grid maximum, which no atomic operation takes": PLAIN.replace("| 8 m[{0}]", "| 8:g m[{0}]"),
    "private rows do not outlive their thread": PLAIN.replace("m f32 [6]", "m f32 [6:N]").replace("6 8 e", "6:p 8 e"),
    "init sunk into the reduction": PLAIN.replace("| s[{0}] = 0\n| 8 s[{0}] +=", "| 8\n| | s[{0}] = 0\n| | s[{0}] +="),
    "missing init": PLAIN.replace("| s[{0}] = 0\n", ""),
    "missing init of a maximum": PLAIN.replace("| m[{0}] = -inf\n", ""),
    "init after the reduction": PLAIN.replace(
        "| s[{0}] = 0\n| 8 s[{0}] += e[{0},{1}]", "| 8 s[{0}] += e[{0},{1}]\n| s[{0}] = 0"
    ),
    "fusion of a reduction with its use": PLAIN.replace(
        "| 8 s[{0}] += e[{0},{1}]\n6 8 y[{0},{1}] = e[{0},{1}] / s[{0}]",
        "| 8\n| | s[{0}] += e[{0},{1}]\n| | y[{0},{1}] = e[{0},{1}] / s[{0}]",
    ),
    "short reduction": PLAIN.replace("| 8 m[{0}]", "| 7 m[{0}]"),
    "wrong tile": PLAIN.replace("6 8 e[{0},{1}] = exp(e[{0},{1}])", "6 2 4 e[{0},{1}*3+{2}] = exp(e[{0},{1}*3+{2}])"),
    "guard too tight": RIGHT["guarded tiles"].replace("{1}*3+{2} < 8", "{1}*3+{2} < 7"),
    "another function": PLAIN.replace("exp(", "exp2("),
    "operands exchanged": PLAIN.replace("x[{0},{1}] - m[{0}]", "m[{0}] - x[{0},{1}]"),
    "memory shared by two live arrays": RIGHT["memory shared"]
    .replace("| s[{0}] = 0\n", "")
    .replace("max= x[{0},{1}]\n", "max= x[{0},{1}]\n| s[{0}] = 0\n"),
}


@pytest.mark.parametrize("name", RIGHT)
def test_right_programs_are_equal(name: str) -> None:
    after = program(RIGHT[name])
    for seed in SEEDS:
        assert equivalent(program(PLAIN), after, seed=seed, schedules=4) is None
        assert check_valid(after, seed=seed) is None


@pytest.mark.parametrize("name", WRONG)
def test_planted_illegal_rewrites_are_seen(name: str) -> None:
    for seed in SEEDS:
        found = equivalent(program(PLAIN), program(WRONG[name]), seed=seed)
        assert found is not None
        assert found.array == "y"
        assert "kernel 'softmax': y[" in str(found)


SMALL_PAIRS = {
    "racy neighbour": (
        "kernel k(x) -> (y)\nx f32 [8] heap\ny f32 [8] heap\nt f32 [9] heap\n\n"
        "t[8] = 0\n8 t[{0}] = x[{0}]\n8 y[{0}] = t[{0}+1]",
        "8 t[{0}] = x[{0}]\n8 y[{0}] = t[{0}+1]",
        "8:p\n| t[{0}] = x[{0}]\n| y[{0}] = t[{0}+1]",
    ),
    "backward fusion": (
        "kernel k(x) -> (y)\nx f32 [8] heap\ny f32 [8] heap\nt f32 [8] heap\n\n8 t[{0}] = x[{0}]\n8 y[{0}] = t[7-{0}]",
        "8 t[{0}] = x[{0}]\n8 y[{0}] = t[7-{0}]",
        "8\n| t[{0}] = x[{0}]\n| y[{0}] = t[7-{0}]",
    ),
    "vector lanes that write one element": (
        "kernel k(x) -> (y)\nx f32 [4] heap\ny f32 [1] heap\n\n4 y[0] = x[{0}]",
        "4 y[0]",
        "4:v y[0]",
    ),
    "swap of scopes with a carried value": (
        "kernel k(x) -> (y)\nx f32 [4, 4] heap\ny f32 [4, 4] heap\nt f32 [4] heap\n\n"
        "4 4\n| t[{1}] = x[{0},{1}]\n| y[{0},{1}] = t[3-{1}*0-3]",
        "4 4\n| t[{1}]",
        "4 4\n| t[{0}]",
    ),
    "unwritten output": (
        "kernel k(x) -> (y)\nx f32 [8] heap\ny f32 [8] heap\n\n8 y[{0}] = x[{0}]",
        "8 y",
        "7 y",
    ),
    "lost accumulation into inout": (
        "kernel k(x, y) -> (y)\nx f32 [8, 2] heap\ny f32 [2] heap\n\n8 2 y[{1}] += x[{0},{1}]",
        "8 2 y",
        "8:p 2 y",
    ),
    "product raced": (
        "kernel k(x, y) -> (y)\nx f32 [8, 2] heap\ny f32 [2] heap\n\n8 2 y[{1}] *= x[{0},{1}]",
        "8 2 y",
        "8:p 2 y",
    ),
}


@pytest.mark.parametrize("name", SMALL_PAIRS)
def test_planted_errors_in_small_programs_are_seen(name: str) -> None:
    text, old, new = SMALL_PAIRS[name]
    assert old in text
    before, after = program(text), program(text.replace(old, new))
    for seed in SEEDS:
        assert equivalent(before, after, seed=seed) is not None


def test_an_invalid_program_is_not_even_equal_to_itself() -> None:
    for text in (WRONG["missing init"], WRONG["parallel reduction"], WRONG["reuse without fusion"]):
        assert check_valid(program(text)) is not None


def test_an_unwritten_element_is_named() -> None:
    text, old, new = SMALL_PAIRS["unwritten output"]
    found = equivalent(program(text), program(text.replace(old, new)))
    assert found is not None
    assert found.index == (7,)
    assert str(found) == ("kernel 'k': y[7] is never written under schedule 0, in 24 of 24 exact arithmetics")


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("y[{0}] = x[{0}] * 3 + x[{0}]", "y[{0}] = 4 * x[{0}]"),
        ("y[{0}] = fma(x[{0}], 2, x[{0}])", "y[{0}] = x[{0}] * 3"),
        ("y[{0}] = x[{0}] - x[{0}]", "y[{0}] = 0"),
        ("y[{0}] = x[{0}] * 0.5", "y[{0}] = x[{0}] * 0.25 + x[{0}] * 0.25"),
    ],
)
def test_ring_arithmetic_is_exact(left: str, right: str) -> None:
    """Written out statement by statement, as the notation has one function per statement."""
    assert _straight(left) == _straight(right)


def _straight(text: str) -> list[list[int]]:
    """Outputs of one line of arithmetic over x, split into statements by hand."""
    lines = {
        "y[{0}] = x[{0}] * 3 + x[{0}]": "t[{0}] = x[{0}] * 3\n| y[{0}] = t[{0}] + x[{0}]",
        "y[{0}] = x[{0}] * 0.25 + x[{0}] * 0.25": "t[{0}] = x[{0}] * 0.25\n| y[{0}] = t[{0}] + t[{0}]",
    }
    head = "kernel k(x) -> (y)\nx f32 [3] heap\ny f32 [3] heap\nt f32 [3] heap\n\n3\n| "
    return Oracle(program(head + lines.get(text, text))).outputs["y"].tolist()


def test_indices_are_exact_through_casts_comparisons_and_select() -> None:
    head = "kernel k(x) -> (y)\nx f32 [8] heap\ny f32 [8] heap\nc i1 [8] heap\nz f32 [8] heap\nn i32 [8] heap\n\n"
    select = head + "8\n| n[{0}] = {0}\n| c[{0}] = n[{0}] < 5\n| z[{0}] = select(c[{0}], x[{0}], 0)\n| y[{0}] = z[{0}]"
    ranges = head + "8\n| n[{0}] = 0\n| z[{0}] = 0\n| y[{0}] = 0\n5 y[{0}] = x[{0}]"
    assert equivalent(program(select), program(ranges)) is None


def test_extremes_are_neutral() -> None:
    for dtype, low, high in (("f32", "-inf", "inf"), ("i32", "-2147483648", "2147483647"), ("i8", "-128", "127")):
        head = f"kernel k(x) -> (y)\nx {dtype} [8] heap\ny {dtype} [2] heap\n\n"
        plain = program(head + "y[0] = x[0]\ny[1] = x[0]\n8 y[0] max= x[{0}]\n8 y[1] min= x[{0}]")
        filled = program(head + f"y[0] = {low}\ny[1] = {high}\n8 y[0] max= x[{{0}}]\n8 y[1] min= x[{{0}}]")
        assert equivalent(plain, filled) is None


def test_a_meaning_is_computed_once_for_several_programs() -> None:
    before = meaning(program(PLAIN), seed=3)
    assert equivalent(before, program(RIGHT["fused and reused"])) is None
    assert equivalent(before, program(WRONG["parallel maximum"])) is not None


@pytest.mark.parametrize("body", ["y[{0}] = x[{0}] * y[{0}]", "y[{0}] += x[{0}]", "y[{0}] = 1"])
def test_statements_that_never_run(body: str) -> None:
    text = f"kernel k(x) -> (y)\nx f32 [4] heap\ny f32 [4] heap\n\n4 y[{{0}}] = x[{{0}}]\n4 where ({{0}}*2 == 3) {body}"
    idle = program(text)
    assert check_valid(idle) is None
    assert equivalent(program(text.replace("*2 == 3", " < 4")), idle) is not None
    assert equivalent(program("\n".join(text.splitlines()[:-1])), idle) is None


def test_programs_too_large_to_enumerate_are_refused() -> None:
    with pytest.raises(PdojoError, match=r"9437184 statement instances.*reduce the sizes"):
        meaning(
            program(
                "kernel k(x) -> (y)\nx f32 [3072, 3072] heap\ny f32 [3072, 3072] heap\n\n"
                "3072 3072 y[{0},{1}] = x[{0},{1}]"
            )
        )


def test_interfaces_must_agree() -> None:
    with pytest.raises(PdojoError, match="same interface"):
        equivalent(program(PLAIN), program(SMALL_PAIRS["unwritten output"][0]))


FIXED = frozenset(
    "attention_online avgpool avgpool_ceil causal_softmax conv conv_transpose conv_winograd depthwise_conv"
    " grouped_conv groupnorm maxpool maxpool_ceil rotary rotary_interleaved sumpool".split()
)
"""Kernels with guards, or whose indices are sums: their sizes cannot be changed in the program, only in its text."""


@pytest.mark.parametrize("name", [name for name in kernel_names() if name not in FIXED])
def test_library_kernels_reduce_and_are_valid(name: str) -> None:
    kernel = workload(name).instantiate()
    small = reduce_sizes(kernel, 4000)
    assert small is not None
    small.verify()
    nest = nest_of(small)
    assert count_instances(nest) <= 4000
    assert len(nest.leaves) == len(nest_of(kernel).leaves)
    assert check_valid(nest) is None


@pytest.mark.parametrize("shape", ["1x1x2x5x6", "3x2x1x4x5,P=0,I=2,R=2"])
def test_winograd_is_convolution(shape: str) -> None:
    """`conv_winograd` and `conv` have the same results in exact arithmetic."""
    winograd = workload(f"conv_winograd:{shape}")
    sizes = winograd.sizes | {"K": 3, "S": 1, "DIL": 1}
    names = workload("conv").sizes
    direct = workload("conv:" + ",".join(f"{name}={sizes[name]}" for name in names))
    assert equivalent(direct.instantiate(), winograd.instantiate()) is None


def test_divisors_of_large_sizes_are_not_looked_for_to_the_end() -> None:
    """Those of a prime of 13 digits would take days."""
    prime = 2**43 - 57
    text = f"kernel k(x) -> (y)\nx f32 [{prime}] heap\ny f32 [{prime}] heap\n\n{prime} y[{{0}}] = x[{{0}}]\n"
    begun = process_time()
    small = reduce_sizes(parse_notation(text)[0], 100)
    assert process_time() - begun < 5
    assert small is not None


def test_sizes_that_indices_compute_with_are_not_reduced() -> None:
    assert reduce_sizes(parse_notation(RIGHT["guarded tiles"])[0], 100) is None
    assert reduce_sizes(parse_notation(RIGHT["vectors of four"])[0], 100) is None


def test_outputs_are_residues_of_every_lane() -> None:
    oracle = Oracle(program(PLAIN), seeds=4)
    run = oracle.run_exact(program(RIGHT["fused"]), 1)
    assert run["y"].shape == (48, 8)
    np.testing.assert_array_equal(run["y"], oracle.outputs["y"])


def unverified(text: str) -> Nest:
    """A program in MLIR syntax that the verifier would refuse, or the notation."""
    context = Context()
    context.load_dialect(Builtin)
    context.load_dialect(PDOJO)
    kernel = Parser(context, text).parse_module().body.block.first_op
    assert isinstance(kernel, KernelOp)
    return nest_of(kernel)


STEPS = """
pdojo.kernel @k(in x %x : memref<5xf32>, out y %y : memref<5xf32>) {
  %t = pdojo.buffer t : f32[5] heap
  pdojo.scope %i = 5 {
    pdojo.op %t[%i] = %x[%i]
  }
  pdojo.scope %i = 4 MAPPING {
    STEP
  }
  pdojo.scope %i = 5 {
    pdojo.op %y[%i] = %t[%i]
  }
}
"""
FORWARD = STEPS.replace("STEP", "pdojo.op %t[%i] = arith.addf(%t[%i + 1], 1.0 : f32)")
BACKWARD = STEPS.replace("STEP", "pdojo.op %t[%i + 1] = arith.addf(%t[%i], 1.0 : f32)")
TWO_STEPS = STEPS.replace("STEP", "pdojo.op %t[%i] = %t[%i + 1]\n    pdojo.op %t[4] = arith.addf(%t[%i], 1.0 : f32)")


def test_lanes_read_before_they_write() -> None:
    assert check_valid(unverified(FORWARD.replace("MAPPING", ": v"))) is None
    assert check_valid(unverified(BACKWARD.replace("MAPPING", ": v"))) is not None
    assert check_valid(unverified(TWO_STEPS.replace("MAPPING", ": v"))) is not None


@pytest.mark.parametrize("text", [FORWARD, BACKWARD, TWO_STEPS])
def test_threads_that_carry_values_are_seen(text: str) -> None:
    for seed in SEEDS:
        assert check_valid(unverified(text.replace("MAPPING", "")), seed=seed) is None
        for mapping in "pgbw":
            assert check_valid(unverified(text.replace("MAPPING", f": {mapping}")), seed=seed) is not None


TWO = """
kernel k(x, z) -> (y)
x {T} [2] heap
z {T} [2] heap
y {T} [] heap

y[] = x[0]
{M} y[] {A}
"""


def check_updates(dtype: str, scopes: str, accumulation: str, *, lost: bool) -> None:
    """Both oracles see that two iterations lose updates, or that none is lost."""
    text = TWO.replace("{T}", dtype).replace("{M}", scopes).replace("{A}", accumulation)
    nest = program(text if " " not in scopes else text.replace("{0}", "{1}"))
    assert all((check_valid(nest, seed=seed) is not None) == lost for seed in SEEDS)
    assert (valid_by_sets(nest).fault is not None) == lost


ATOMIC = [
    *((dtype, "+= x[{0}]") for dtype in ("f32", "f64", "i32", "i64")),
    *((dtype, f"{name}= x[{{0}}]") for dtype in ("i32", "i64") for name in ("max", "min", "umax", "umin", "and", "or")),
]
NOT_ATOMIC = [
    *((dtype, f"{name}= x[{{0}}]") for dtype in ("f32", "f64") for name in ("*", "max", "min")),
    *((dtype, "+= x[{0}]") for dtype in ("f16", "bf16", "i8", "i16")),
    ("f32", "fma= x[{0}] * z[{0}]"),
    ("i32", "*= x[{0}]"),
    ("i16", "max= x[{0}]"),
]


@pytest.mark.parametrize(("dtype", "accumulation"), ATOMIC)
def test_two_blocks_accumulate_by_an_atomic_operation(dtype: str, accumulation: str) -> None:
    check_updates(dtype, "2:g", accumulation, lost=False)
    check_updates(dtype, "2:p", accumulation, lost=True)


@pytest.mark.parametrize(("dtype", "accumulation"), NOT_ATOMIC)
def test_two_blocks_lose_updates_without_an_atomic_operation(dtype: str, accumulation: str) -> None:
    check_updates(dtype, "2:g", accumulation, lost=True)
    check_updates(dtype, "1:g 2:b", accumulation, lost=False)


@pytest.mark.parametrize("name", ["toy-gpu", "nvidia-sm90", "amd-gfx942"])
def test_machines_have_only_atomic_operations_that_the_oracles_know(name: str) -> None:
    spellings = {"add": "+"}
    for operation in machine(name).gpu.atomics:
        kind, dtype = operation.split(".")
        assert (dtype, f"{spellings.get(kind, kind)}= x[{{0}}]") in ATOMIC


def test_an_access_out_of_bounds_is_a_message() -> None:
    text = STEPS.replace("MAPPING", "").replace("STEP", "pdojo.op %t[%i] = %x[%i + 2]")
    with pytest.raises(InvalidKernel, match="array 'x' leaves dimension 0"):
        meaning(unverified(text))
