"""The operator library: any shape, any element type, and what each kernel means."""

from __future__ import annotations

import warnings
from random import Random

import numpy as np
import pytest

from pdojo.backends.calling.arrays import parameters_of
from pdojo.backends.measure.arrays import random_inputs
from pdojo.dialect.affine import Size
from pdojo.dialect.flow.program import Program
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation import parse_notation, print_notation
from pdojo.dialect.notation.bound import bound
from pdojo.dialect.rules.validate import validate
from pdojo.dialect.semantics.interpreter import interpret
from pdojo.dialect.semantics.rounding import from_interface
from pdojo.dialect.view.build import nest_of
from pdojo.errors import NotationError, UsageError
from pdojo.kernels import PRESETS, TABLE_3, Workload, kernel_names, workload
from pdojo.kernels.reference import numpy_reference
from qa.sizes import small_kernel
from sample import sampled

SHAPES = {
    "attention": ("2x5x7x3", "1x3x4x8"),
    "attention_online": ("2x1x2x8x12x4,P=12,R=4,C=4", "1x2x1x6x6x3,R=3,C=2", "1x1x1x4x8x2,P=3,R=2,C=4"),
    "avgpool": ("2x3x7x6x2,S=2", "1x2x7x8x3,S=2,P=1", "1x1x9x5x3,S=1,P=1"),
    "avgpool_ceil": ("2x3x7x6x2", "1x2x8x6x3,P=1", "1x1x6x5x2,S=3,P=1", "1x1x4x3x1,S=2"),
    "batchnorm": ("3x2x5x4", "1x3x7x2"),
    "bmm": ("3x4x5x6",),
    "bmm_broadcast_a": ("3x4x5x6",),
    "bmm_broadcast_b": ("3x4x5x6",),
    "causal_softmax": ("2x7", "1x16", "3x1"),
    "conv": ("2x3x4x7x6x3", "1x2x3x8x9x3,S=2,P=1", "2x1x2x9x9x3,DIL=2,P=2", "1x2x1x7x7x1,S=3"),
    "conv_transpose": ("2x3x4x3x5x3", "1x2x3x4x3x5,S=3,P=2", "2x2x1x3x3x2,S=1,P=0,OP=0", "1x1x2x3x4x1,S=2,P=0"),
    "conv_winograd": ("2x3x4x7x6", "3x2x3x5x9,P=0,I=2,R=2", "1x1x2x1x1"),
    "depthwise_conv": ("2x3x7x6x3", "1x2x8x9x3,S=2", "2x2x9x9x2,P=0,DIL=3"),
    "grouped_conv": ("2x4x6x7x6x3,G=2", "1x6x3x8x9x3,G=3,S=2", "1x4x2x9x9x2,G=1,P=0,DIL=3"),
    "groupnorm": ("3x4x5x4,G=2", "1x3x7x2,G=3", "2x5x3x3,G=1"),
    "instancenorm": ("3x2x5x4", "1x3x7x2"),
    "matmul": ("4x5x6", "1x7x3"),
    "matmul_bf16": ("4x6x5",),
    "matmul_i8": ("4x6x5",),
    "matmul_nt": ("4x5x6", "1x7x3"),
    "matmul_tn": ("4x5x6", "1x7x3"),
    "matmul_tt": ("4x5x6", "1x7x3"),
    "dequant_matmul": ("4x5x6",),
    "maxpool": ("2x3x7x6x2,S=2,P=0", "1x2x7x8x3,S=2,P=1"),
    "maxpool_ceil": ("2x3x7x6x2", "1x2x8x6x3,P=1", "1x1x6x5x2,S=3,P=1", "1x1x4x3x1,S=2"),
    "relu_ffn": ("2x3x4x5",),
    "rotary": ("2x3x2x8", "1x4x1x2"),
    "rotary_interleaved": ("2x3x2x8", "1x4x1x2"),
    "sumpool": ("2x3x7x6x2,S=2", "1x2x7x8x3,S=2,P=1"),
    "swiglu": ("2x3x5x4",),
}
"""Kernels of two sizes, R and C, are tried at others."""
FIXED = {"matmul_bf16", "matmul_i8"}
TOLERANCE = {"f64": 1e-12, "f32": 2e-5, "f16": 4e-3, "bf16": 3e-2}


