"""Convolutions, their transposes, and their gradients."""

from __future__ import annotations

from collections.abc import Sequence

from pdojo import build
from pdojo.build import Array
from pdojo.build.array import wide
from pdojo.torch.operators.registry import Call, aten

Numbers = Sequence[int]


def per_axis(numbers: Numbers, rank: int) -> list[int]:
    """A number for each of `rank` axes."""
    return list(numbers) * rank if len(numbers) == 1 else list(numbers)


@aten("convolution.default")
def convolution(
    call: Call,
    x: Array,
    weights: Array,
    bias: Array | None,
    stride: Numbers,
    padding: Numbers,
    dilation: Numbers,
    transposed: bool,
    output_padding: Numbers,
    groups: int,
) -> Array:
    """The convolution, or its transpose."""
    rank = x.rank - 2
    strides, ends, dilations = (per_axis(each, rank) for each in (stride, padding, dilation))
    if not transposed:
        return build.conv(x, weights, bias, stride=strides, padding=ends, dilation=dilations, groups=groups)
    behind = per_axis(output_padding, rank)
    return build.conv_transpose(
        x, weights, bias, stride=strides, padding=ends, output_padding=behind, dilation=dilations, groups=groups
    )


@aten("convolution_backward.default")
def convolution_backward(
    call: Call,
    gradient: Array,
    x: Array,
    weights: Array,
    bias_sizes: Numbers | None,
    stride: Numbers,
    padding: Numbers,
    dilation: Numbers,
    transposed: bool,
    output_padding: Numbers,
    groups: int,
    output_mask: Sequence[bool],
) -> list[Array | None]:
    """The gradients of the operand, the weights and the bias."""
    rank = x.rank - 2
    strides, ends, dilations = (per_axis(each, rank) for each in (stride, padding, dilation))
    found: list[Array | None] = [None, None, None]
    if output_mask[0] and transposed:
        whole = build.conv(gradient, weights, stride=strides, padding=ends, dilation=dilations, groups=groups)
        # Windows in the padding of the result of the transpose have no element.
        found[0] = whole[(..., *[slice(0, extent) for extent in x.shape[2:]])]
    elif output_mask[0]:
        rows = zip(x.shape[2:], gradient.shape[2:], weights.shape[2:], strides, ends, dilations, strict=True)
        behind = [extent - ((places - 1) * s - 2 * p + (k - 1) * d + 1) for extent, places, k, s, p, d in rows]
        found[0] = build.conv_transpose(
            gradient, weights, stride=strides, padding=ends, output_padding=behind, dilation=dilations, groups=groups
        )
    if output_mask[1]:
        few, many = (x, gradient) if transposed else (gradient, x)
        found[1] = _of_weights(few, many, weights.shape[2:], strides, ends, dilations, groups)
    if output_mask[2]:
        found[2] = build.sum(wide(gradient), (0, *range(2, x.rank)))
    return found


def _of_weights(
    few: Array, many: Array, window: Numbers, strides: Numbers, ends: Numbers, dilations: Numbers, groups: int
) -> Array:
    """The sums over images and places of the products of `few` [N, A, *places] and the windows of `many` [N, B, ...].

    The result is [A, B / groups, *window].
    """
    rank = len(window)
    padded = build.pad(many, [(0, 0), (0, 0), *[(end, end) for end in ends]])
    seen = build.windows(padded, window, strides, dilations)
    seen = seen[(slice(None), slice(None), *[slice(0, count) for count in few.shape[2:]])]
    n, channels, inputs = few.shape[0], few.shape[1], many.shape[1]
    parts = build.reshape(seen, (n, groups, inputs // groups, *seen.shape[2:]))
    rows = build.reshape(few, (n, groups, channels // groups, *few.shape[2:]))
    places, taps = "uvw"[:rank], "xyz"[:rank]
    kind = "f32" if few.dtype in ("f16", "bf16") else few.dtype
    found = build.contract(f"ngo{places},ngc{places}{taps}->goc{taps}", rows, parts, dtype=kind)
    return build.reshape(found, (channels, inputs // groups, *window))
