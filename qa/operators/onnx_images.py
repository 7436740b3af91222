"""Nodes of ONNX for operators of images: pools and convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from qa.operators.onnx_nodes import NODES
from qa.operators.peers import AbsentError, Node, Operand, peer

Ends = Any
"""A number, or a number or a pair for each axis."""


def _pads(padding: Ends, rank: int) -> list[int]:
    rows = [padding] * rank if isinstance(padding, int) else padding
    pairs = [(row, row) if isinstance(row, int) else row for row in rows]
    return [before for before, _ in pairs] + [after for _, after in pairs]


def _each(value: int | Sequence[int], rank: int) -> list[int]:
    return [value] * rank if isinstance(value, int) else list(value)


def _windows(size: Sequence[int], stride: Any, padding: Ends, dilation: Any, *, ceil: bool) -> dict[str, Any]:
    rank = len(size)
    found = {"kernel_shape": list(size), "strides": _each(size if stride is None else stride, rank)}
    return found | {"pads": _pads(padding, rank), "dilations": _each(dilation, rank), "ceil_mode": int(ceil)}


@peer(NODES, "pool")
def _pool(
    accumulation: str, x: Operand, size: Sequence[int], *, stride: Any = None, padding: Ends = 0, dilation: Any = 1,
    ceil: bool = False,
) -> Node:  # fmt: skip
    if accumulation != "max":
        raise AbsentError("it has no such pool")
    return Node("MaxPool", [x], _windows(size, stride, padding, dilation, ceil=ceil), opset=22)


@peer(NODES, "max_pool_with_places")
def _max_pool(
    x: Operand, size: Sequence[int], places: Operand, *, stride: Any = None, padding: Ends = 0, dilation: Any = 1,
    ceil: bool = False,
) -> Node:  # fmt: skip
    if x.shape[:2] != (1, 1):
        raise AbsentError("its indices are those in all images")
    return Node("MaxPool", [x], _windows(size, stride, padding, dilation, ceil=ceil), 2, opset=22)


@peer(NODES, "avg_pool")
def _avg_pool(
    x: Operand, size: Sequence[int], *, stride: Any = None, padding: Ends = 0, dilation: Any = 1, ceil: bool = False,
    count_padding: bool = True,
) -> Node:  # fmt: skip
    windows = _windows(size, stride, padding, dilation, ceil=ceil)
    return Node("AveragePool", [x], windows | {"count_include_pad": int(count_padding)}, opset=22)


@peer(NODES, "lp_pool")
def _lp_pool(
    x: Operand, size: Sequence[int], order: int, *, stride: Any = None, padding: Ends = 0, dilation: Any = 1,
    ceil: bool = False,
) -> Node:  # fmt: skip
    if tuple(size) == x.shape[2:]:
        return Node("GlobalLpPool", [x], {"p": order}, opset=22)
    return Node("LpPool", [x], _windows(size, stride, padding, dilation, ceil=ceil) | {"p": order}, opset=22)


@peer(NODES, "max_unpool")
def _max_unpool(x: Operand, indices: Operand, shape: Sequence[int]) -> Node:
    size = [extent - count + 1 for extent, count in zip(shape[2:], x.shape[2:], strict=True)]
    return Node("MaxUnpool", [x, indices], {"kernel_shape": size}, opset=22)


def _convolution(window: Sequence[int], stride: Any, padding: Ends, dilation: Any, groups: int) -> dict[str, Any]:
    rank = len(window)
    return {
        "kernel_shape": list(window),
        "strides": _each(stride, rank),
        "pads": _pads(padding, rank),
        "dilations": _each(dilation, rank),
        "group": groups,
    }


@peer(NODES, "conv")
def _conv(
    x: Operand, weights: Operand, bias: Operand | None = None, *, stride: Any = 1, padding: Ends = 0,
    dilation: Any = 1, groups: int = 1,
) -> Node:  # fmt: skip
    attributes = _convolution(weights.shape[2:], stride, padding, dilation, groups)
    return Node("Conv", [x, weights, *([] if bias is None else [bias])], attributes, opset=22)


def _of_windows(
    weights: Operand, *, stride: Any = 1, padding: Ends = 0, dilation: Any = 1, groups: int = 1
) -> dict[str, Any]:
    return _convolution(weights.shape[2:], stride, padding, dilation, groups)


@peer(NODES, "integer_conv")
def _integer_conv(
    x: Operand, weights: Operand, x_zero: Operand | None = None, weights_zero: Operand | None = None, **windows: Any
) -> Node:
    return Node("ConvInteger", [x, weights, x_zero, weights_zero], _of_windows(weights, **windows), opset=10)


@peer(NODES, "quantised_conv")
def _quantised_conv(*operands: Operand, **windows: Any) -> Node:
    return Node("QLinearConv", operands, _of_windows(operands[3], **windows), opset=10)


@peer(NODES, "causal_conv_with_state")
def _causal_conv(x: Operand, weights: Operand, bias: Operand | None = None, state: Operand | None = None) -> Node:
    return Node("CausalConvWithState", [x, weights, bias, state], {}, 2, opset=27)


@peer(NODES, "conv_transpose")
def _conv_transpose(
    x: Operand, weights: Operand, bias: Operand | None = None, *, stride: Any = 1, padding: Ends = 0,
    output_padding: Any = 0, dilation: Any = 1, groups: int = 1,
) -> Node:  # fmt: skip
    attributes = _convolution(weights.shape[2:], stride, padding, dilation, groups)
    attributes["output_padding"] = _each(output_padding, x.rank - 2)
    return Node("ConvTranspose", [x, weights, *([] if bias is None else [bias])], attributes, opset=22)


@peer(NODES, "folded")
def _folded(
    x: Operand, image: Sequence[int], block: Sequence[int], *, stride: Any, padding: Any, dilation: Any
) -> Node:
    attributes = {"strides": list(stride), "pads": _pads(padding, len(image)), "dilations": list(dilation)}
    return Node("Col2Im", [x, np.array(image), np.array(block)], attributes, opset=18)


@peer(NODES, "deform_conv")
def _deform_conv(
    x: Operand, weights: Operand, offset: Operand, bias: Operand | None = None, mask: Operand | None = None, *,
    stride: Any, padding: Any, dilation: Any, groups: int = 1, offset_groups: int = 1,
) -> Node:  # fmt: skip
    attributes = _convolution(weights.shape[2:], stride, padding, dilation, groups)
    return Node("DeformConv", [x, weights, offset, bias, mask], attributes | {"offset_group": offset_groups}, opset=22)


@peer(NODES, "grid_sample")
def _grid_sample(
    x: Operand, grid: Operand, mode: str = "linear", padding: str = "zeros", *, corners: bool = False
) -> Node:
    attributes = {"mode": mode, "padding_mode": padding, "align_corners": int(corners)}
    return Node("GridSample", [x, grid], attributes, opset=22)


@peer(NODES, "affine_grid")
def _affine_grid(theta: Operand, size: Sequence[int], *, corners: bool = False) -> Node:
    if corners and 1 in size:
        raise AbsentError("an axis of one element divides by 0")
    whole = np.array([theta.shape[0], 1, *size])
    return Node("AffineGrid", [theta, whole], {"align_corners": int(corners)}, opset=20)


@peer(NODES, "roi_align")
def _roi_align(
    x: Operand, regions: Operand, bins: Sequence[int], samples: int, *, scale: float = 1.0, half_pixel: bool = True,
    reduction: str = "mean",
) -> Node:  # fmt: skip
    attributes: dict[str, Any] = {
        "output_height": bins[0],
        "output_width": bins[1],
        "sampling_ratio": samples,
        "spatial_scale": scale,
    }
    attributes["coordinate_transformation_mode"] = "half_pixel" if half_pixel else "output_half_pixel"
    attributes["mode"] = {"mean": "avg", "max": "max"}[reduction]
    return Node("RoiAlign", [x, regions, np.arange(x.shape[0])], attributes, opset=22)


@peer(NODES, "max_roi_pool")
def _max_roi_pool(x: Operand, regions: Operand, bins: Sequence[int], scale: float = 1.0) -> Node:
    return Node("MaxRoiPool", [x, regions], {"pooled_shape": list(bins), "spatial_scale": scale}, opset=22)


@peer(NODES, "resize")
def _resize(
    x: Operand, axes: Sequence[int], counts: Sequence[int], scales: Sequence[float], kind: Any, regions: Any = None
) -> Node:
    if any(int(s * x.shape[a]) != n for a, n, s in zip(axes, counts, scales, strict=True)):
        raise AbsentError("extents follow from scales")
    attributes = {
        "axes": list(axes),
        "mode": kind.mode,
        "coordinate_transformation_mode": kind.places,
        "nearest_mode": kind.nearest,
        "cubic_coeff_a": kind.cubic,
        "antialias": int(kind.antialias),
        "exclude_outside": int(kind.exclude_outside),
        "extrapolation_value": kind.extrapolation,
    }
    roi = None if regions is None else np.array([*[s for s, _ in regions], *[e for _, e in regions]], np.float32)
    return Node("Resize", [x, roi, np.array(scales, np.float32)], attributes, opset=19)


@peer(NODES, "fourier")
def _fourier(
    x: Operand, axis: int, length: int | None = None, *, inverse: bool = False, onesided: bool = False
) -> Node:
    inputs = [x, None if length is None else np.array(length), np.array(axis)]
    return Node("DFT", inputs, {"inverse": int(inverse), "onesided": int(onesided)}, opset=20)


@peer(NODES, "short_time_fourier")
def _short_time_fourier(
    x: Operand, size: int, step: int, window: Operand | None = None, *, onesided: bool = True
) -> Node:
    return Node("STFT", [x, np.array(step), window, np.array(size)], {"onesided": int(onesided)}, opset=17)
