"""Calls of ATen that compute what operators of `pdojo.build` compute."""

from __future__ import annotations

from collections.abc import Sequence

from qa.operators.peers import AbsentError, Call, Operand, Table, peer

CALLS: Table = {}
Axes = int | Sequence[int] | None


def _dims(x: Operand, axis: Axes) -> list[int]:
    if axis == ():
        raise AbsentError("no axes are all axes")
    return list(range(x.rank)) if axis is None else [axis] if isinstance(axis, int) else list(axis)


def _last(x: Operand, axis: Axes) -> list[int]:
    """The extents of the last axes, if `axis` means them."""
    axes = sorted(d % x.rank for d in _dims(x, axis))
    if axes != list(range(x.rank - len(axes), x.rank)):
        raise AbsentError("it normalises the last axes")
    return [x.shape[d] for d in axes]


@peer(CALLS, "softmax")
def _softmax(x: Operand, axis: int = -1) -> Call:
    return Call("_softmax.default", [x, axis, False])


@peer(CALLS, "log_softmax")
def _log_softmax(x: Operand, axis: int = -1) -> Call:
    return Call("_log_softmax.default", [x, axis, False])


@peer(CALLS, "logsumexp")
def _logsumexp(x: Operand, axis: Axes = -1, *, keepdims: bool = False) -> Call:
    return Call("logsumexp.default", [x, _dims(x, axis), keepdims])


@peer(CALLS, "layer_norm", "layer_norm_with_statistics")
def _layer_norm(
    x: Operand, scale: Operand | None = None, shift: Operand | None = None, *, axis: Axes = -1, eps: float = 1e-5
) -> Call:
    shape = _last(x, axis)
    if any(each is not None and list(each.shape) != shape for each in (scale, shift)):
        raise AbsentError("scale and shift do not broadcast")
    return Call("native_layer_norm.default", [x, shape, scale, shift, eps])


@peer(CALLS, "rms_norm", "rms_norm_with_statistics")
def _rms_norm(x: Operand, scale: Operand | None = None, *, axis: Axes = -1, eps: float = 1e-5) -> Call:
    return Call("_fused_rms_norm.default", [x, _last(x, axis), scale, eps])


@peer(CALLS, "group_norm", "group_norm_with_statistics")
def _group_norm(
    x: Operand, groups: int, scale: Operand | None = None, shift: Operand | None = None, *, eps: float = 1e-5
) -> Call:
    size = x.values[0, 0].size
    return Call("native_group_norm.default", [x, scale, shift, *x.shape[:2], size, groups, eps])


@peer(CALLS, "batch_norm", "batch_norm_with_statistics")
def _batch_norm(
    x: Operand,
    scale: Operand | None = None,
    shift: Operand | None = None,
    *,
    statistics: tuple[Operand, Operand] | None = None,
    axis: int = 1,
    eps: float = 1e-5,
) -> Call:
    if axis % x.rank != 1:
        raise AbsentError("channels are along axis 1")
    if statistics is not None:
        given = [x, scale, shift, *statistics, 0.1, eps]
        return Call("_native_batch_norm_legit_no_training.default", given, read=(0,))
    return Call("_native_batch_norm_legit.no_stats", [x, scale, shift, True, 0.1, eps])


@peer(CALLS, "sum")
def _sum(x: Operand, axis: Axes = None, *, keepdims: bool = False) -> Call:
    return Call("sum.dim_IntList", [x, _dims(x, axis), keepdims])


@peer(CALLS, "var")
def _var(x: Operand, axis: Axes = None, *, correction: float = 0, keepdims: bool = False) -> Call:
    return Call("var.correction", [x, _dims(x, axis)], {"correction": correction, "keepdim": keepdims})
