"""Images in other sizes, one axis after the other; PyTorch's decompositions read 4 or 16 neighbours for each result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx import GraphModule
from torch.nn.functional import interpolate
from torch.overrides import TorchFunctionMode

_CUBIC = -0.75
"""The parameter of PyTorch's cubic interpolation (Keys 1981)."""


def interpolate_by_axes(module: GraphModule) -> None:
    """Make linear and cubic interpolations of floats, in the graph that Dynamo captured, functions of single axes."""
    for node in module.graph.nodes:
        if node.op == "call_function" and node.target is interpolate:
            node.target = _interpolated
    module.recompile()


class ByAxes(TorchFunctionMode):
    """A context in which calls of `interpolate` are functions of single axes, while a module is traced."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """The result of a function of PyTorch."""
        return (_interpolated if func is interpolate else func)(*args, **(kwargs or {}))


def _interpolated(
    input: torch.Tensor,  # PyTorch's name
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> torch.Tensor:
    """PyTorch's `interpolate`, whose arguments these are."""
    of_axis = {"linear": _linear, "bilinear": _linear, "trilinear": _linear, "bicubic": _cubic}.get(mode)
    if of_axis is None or antialias or not input.is_floating_point() or input.device.type != "cpu":
        return interpolate(input, size, scale_factor, mode, align_corners, recompute_scale_factor, antialias)
    rank = input.dim() - 2
    extents = input.shape[2:]
    counts: list[Any]
    scales: Sequence[float | None] = [None] * rank
    if size is not None:
        counts = list(size) if isinstance(size, tuple | list) else [size] * rank
    else:
        factors = list(scale_factor) if isinstance(scale_factor, tuple | list) else [scale_factor] * rank
        counts = [
            extent * int(factor) if int(factor) == factor else torch.sym_int(extent * factor)
            for extent, factor in zip(extents, factors, strict=True)
        ]
        scales = scales if recompute_scale_factor else factors
    narrow = input.dtype in (torch.float16, torch.bfloat16)
    x = input.float() if narrow else input
    for axis in _order(extents, counts):
        extent, count, scale = extents[axis], counts[axis], scales[axis]
        numbers = torch.arange(count).to(x.dtype)
        if align_corners:
            places = numbers * ((extent - 1) / (count - 1) if count > 1 else 0.0)
        else:
            places = (numbers + 0.5) * (1 / scale if scale else extent / count) - 0.5
        x = of_axis(x, axis - rank, places)
    x = x.contiguous(memory_format=torch._prims_common.suggest_memory_format(input))
    return x.to(input.dtype)


def _order(extents: Sequence[Any], counts: Sequence[Any]) -> list[int]:
    """The axes: those first that shrink; of those that grow, the last one, whose elements are read one by one."""
    axes = range(len(counts))
    if not all(isinstance(each, int) for each in (*extents, *counts)):
        return list(reversed(axes))
    shrinking = [axis for axis in axes if counts[axis] < extents[axis]]
    return shrinking + [axis for axis in reversed(axes) if axis not in shrinking]


def _reader(x: torch.Tensor, axis: int) -> Callable[[torch.Tensor], torch.Tensor]:
    """A function that reads the elements at clamped positions along an axis."""
    before: list[torch.Tensor | None] = [None] * (x.dim() + axis)
    most = x.shape[axis] - 1
    return lambda at: torch.ops.aten._unsafe_index(x, [*before, at.clamp(0, most)])


def _linear(x: torch.Tensor, axis: int, places: torch.Tensor) -> torch.Tensor:
    places = places.clamp(min=0.0)
    first, read = places.to(torch.int64), _reader(x, axis)
    ratio = _along(axis, (places - first).clamp(0.0, 1.0))
    here = read(first)
    return here + (read(first + 1) - here) * ratio


def _cubic(x: torch.Tensor, axis: int, places: torch.Tensor) -> torch.Tensor:
    base, read, a = places.floor(), _reader(x, axis), _CUBIC
    ratio = (places - base).clamp(0.0, 1.0)

    def near(t: torch.Tensor) -> torch.Tensor:
        return ((a + 2) * t - (a + 3)) * t * t + 1

    def distant(t: torch.Tensor) -> torch.Tensor:
        return ((a * t - 5 * a) * t + 8 * a) * t - 4 * a

    factors = [distant(ratio + 1), near(ratio), near(1 - ratio), distant(2 - ratio)]
    first = base.to(torch.int64) - 1
    parts = [read(first + k) * _along(axis, factor) for k, factor in enumerate(factors)]
    return parts[0] + parts[1] + parts[2] + parts[3]


def _along(axis: int, values: torch.Tensor) -> torch.Tensor:
    """The values of an axis, counted from the end, in the shape that multiplies arrays."""
    return values.reshape(-1, *[1] * (-1 - axis))