def evaluate(wanted: Workload, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """What the interpreter gets, and what NumPy in float64 gets."""
    kernel = wanted.instantiate()
    validate(Program(kernel, machine("x86-64-avx512")))
    nest = nest_of(kernel)
    parameters = parameters_of(nest)
    inputs = random_inputs(parameters, seed)
    with warnings.catch_warnings():
        # Logarithms of what is negative.
        warnings.simplefilter("ignore", RuntimeWarning)
        (expected,) = numpy_reference(wanted)(*inputs.values())
        (got,) = interpret(nest, inputs).values()
    (output,) = [p for p in parameters if p.name not in inputs]
    return from_interface(got, output.dtype), expected


def agree(name: str, dtype: str) -> None:
    """The interpreter and NumPy get the same."""
    for shape in SHAPES.get(name, ("5x7", "3x16", "1x1")):
        wanted = workload(f"{name}:{shape}", None if name in FIXED else dtype)
        got, expected = evaluate(wanted)
        assert got.shape == expected.shape
        tolerance = 2e-2 if name in FIXED else TOLERANCE[dtype]
        np.testing.assert_allclose(got, expected, rtol=tolerance, atol=4 * tolerance, err_msg=f"{name} {shape}")


@pytest.mark.parametrize("name", kernel_names())
def test_the_interpreter_agrees_with_numpy(name: str) -> None:
    agree(name, "f64")


@pytest.mark.parametrize("dtype", ["f32", "bf16", "f16"])
@pytest.mark.parametrize("name", sampled())
def test_other_element_types(name: str, dtype: str) -> None:
    agree(name, dtype)


def test_argmax_finds_the_first_of_equal_ones_and_of_nan() -> None:
    nest = nest_of(workload("argmax:4x5").instantiate())
    x = np.array([[1, 3, 3, 0, 2], [0, np.nan, 9, np.nan, 1], [-np.inf] * 5, [2, 2, 2, 2, 2]], np.float32)
    (found,) = interpret(nest, {"x": x}).values()
    assert found.tolist() == [1, 1, 0, 0] == x.argmax(axis=1).tolist()


def test_a_class_that_is_none_picks_nothing() -> None:
    wanted = workload("cross_entropy:3x4", "f64")
    inputs = {"x": np.arange(12.0).reshape(3, 4), "t": np.array([0, -1, 4])}
    (got,) = interpret(nest_of(wanted.instantiate()), inputs).values()
    (expected,) = numpy_reference(wanted)(*inputs.values())
    np.testing.assert_allclose(got, expected)
    assert expected[1] == pytest.approx(np.log(np.exp(np.arange(-3.0, 1)).sum()))


@pytest.mark.parametrize("label", TABLE_3)
def test_the_rows_of_table_3(label: str) -> None:
    kernel = workload(label).instantiate()
    kernel.verify()
    validate(Program(kernel, machine("x86-64-avx512")))
    stated = PRESETS.get(label, (label, ""))[1]
    assert "x".join(map(str, workload(label).sizes.values())).startswith(stated)


def test_what_does_nothing_is_left_out() -> None:
    text = print_notation(workload("conv:1x2x3x8x8x3").instantiate())
    assert [line.split()[0] for line in text.split("\n\n")[0].splitlines()[1:]] == ["x", "k", "y", "t"]
    padded = print_notation(workload("conv:1x2x3x8x8x3,P=1").instantiate())
    assert "u f32 [1, 3, 10, 10] heap" in padded
    assert "cast" not in padded
    narrow = print_notation(workload("conv:1x2x3x8x8x3", "bf16").instantiate())
    assert narrow.count("cast") == 3


def test_copies_that_do_something_stay() -> None:
    from pdojo.kernels.plain import without_copies

    kept = """kernel k(x) -> (y)
x f32 [4] heap
y f32 [4] heap
w f32 [4] heap
n f32 [4] heap

4 w[{0}] = x[{0}]
4 w[{0}] += x[-{0}+3]
4 n[{0}] = w[{0}] * 2
4 y[{0}] = n[{0}]
4 y[{0}] += n[{0}]
"""
    (kernel,) = parse_notation(kept)
    without_copies(kernel)
    assert print_notation(kernel) == kept


@pytest.mark.parametrize(
    ("text", "dtype", "said"),
    [
        (
            "layernorm_2:64x512",
            None,
            "'layernorm_2' is layernorm at 4096x4096, and '64x512' are other sizes; write 'layernorm:64x512'",
        ),
        ("softmx", None, r"unknown kernel 'softmx'; did you mean 'softmax'\?"),
        ("softmax:4x5x6", None, "'4x5x6' has 3 sizes; softmax has RxC"),
        ("softmax:4xx5", None, "'4xx5' is no shape; write numbers separated by x: RxC"),
        ("softmax:S=2", None, "softmax has no size 'S'; it has RxC"),
        ("softmax:4x4", "f99", "unknown element type 'f99'"),
        ("matmul_i8", "f32", "has the element types that its name says"),
        ("softmax:9..4x4", None, r"'R' cannot be range\(9, 5\): a size has an ascending range with a value"),
        ("softmax:0..4x4", None, "a size runs from at least 1"),
        ("softmax:1..64/8x4", None, "the ends of the range of 'R' are multiples of 8"),
        ("softmax:4..9/2x4", None, "'4..9/2' ends at 9, which is no multiple of 2"),
        ("softmax:1..x4", None, "is no shape"),
    ],
)
def test_wrong_workloads(text: str, dtype: str | None, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        workload(text, dtype).instantiate()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("conv:1x1x1x2x2x5", "OH is -2, less than 0 for N = 1, O = 1, C = 1, H = 2, W = 2, K = 5"),
        ("rotary:1x2x1x7", "7 is no multiple of 2 for B = 1, L = 2, H = 1, D = 7"),
        ("softmax:0x4", "an extent is at least 1"),
    ],
)
def test_sizes_without_a_program(text: str, said: str) -> None:
    with pytest.raises(NotationError, match=said):
        workload(text).instantiate()


