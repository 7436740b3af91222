"""Images at places that are elements of other arrays."""

from __future__ import annotations

from pdojo import build
from pdojo.build import Array, sampling
from pdojo.onnx.operators.arguments import integers, optional
from pdojo.onnx.operators.registry import Node, operator
from pdojo.onnx.operators.windows import explicit, per_axis


@operator("GridSample")
def grid_sample(node: Node) -> Array:
    """The image at the places of a grid."""
    modes: dict[str, sampling.Mode] = {
        **{"linear": "linear", "nearest": "nearest", "cubic": "cubic"},
        **{"bilinear": "linear", "bicubic": "cubic"},
    }
    return sampling.grid_sample(
        node.array(0),
        node.array(1),
        modes[node.choice("mode", list(modes))],
        node.choice("padding_mode", ("zeros", "border", "reflection")),
        corners=bool(node.attribute("align_corners", 0)),
    )


@operator("DeformConv")
def deform_conv(node: Node) -> Array:
    """The convolution of elements at places that are moved by offsets."""
    return sampling.deform_conv(
        *(node.array(k) for k in range(3)),
        bias=optional(node, 3),
        mask=optional(node, 4),
        stride=per_axis(node, "strides", 2),
        padding=explicit(node, 2),
        dilation=per_axis(node, "dilations", 2),
        groups=node.attribute("group", 1),
        offset_groups=node.attribute("offset_group", 1),
    )


@operator("RoiAlign")
def roi_align(node: Node) -> Array:
    """The means or maxima of samples in the bins of regions."""
    samples = node.attribute("sampling_ratio", 0)
    if samples <= 0:
        node.refuse("the number of samples depends on the regions, because the attribute 'sampling_ratio' is 0")
    modes = ("half_pixel", "output_half_pixel") if node.opset >= 16 else ("output_half_pixel",)
    return sampling.roi_align(
        build.take(node.array(0), integers(node, 2), 0),
        node.array(1),
        (node.attribute("output_height", 1), node.attribute("output_width", 1)),
        samples,
        scale=node.attribute("spatial_scale", 1.0),
        half_pixel=node.choice("coordinate_transformation_mode", modes) == "half_pixel",
        reduction="mean" if node.choice("mode", ("avg", "max")) == "avg" else "max",
    )


@operator("MaxRoiPool")
def max_roi_pool(node: Node) -> Array:
    """The greatest elements in the bins of regions [batch, left, top, right, bottom]; 0 in bins without elements."""
    return sampling.max_roi_pool(
        node.array(0), node.array(1), node.attribute("pooled_shape"), node.attribute("spatial_scale", 1.0)
    )


@operator("AffineGrid")
def affine_grid(node: Node) -> Array:
    """The places of a grid of an image after affine maps; its function would take 24 kernels."""
    size = integers(node, 1)[2:]
    return sampling.affine_grid(
        node.array(0), size, constants=node.constant, corners=bool(node.attribute("align_corners", 0))
    )
