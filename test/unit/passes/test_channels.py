"""Convolutions by channels with channels last: blocks of vectors of channels, whatever the element type."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import pdojo
from pdojo import build
from pdojo.build.channels_last import with_channels_first, with_channels_last
from pdojo.build.quantising import integer_conv
from pdojo.dialect.attributes import Mapping
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.view.build import nest_of
from pdojo.passes.scheduled_kernel import PASS, assume_alignment, make_moves


def kernel(dtype: str, channels: int, stride: int, size: int = 3) -> KernelOp:
    x = build.input("x", "u8" if dtype == "i8" else dtype, (2, 13, 11, channels))
    w = build.input("w", dtype, (channels, 1, size, size), const=True)
    windows: dict[str, Any] = {"stride": stride, "padding": size // 2, "groups": channels}
    images = with_channels_first(x)
    made = integer_conv(images, w, **windows) if dtype == "i8" else build.conv(images, w, **windows)
    numerics = ("contract", "flush", "reassociate") if dtype == "bf16" else None
    return build.kernel("by_channels", [x, w], [with_channels_last(build.maximum(made, 1))], numerics=numerics)


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("name", ["x86-64-avx2", "x86-64-zen4", "aarch64-neon"])
@pytest.mark.parametrize("dtype", ["f32", "bf16", "i8"])
def test_sums_are_vectors_of_channels(dtype: str, name: str, stride: int) -> None:
    target = replace(machine(name), threads=1)
    program = make_moves(assume_alignment(kernel(dtype, 48, stride), None), target, PASS).after
    sums = [leaf for leaf in nest_of(program).leaves if leaf.accumulate is not None and len(leaf.reads) == 2]
    assert sums
    for leaf in sums:
        lanes = leaf.chain[-1]
        assert lanes.mapping is Mapping.VECTOR
        assert all(any(e.uses(lanes.depth) for e in access.index) for access in leaf.accesses)


@pytest.mark.parametrize(("channels", "stride", "size"), [(48, 1, 3), (40, 2, 3), (7, 1, 5)])
@pytest.mark.parametrize("dtype", ["f32", "i8"])
def test_results(dtype: str, channels: int, stride: int, size: int) -> None:
    made, target = kernel(dtype, channels, stride, size), replace(machine("host"), threads=2)
    compiled = pdojo.compile(make_moves(assume_alignment(made, None), target, PASS).after, target)
    random = np.random.default_rng(channels)
    given = {name: random.integers(-9, 9, a.shape).astype(a.dtype) for name, a in compiled.random_inputs().items()}
    x = given["x"].view(np.uint8) if dtype == "i8" else given["x"]
    padded = np.pad(x.astype(np.float64), [(0, 0), *[(size // 2, size // 2)] * 2, (0, 0)])
    seen = np.lib.stride_tricks.sliding_window_view(padded, (size, size), (1, 2))[:, ::stride, ::stride]
    wanted = np.maximum(np.einsum("nhwcij,cij->nhwc", seen, given["w"][:, 0].astype(np.float64)), 1)
    found = compiled.bind_constants(w=pdojo.aligned(given["w"]))(pdojo.aligned(given["x"]))
    np.testing.assert_array_equal(found, wanted)
