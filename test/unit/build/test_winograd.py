"""Convolutions by Winograd's minimal filtering."""

from __future__ import annotations

import numpy as np
import pytest

from pdojo import UsageError, build
from pdojo.build.winograd import block_of, conv_winograd, pays, quick_conv
from pdojo.dialect.notation import print_notation
from unit.build.references import run
from unit.build.test_primitives import inputs_of


@pytest.mark.parametrize(
    ("images", "weights", "padding", "block"),
    [
        ("2 3 8 8", "4 3 3 3", 1, None),
        ("1 2 3 3", "1 2 3 3", 0, None),
        ("3 2 7 9", "5 2 3 3", 1, (2, 3)),
        ("2 4 5 6", "3 4 3 3", ((0, 1), (2, 0)), (1, 2)),
        ("1 1 4 11", "2 1 3 3", 2, (1, 3)),
    ],
)
def test_results_are_those_of_conv(
    images: str, weights: str, padding: int | tuple[tuple[int, int], ...], block: tuple[int, int] | None
) -> None:
    handles, values = inputs_of(f"f64 {images}, f64 {weights}, f64 {weights.split()[0]}")
    found = run(conv_winograd(*handles, padding=padding, block=block), handles, values)[0]
    wanted = run(build.conv(*handles, padding=padding), handles, values)[0]
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)


def test_errors_in_f32_are_those_of_a_convolution() -> None:
    random = np.random.default_rng(5)
    x, w = build.input("x", "f32", (1, 64, 12, 12)), build.input("w", "f32", (4, 64, 3, 3))
    values = [random.standard_normal(each.shape).astype(np.float32) for each in (x, w)]
    wide = [build.input(name, "f64", each.shape) for name, each in (("x", x), ("w", w))]
    wanted = run(build.conv(*wide), wide, [each.astype(np.float64) for each in values])[0]
    direct = run(build.conv(x, w), [x, w], values)[0]
    fewer = run(conv_winograd(x, w), [x, w], values)[0]
    assert np.abs(fewer - wanted).max() < 2 * np.abs(direct - wanted).max()


def test_pays_for_wide_layers_of_f32_only() -> None:
    def asked(shape: tuple[int, ...], weights: tuple[int, ...], dtype: str = "f32", **places: object) -> bool:
        return pays(build.input("x", dtype, shape), build.input("w", dtype, weights), None, places)

    assert asked((1, 64, 56, 56), (64, 64, 3, 3), padding=1)
    assert asked((1, 64, 56, 56), (64, 64, 3, 3), stride=[1, 1], dilation=[1, 1], groups=1)
    assert not asked((1, 64, 56, 56), (64, 64, 3, 3), "f16")
    assert not asked((1, 64, 56, 56), (64, 64, 3, 3), stride=2)
    assert not asked((1, 64, 56, 56), (64, 64, 3, 3), stride=(1, 2))
    assert not asked((1, 64, 56, 56), (64, 32, 3, 3), groups=2)
    assert not asked((1, 64, 56, 56), (64, 64, 3, 3), dilation=[2, 1])
    assert not asked((1, 64, 56, 56), (64, 64, 5, 5), padding=2)
    assert not asked((1, 3, 224, 224), (64, 3, 3, 3))
    assert not asked((1, 512, 7, 7), (512, 512, 3, 3), padding=1)
    assert asked((8, 512, 7, 7), (512, 512, 3, 3), padding=1)
    assert not asked((1, 64, 2, 9), (64, 64, 3, 3))


def test_large_weights_are_read_once_for_many_tiles() -> None:
    x = build.input("x", "f32", (8, 512, 7, 7))
    assert block_of(x, build.input("w", "f32", (512, 512, 3, 3)), 1) == (4, 4)
    assert block_of(x, build.input("w", "f32", (16, 512, 3, 3)), 1) == (1, 1)


def test_open_sizes_are_left_to_conv() -> None:
    n = build.size("N", 1, 8)
    x, w = build.input("x", "f32", (n, 64, 12, 12)), build.input("w", "f32", (64, 64, 3, 3))
    text = print_notation(build.kernel("k", [x, w], [quick_conv(x, w)]))
    assert " 3 3" in text


def test_other_shapes_are_refused() -> None:
    x, w = build.input("x", "f32", (1, 4, 8, 8)), build.input("w", "f32", (4, 4, 5, 5))
    with pytest.raises(UsageError, match=r"weights \[O, C, 3, 3\]"):
        conv_winograd(x, w)
