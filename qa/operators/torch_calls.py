"""Calls of ATen that compute what operators of `pdojo.build` compute."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from qa.operators import scalar_peers
from qa.operators.peers import AbsentError, Call, ElementType, Operand, Table, peer

CALLS: Table = scalar_peers.calls()
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


@peer(CALLS, "safe_softmax")
def _safe_softmax(x: Operand, axis: int = -1) -> Call:
    return Call("_safe_softmax.default", [x, axis])


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


@peer(CALLS, "batch_norm_in_training")
def _batch_norm_in_training(*operands: Operand | None, momentum: float, unbiased: bool, eps: float = 1e-5) -> Call:
    if not unbiased:
        raise AbsentError("running variances are unbiased")
    return Call("_native_batch_norm_legit_functional.default", [*operands, True, momentum, eps])


def _reduction(name: str) -> Callable[..., Call]:
    """The peer of a reduction along several axes."""

    def call(x: Operand, axis: Axes = None, *, keepdims: bool = False) -> Call:
        return Call(name, [x, _dims(x, axis), keepdims])

    return call


for _name, _operator in {
    "sum": "sum.dim_IntList",
    "mean": "mean.dim",
    "max": "amax.default",
    "min": "amin.default",
    "any": "any.dims",
    "all": "all.dims",
}.items():
    peer(CALLS, _name)(_reduction(_operator))


@peer(CALLS, "prod")
def _prod(x: Operand, axis: Axes, *, keepdims: bool = False) -> Call:
    if not isinstance(axis, int):
        raise AbsentError("its product is along one axis")
    return Call("prod.dim_int", [x, axis, keepdims])


def _spread(name: str) -> Callable[..., Call]:
    def call(x: Operand, axis: Axes = None, *, correction: float = 0, keepdims: bool = False) -> Call:
        return Call(name, [x, _dims(x, axis)], {"correction": correction, "keepdim": keepdims})

    return call


for _name in ("var", "std", "var_mean"):
    peer(CALLS, _name)(_spread(f"{_name}.correction"))


@peer(CALLS, "argmax")
def _argmax(x: Operand, axis: int = -1, *, keepdims: bool = False) -> Call:
    return Call("max.dim", [x, axis, keepdims], read=(1,))


@peer(CALLS, "argmin")
def _argmin(x: Operand, axis: int = -1, *, keepdims: bool = False) -> Call:
    return Call("min.dim", [x, axis, keepdims], read=(1,))


@peer(CALLS, "cumulative")
def _cumulative(accumulation: str, x: Operand, axis: int = -1) -> Call:
    if accumulation in ("max", "min"):
        return Call(f"cum{accumulation}.default", [x, axis], read=(0,))
    return Call("cumsum.default" if accumulation == "+" else "cumprod.default", [x, axis])


@peer(CALLS, "cumulative_max")
def _cumulative_max(x: Operand, axis: int = -1) -> Call:
    return Call("cummax.default", [x, axis])


@peer(CALLS, "cumulative_min")
def _cumulative_min(x: Operand, axis: int = -1) -> Call:
    return Call("cummin.default", [x, axis])


@peer(CALLS, "norm")
def _norm(x: Operand, order: float = 2, axis: Axes = None, *, keepdims: bool = False) -> Call:
    return Call("linalg_vector_norm.default", [x, order, _dims(x, axis), keepdims])


@peer(CALLS, "distance")
def _distance(x: Operand, y: Operand, order: float = 2) -> Call:
    return Call("dist.default", [x, y, order])


@peer(CALLS, "distances")
def _distances(x: Operand, y: Operand, order: float = 2) -> Call:
    return Call("_cdist_forward.default", [x, y, order, None])


@peer(CALLS, "matmul")
def _matmul(a: Operand, b: Operand) -> Call:
    names = {(2, 2): "mm.default", (3, 3): "bmm.default", (2, 1): "mv.default", (1, 1): "dot.default"}
    if (a.rank, b.rank) not in names or (a.rank == 3 and a.shape[0] != b.shape[0]):
        raise AbsentError("its products do not broadcast")
    return Call(names[a.rank, b.rank], [a, b])


@peer(CALLS, "contract")
def _contract(subscripts: str, a: Operand, b: Operand) -> Call:
    if subscripts != "mk,kn->mn":
        raise AbsentError("ATen has no subscripts")
    return Call("mm.default", [a, b])


@peer(CALLS, "gemm")
def _gemm(a: Operand, b: Operand, c: Operand, *, alpha: float = 1, beta: float = 1) -> Call:
    return Call("addmm.default", [c, a, b], {"alpha": alpha, "beta": beta})


@peer(CALLS, "attention", "attention_with_statistics")
def _attention(
    q: Operand, k: Operand, v: Operand, *, mask: Operand | None = None, causal: bool = False, scale: float | None = None
) -> Call:
    if {q.rank, k.rank, v.rank} != {4} or k.shape[0] != q.shape[0] or v.shape[3] != q.shape[3]:
        raise AbsentError("it takes four dimensions, and values like keys")
    if mask is not None and mask.dtype != q.dtype:
        raise AbsentError("masks are of the type of queries")
    facts = {"attn_mask": mask, "scale": scale}
    return Call("_scaled_dot_product_flash_attention_for_cpu.default", [q, k, v, 0.0, causal], facts)


@peer(CALLS, "softmax_gradient")
def _softmax_gradient(y: Operand, gradient: Operand, axis: int = -1) -> Call:
    return Call("_softmax_backward_data.default", [gradient, y, axis, ElementType(y.dtype)])


@peer(CALLS, "log_softmax_gradient")
def _log_softmax_gradient(y: Operand, gradient: Operand, axis: int = -1) -> Call:
    return Call("_log_softmax_backward_data.default", [gradient, y, axis, ElementType(y.dtype)])


@peer(CALLS, "layer_norm_gradient")
def _layer_norm_gradient(
    x: Operand, gradient: Operand, average: Operand, inverse: Operand, scale: Operand | None = None, *, axis: Axes = -1
) -> Call:
    shape = _last(x, axis)
    last = [average, inverse, scale, None, [True, scale is not None, False]]
    read = (0,) if scale is None else (0, 1)
    return Call("native_layer_norm_backward.default", [gradient, x, shape, *last], read=read)


@peer(CALLS, "attention_gradient")
def _attention_gradient(
    q: Operand, k: Operand, v: Operand, gradient: Operand, result: Operand, logarithms: Operand, *,
    mask: Operand | None = None, causal: bool = False, scale: float | None = None,
) -> Call:  # fmt: skip
    given = [gradient, q, k, v, result, Operand(logarithms.values, "f64" if q.dtype == "f64" else "f32")]
    facts = {"attn_mask": mask, "scale": scale}
    return Call("_scaled_dot_product_flash_attention_for_cpu_backward.default", [*given, 0.0, causal], facts)


@peer(CALLS, "recurrent_layer")
def _recurrent_layer(
    x: Operand, w: Operand, r: Operand, biases: Sequence[Operand] | None, states: Sequence[Operand] | None, *,
    kind: str, gates: str = "", linear_before_reset: bool = False,
) -> Call:  # fmt: skip
    usual = {"rnn": "h", "gru": "rzh", "lstm": "ifco"}[kind]
    if (gates or "h") != usual or states is None or linear_before_reset != (kind == "gru"):
        raise AbsentError("gates are in its own order, and states given")
    name = "rnn_tanh" if kind == "rnn" else kind
    whole = [Operand(each.values[None], each.dtype) for each in states]
    weights = [w, r, *(biases or [])]
    last = (x.shape[1], r.shape[1])
    given = [x, whole, weights, biases is not None, 1, False, False]
    return Call(f"pdojo.{name}.default", given, shapes=[(x.shape[0], *last), last, last])


@peer(CALLS, "shift")
def _shift(sign: str, x: Operand, count: Operand | int) -> Call:
    name = "bitwise_left_shift" if sign == "<<" else "bitwise_right_shift"
    return Call(f"{name}.Tensor{'' if isinstance(count, Operand) else '_Scalar'}", [x, count])