@pytest.mark.parametrize(
    ("definition", "said"),
    [
        ("size B = A * A", "the result of '\\*' is not linear in sizes known at run time"),
        ("size B = 8 / A", "the result of '/' is not linear in sizes known at run time"),
        ("size B = A / 2", "A is no multiple of 2 for all sizes"),
        ("size B = 3 - A", "the size B may be -5, less than 0"),
        ("number B = 1 / A", "the result of '/' is not linear"),
        ("number B = A", "the number 'B' depends on A, known at run time only"),
        ("number B = A * 0.5", "a size known at run time is no part of a broken number"),
    ],
)
def test_names_that_cannot_follow_from_a_range(definition: str, said: str) -> None:
    text = f"size A = 4\n{definition}\n\nkernel k(x) -> (y)\nx f32 [A] heap\ny f32 [A] heap\n\nA y[{{0}}] = x[{{0}}]\n"
    with pytest.raises(NotationError, match=said):
        parse_notation(text, given={"A": range(1, 9)})


def test_workloads_travel_as_data() -> None:
    found = workload("conv:2x3,S=2", "bf16")
    assert Workload.from_json(found.to_json()) == found
    assert list(found.sizes.items())[:3] == [("N", 2), ("O", 3), ("C", 64)]
    assert (found.sizes["S"], found.element_type, found.label) == (2, "bf16", "conv:2x3,S=2 bf16")
    assert workload("batchnorm_1").sizes["H"] == 2048


def test_ranges_are_sizes_known_at_run_time() -> None:
    found = workload("softmax:1..4096x8..2048/8")
    assert Workload.from_json(found.to_json()) == found
    assert found.sizes == {"R": 4096, "C": 2048}
    text = print_notation(found.instantiate())
    assert text.startswith("kernel softmax(x) -> (y)\n")
    assert "size R in 1..4096\nsize C in 8..2048 multiple 8\nx f32 [R, C] heap" in text
    # Copies of whole arrays are left out, as they are for constant sizes.
    assert "u f32" not in text


def test_sizes_follow_from_ranges() -> None:
    text = print_notation(workload("conv:1x2x3x8..64x9,P=1,S=2,K=3").instantiate())
    assert "size H in 8..64\n" in text
    assert "y f32 [1, 2, ((H+1)//2), 5] heap" in text
    assert "u f32 [1, 3, (H+2), 11] heap" in text
    assert "1 3 H 9 u[{0},{1},{2}+1,{3}+1] = x[{0},{1},{2},{3}]" in text


@pytest.mark.parametrize("name", kernel_names(long=False)[::3])
def test_library_kernels_take_a_range_for_the_first_size(name: str) -> None:
    """A kernel for a range is for each value the kernel at this value."""
    own = Workload(name)
    first, *others = own.sizes
    small = {size: min(own.sizes[size], 8) for size in others}
    kernel = Workload(name, ((first, range(2, 10, 2)), *small.items())).instantiate()
    assert kernel.known_sizes()[first] == Size(first, 2, 8, 2)
    for value in (2, 8):
        constant = Workload(name, ((first, value), *small.items())).instantiate()
        assert print_notation(bound(kernel, {first: value})) == print_notation(constant)


@pytest.mark.slow
@pytest.mark.parametrize("name", kernel_names(long=False))
def test_small_kernels_are_valid(name: str) -> None:
    """The walks of `test_moves.py` start from the first of them, which the game validates."""
    for seed in range(3):
        validate(Program(small_kernel(name, Random(seed)), machine("toy")))
