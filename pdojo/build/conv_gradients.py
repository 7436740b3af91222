"""Gradients of convolutions and of their transposes, and sums of the blocks that overlap in an image."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from pdojo.build.array import Array
from pdojo.build.contractions import contract, conv, conv_transpose, turned_taps
from pdojo.build.pieces import assemble, pad
from pdojo.build.policy import accumulated_wide
from pdojo.build.reductions import sum
from pdojo.build.shapes import reshape, windows
from pdojo.build.winograd import conv_winograd, pays
from pdojo.dialect.affine import var

Numbers = Sequence[int]


def of_images(
    gradient: Array,
    weights: Array,
    extents: Numbers,
    *,
    stride: Numbers,
    padding: Numbers,
    dilation: Numbers,
    groups: int = 1,
    transposed: bool = False,
    winograd: bool = False,
) -> Array:
    """The gradient of the images, with `extents`, of `conv` or of `conv_transpose`.

    With `winograd`, by `conv_winograd` where it pays.
    """
    if transposed:
        whole = conv(gradient, weights, stride=stride, padding=padding, dilation=dilation, groups=groups)
        # Windows in the padding of the result of the transpose have no element.
        return whole[(..., *[slice(0, extent) for extent in extents])]
    if winograd and all(number == 1 for number in (*stride, *dilation, groups)):
        turned = turned_taps(weights)
        ends = [k - 1 - p for k, p in zip(weights.shape[2:], padding, strict=True)]
        if min(ends) >= 0 and pays(gradient, turned, None, {"padding": ends}):
            return conv_winograd(gradient, turned, padding=ends)
    rows = zip(extents, gradient.shape[2:], weights.shape[2:], stride, padding, dilation, strict=True)
    behind = [extent - ((places - 1) * s - 2 * p + (k - 1) * d + 1) for extent, places, k, s, p, d in rows]
    return conv_transpose(
        gradient, weights, stride=stride, padding=padding, output_padding=behind, dilation=dilation, groups=groups
    )


@accumulated_wide
def of_weights(
    few: Array,
    many: Array,
    window: Numbers,
    *,
    stride: Numbers,
    padding: Numbers,
    dilation: Numbers,
    groups: int = 1,
) -> Array:
    """The sums over images and places of the products of `few` [N, A, *places] and the windows of `many` [N, B, ...].

    The result is [A, B / groups, *window]. It is the gradient of the weights of `conv` if
    `few` is the gradient of its result, of `conv_transpose` if `few` are its images.
    """
    rank = len(window)
    padded = pad(many, [(0, 0), (0, 0), *[(end, end) for end in padding]])
    seen = windows(padded, window, stride, dilation)
    seen = seen[(slice(None), slice(None), *[slice(0, count) for count in few.shape[2:]])]
    n, channels, inputs = few.shape[0], few.shape[1], many.shape[1]
    parts = reshape(seen, (n, groups, inputs // groups, *seen.shape[2:]))
    rows = reshape(few, (n, groups, channels // groups, *few.shape[2:]))
    places, taps = "uvw"[:rank], "xyz"[:rank]
    found = contract(f"ngo{places},ngc{places}{taps}->goc{taps}", rows, parts)
    return reshape(found, (channels, inputs // groups, *window))


def folded(
    x: Array,
    image: Numbers,
    block: Numbers,
    *,
    stride: Numbers,
    padding: Sequence[tuple[int, int]],
    dilation: Numbers,
) -> Array:
    """The sums of the blocks that overlap at each element of an image: the gradient of windows.

    Shapes: `x` [N, C * prod(block), prod(places)]; the result is [N, C, *image].
    """
    rank = len(image)
    reach = [(k - 1) * d + 1 for k, d in zip(block, dilation, strict=True)]
    rows = zip(image, padding, reach, stride, strict=True)
    places = [(extent + before + after - r) // s + 1 for extent, (before, after), r, s in rows]
    n, channels = x.shape[0], x.shape[1] // prod(block)
    parts = reshape(x, (n, channels, *block, *places))
    # Element k of the block at place p falls on p * stride + k * dilation. With zeros between the elements of blocks,
    # and k = t * stride + r, the image at c * stride + r is the sum over t of element (t, r) of the block at c - t.
    taps = [-(-r // s) for r, s in zip(reach, stride, strict=True)]
    spread = [t * s for t, s in zip(taps, stride, strict=True)]
    at = (..., *[slice(0, r, d) for r, d in zip(reach, dilation, strict=True)], *[slice(None)] * rank)
    blocks = assemble((n, channels, *spread, *places), [(at, parts)])
    padded = pad(blocks, [(0, 0)] * (2 + rank) + [(t - 1, t - 1) for t in taps])
    split = reshape(padded, (n, channels, *[e for pair in zip(taps, stride, strict=True) for e in pair],
                             *padded.shape[2 + rank :]))  # fmt: skip
    counts = [p + t - 1 for p, t in zip(places, taps, strict=True)]
    pairs = [e for pair in zip(counts, stride, strict=True) for e in pair]
    shape = (n, channels, *pairs, *taps)
    steps = [(var(2 + 2 * k), var(3 + 2 * k), var(2 + 2 * rank + k)) for k in range(rank)]
    index = [var(0), var(1), *[e for _, r, t in steps for e in (t, r)]]
    index += [c - t + (tap - 1) for (c, _, t), tap in zip(steps, taps, strict=True)]
    simple = [e.substitute({}, shape) for e in index]
    sums = sum(split.view(shape, simple), list(range(2 + 2 * rank, 2 + 3 * rank)))
    joined = reshape(sums, (n, channels, *[c * s for c, s in zip(counts, stride, strict=True)]))
    cuts = [(-before, before + extent - c * s) for extent, (before, _), c, s in
            zip(image, padding, counts, stride, strict=True)]  # fmt: skip
    return pad(joined, [(0, 0), (0, 0), *cuts])
