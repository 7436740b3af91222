"""Images in other sizes."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pdojo.build import Array, resizing
from pdojo.build.resizing import Interpolation
from pdojo.onnx.operators.arguments import axis_of, integers
from pdojo.onnx.operators.registry import Node, operator


def _interpolation(node: Node) -> Interpolation:
    return Interpolation(
        node.choice("mode", ("nearest", "linear", "cubic")),
        node.choice(
            "coordinate_transformation_mode", resizing.PLACES, "half_pixel" if node.opset > 10 else "asymmetric"
        ),
        node.choice("nearest_mode", tuple(resizing.ROUNDINGS), "round_prefer_floor" if node.opset > 10 else "floor"),
        node.attribute("cubic_coeff_a", -0.75),
        bool(node.attribute("antialias", 0)),
        bool(node.attribute("exclude_outside", 0)),
        node.attribute("extrapolation_value", 0.0),
    )


@operator("Resize")
def resize(node: Node) -> Array:
    """The image in another size, one axis after the other."""
    scales_at, sizes_at, roi_at = (1, 3, 2) if node.opset < 11 else (2, 3, 1)
    x = node.array(0)
    axes = [axis_of(node, axis, x.rank) for axis in node.attribute("axes") or range(x.rank)]
    extents = [x.shape[axis] for axis in axes]
    roi = [float(v) for v in node.static(roi_at).reshape(-1)] if node.given(roi_at) else []
    roi = roi or [0.0] * len(axes) + [1.0] * len(axes)
    if node.opset > 10 and node.given(sizes_at) and node.static(sizes_at).size:
        counts = integers(node, sizes_at)
        scales = [count / extent for count, extent in zip(counts, extents, strict=True)]
        policy = node.choice("keep_aspect_ratio_policy", ("stretch", "not_larger", "not_smaller"))
        if policy != "stretch":
            scale = min(scales) if policy == "not_larger" else max(scales)
            scales, counts = [scale] * len(axes), [int(scale * extent + 0.5) for extent in extents]
    else:
        scales = [float(v) for v in node.static(scales_at).reshape(-1)]
        counts = _counts(node, scales, extents)
    regions = list(zip(roi[: len(axes)], roi[len(axes) :], strict=True))
    return resizing.resize(x, axes, counts, scales, _interpolation(node), regions, constants=node.constant)


def _counts(node: Node, scales: Sequence[float], extents: Sequence[int]) -> list[int]:
    """The extents of an image that is scaled."""
    if len(scales) != len(extents) or not all(math.isfinite(scale) and scale > 0 for scale in scales):
        node.refuse(f"its scales are {scales}, and should be {len(extents)} positive numbers")
    return [int(scale * extent) for scale, extent in zip(scales, extents, strict=True)]


@operator("Upsample")
def upsample(node: Node) -> Array:
    """The image enlarged, each element next to its copies, or with linear interpolation."""
    x = node.array(0)
    given = node.attribute("scales")
    if given is None and node.attribute("height_scale") is not None:
        given = (1.0, 1.0, node.attribute("height_scale"), node.attribute("width_scale"))
    scales = [float(v) for v in (node.static(1).reshape(-1) if given is None else given)]
    counts = _counts(node, scales, x.shape)
    linear = node.choice("mode", ("nearest", "linear", "bilinear")) != "nearest"
    kind = Interpolation("linear" if linear else "nearest", "asymmetric", "floor")
    return resizing.resize(x, range(x.rank), counts, scales, kind, constants=node.constant)
