"""Images in other sizes, one axis after the other, beside PyTorch's kernels."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch.nn.functional import interpolate

CASES: list[tuple[tuple[int, ...], dict[str, Any]]] = [
    ((2, 3, 7), {"scale_factor": 2.0, "mode": "linear"}),
    ((2, 3, 5, 7), {"scale_factor": 2.0, "mode": "bilinear"}),
    ((1, 4, 9, 13), {"scale_factor": (0.6, 1.5), "mode": "bilinear", "recompute_scale_factor": True}),
    ((1, 4, 9, 13), {"size": (4, 17), "mode": "bilinear", "align_corners": True}),
    ((1, 4, 9, 13), {"size": 1, "mode": "bilinear", "align_corners": True}),
    ((2, 1, 6, 5), {"size": (3, 11), "mode": "bicubic"}),
    ((2, 2, 6, 5), {"scale_factor": 1.7, "mode": "bicubic", "align_corners": True}),
    ((1, 2, 4, 5, 3), {"size": (7, 3, 5), "mode": "trilinear"}),
    ((2, 3, 8, 8), {"size": (3, 5), "mode": "bilinear", "antialias": True}),
    ((2, 3, 8, 8), {"size": 5, "mode": "nearest"}),
]


@pytest.mark.parametrize(("shape", "arguments"), CASES)
@pytest.mark.parametrize("form", ["f32", "bf16", "channels_last", "gradient", "dynamic"])
def test_interpolation_is_pytorchs(shape: tuple[int, ...], arguments: dict[str, Any], form: str) -> None:
    torch._dynamo.reset()
    x = torch.randn(shape, dtype=torch.bfloat16 if form == "bf16" else torch.float32)
    if form == "bf16" and "antialias" in arguments:
        pytest.skip("PyTorch has no kernel of this type")
    if form == "channels_last":
        if len(shape) != 4:
            pytest.skip("channels_last is for images of two dimensions")
        x = x.to(memory_format=torch.channels_last)
    if form == "gradient":
        x.requires_grad_()
    compiled = torch.compile(
        lambda x: interpolate(x, **arguments),
        backend="pdojo",
        options={"tune": "none"},
        dynamic=True if form == "dynamic" else None,
    )
    expected, found = interpolate(x, **arguments), compiled(x)
    bound = 0.02 if form == "bf16" else 1e-5
    torch.testing.assert_close(found, expected, rtol=bound, atol=bound)
    assert found.is_contiguous(
        memory_format=torch.channels_last if form == "channels_last" else torch.contiguous_format
    )
    if form == "gradient":
        given = torch.randn_like(expected)
        pair = [torch.autograd.grad(each, x, given)[0] for each in (found, expected)]
        torch.testing.assert_close(*pair, rtol=1e-5, atol=1e-5)
