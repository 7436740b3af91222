"""Padding of windows over the spatial axes of images [N, C, *spatial]."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from pdojo.onnx.operators.registry import Node

Ends: TypeAlias = list[tuple[int, int]]
"""Elements before and after each spatial axis; negative ones cut."""


def per_axis(node: Node, name: str, rank: int, default: int = 1) -> list[int]:
    """An attribute with a number for each spatial axis."""
    found = node.attribute(name)
    if not found:
        return [default] * rank
    if len(found) != rank:
        node.refuse(f"attribute '{name}' has {len(found)} numbers for {rank} spatial axes")
    return list(found)


def explicit(node: Node, rank: int) -> Ends:
    """The padding of the attribute `pads`."""
    pads = per_axis(node, "pads", 2 * rank, 0)
    return list(zip(pads[:rank], pads[rank:], strict=True))


def halves(node: Node, total: int) -> tuple[int, int]:
    """A number of elements, divided between both ends as `auto_pad` says."""
    small, large = total // 2, total - total // 2
    return (small, large) if node.attribute("auto_pad") == "SAME_UPPER" else (large, small)


def auto_pad(node: Node) -> str:
    """The kind of padding that the attribute of this name says."""
    return node.choice("auto_pad", ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID", "")) or "NOTSET"


def padding(node: Node, extents: Sequence[int], window: Sequence[int], strides: Sequence[int]) -> Ends:
    """The padding that `pads` or `auto_pad` gives, for windows that reach over `window` elements."""
    match auto_pad(node):
        case "NOTSET":
            return explicit(node, len(extents))
        case "VALID":
            return [(0, 0)] * len(extents)
        case _:
            rows = zip(extents, window, strides, strict=True)
            return [halves(node, max(0, (-(-extent // s) - 1) * s + k - extent)) for extent, k, s in rows]
