"""Kernels for all sizes from kernels at two."""

from __future__ import annotations

import numpy as np
import pytest

from pdojo.backends.calling.arrays import parameters_of
from pdojo.backends.measure.arrays import random_inputs
from pdojo.dialect.canonical import canonicalize
from pdojo.dialect.notation import parse_notation, print_notation
from pdojo.dialect.semantics.interpreter import interpret
from pdojo.dialect.view.build import nest_of
from pdojo.kernels import workload
from pdojo.model.generalised import generalised


def text_of(spec: str) -> str:
    """The printed text of a library kernel."""
    kernel = workload(spec).instantiate()
    canonicalize(kernel)
    return print_notation(kernel)


@pytest.mark.parametrize(
    ("first", "second", "other", "sizes"),
    [
        ("softmax:20x64", "softmax:35x100", "softmax:7x7", [7, 7]),
        ("layernorm:20x24", "layernorm:35x24", "layernorm:9x24", [9]),
        ("matmul:20x64x12", "matmul:30x80x12", "matmul:50x9x12", [50, 9]),
        ("conv:1x2x3x20x24x3,P=1,S=2", "conv:1x2x3x30x40x3,P=1,S=2", "conv:1x2x3x16x8x3,P=1,S=2", [16, 8]),
        ("attention:2x4x20x16", "attention:2x4x33x16", "attention:2x4x64x16", [64]),
    ],
)
def test_one_text_stands_for_kernels_at_all_sizes(first: str, second: str, other: str, sizes: list[int]) -> None:
    found = generalised(text_of(first), text_of(second))
    assert found is not None
    wanted = text_of(other)
    values = found.values(wanted)
    assert values is not None
    assert [*values.values()] == sizes
    (general,), (constant,) = parse_notation(found.text), parse_notation(wanted)
    given = random_inputs(parameters_of(nest_of(constant)), 3)
    expected, made = interpret(constant, given), interpret(general, given, sizes=values)
    for name, array in expected.items():
        np.testing.assert_array_equal(made[name], array)


def test_a_text_that_differs_elsewhere_is_not_meant() -> None:
    found = generalised(text_of("conv:1x2x3x20x20x3,S=2"), text_of("conv:1x2x3x30x30x3,S=2"))
    assert found is not None
    # 9 results of 19 or 20 elements, and 9 of 20: the texts of odd extents are others than those of the formula.
    assert found.values(text_of("conv:1x2x3x24x24x3,S=2")) is not None
    assert found.values(text_of("conv:1x2x3x24x24x5,S=2")) is None
    assert found.values(text_of("conv:1x2x3x24x26x3,S=2")) is None
    assert found.values(text_of("conv:1x2x3x24x24x3,S=1")) is None


def test_sizes_end_at_twice_the_greater_value() -> None:
    found = generalised(text_of("softmax:20x64"), text_of("softmax:35x64"))
    assert found is not None
    assert found.values(text_of("softmax:70x64")) == {"M": 70}
    assert found.values(text_of("softmax:71x64")) is None
    assert found.values(text_of("softmax:1x64")) is None


def test_texts_without_a_common_kernel() -> None:
    assert generalised(text_of("softmax:20x64"), text_of("softmax:20x64")) is None
    assert generalised(text_of("softmax:20x64"), text_of("log_softmax:30x64")) is None
    # The reshaped rows depend on the product of two sizes.
    assert generalised(text_of("rotary:1x6x2x8"), text_of("rotary:1x6x2x12")) is None


def test_more_texts_are_fewer_guesses() -> None:
    texts = [text_of(f"softmax:{rows}x{columns}") for rows, columns in ((20, 64), (35, 64), (35, 100))]
    two, three = generalised(*texts[1:]), generalised(*texts)
    assert two is not None
    assert three is not None
    assert [*two.ranges] == ["M"]
    assert three.values(text_of("softmax:9x7")) == {"M": 9, "L": 7}
    assert [three.values(text) for text in texts] == [{"M": 20, "L": 64}, {"M": 35, "L": 64}, {"M": 35, "L": 100}]


def test_a_number_that_three_texts_contradict() -> None:
    first = "kernel k(x) -> (y)\nx f32 [4] heap\ny f32 [4] heap\n\n4 y[{0}] = x[{0}] * 3\n"
    others = [first.replace("[4]", f"[{n}]").replace("\n4", f"\n{n}").replace("* 3", f"* {n // 2 + 1}") for n in (8, 6)]
    found = generalised(first, *others)
    assert found is not None
    assert found.values(others[1]) == {"M": 6}
    assert generalised(first, *others[:1], others[1].replace("* 4", "* 9")) is None


def test_numbers_that_follow_from_no_size() -> None:
    first = "kernel k(x) -> (y)\nx f32 [4] heap\ny f32 [4] heap\n\n4 y[{0}] = x[{0}] * 3\n"
    second = first.replace("4", "8").replace("3", "5").replace("f52", "f32")
    found = generalised(first, second)
    # 3 and 5 are half of the size plus 1: at a third size the text says.
    assert found is not None
    assert "x[{0}] * ((M+2)//2)" in found.text
    assert found.values(first.replace("4", "6")) is None
    assert found.values(first.replace("4", "6").replace("3", "4").replace("f42", "f32")) == {"M": 6}
