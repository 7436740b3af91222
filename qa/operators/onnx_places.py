"""Nodes of ONNX for indices, losses, quantised integers and optimisers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pdojo.model.element_types import numpy_type
from qa.operators.onnx_nodes import NODES
from qa.operators.peers import AbsentError, Node, Operand, peer

Places = NDArray[Any]
_REDUCTIONS = {None: "none", "+": "add", "*": "mul", "max": "max", "min": "min"}


def _check_outside(outside: str, *indices: Any) -> None:
    if outside == "clamp":
        raise AbsentError("an index outside of its axis is an error")
    if any(isinstance(each, Operand) and each.dtype not in ("i32", "i64") for each in indices):
        raise AbsentError("indices are of i32 or i64")


@peer(NODES, "take")
def _take(x: Operand, indices: Sequence[int] | Operand, axis: int = 0, *, outside: str = "wrap") -> Node:
    _check_outside(outside, indices)
    return Node("Gather", [x, indices if isinstance(indices, Operand) else np.array(indices, np.int64)], {"axis": axis})


@peer(NODES, "take_along")
def _take_along(x: Operand, places: Places | Operand, axis: int, *, outside: str = "wrap") -> Node:
    _check_outside(outside, places)
    return Node("GatherElements", [x, places], {"axis": axis})


@peer(NODES, "put_along")
def _put_along(
    x: Operand, places: Places | Operand, updates: Operand, axis: int, accumulation: str | None = None, *,
    outside: str = "wrap",
) -> Node:  # fmt: skip
    _check_outside(outside, places)
    return Node(
        "ScatterElements", [x, places, updates], {"axis": axis, "reduction": _REDUCTIONS[accumulation]}, opset=18
    )


def _tuples(indices: Sequence[Places | Operand | None]) -> tuple[Places, bool]:
    """The tuples of indices, and whether they are known."""
    columns = [each.values if isinstance(each, Operand) else each for each in indices if each is not None]
    if len(columns) < len(indices):
        raise AbsentError("indices are those of the first axes")
    is_known = not any(isinstance(each, Operand) for each in indices)
    return np.stack(np.broadcast_arrays(*columns), -1).astype(np.int64), is_known


@peer(NODES, "take_at")
def _take_at(x: Operand, indices: list[Places | Operand | None], *, outside: str = "wrap") -> Node:
    tuples, is_known = _tuples(indices)
    return Node("GatherND", [x, tuples if is_known else Operand(tuples, "i64")], opset=13)


@peer(NODES, "put_at")
def _put_at(
    x: Operand, indices: list[Places | Operand | None], values: Operand, accumulation: str | None = None, *,
    outside: str = "wrap",
) -> Node:  # fmt: skip
    tuples, is_known = _tuples(indices)
    if values.shape != (*tuples.shape[:-1], *x.shape[tuples.shape[-1] :]):
        raise AbsentError("updates do not broadcast")
    places = tuples if is_known else Operand(tuples, "i64")
    return Node("ScatterND", [x, places, values], {"reduction": _REDUCTIONS[accumulation]}, opset=18)


@peer(NODES, "one_hot")
def _one_hot(indices: Operand, depth: int, axis: int, on: Operand, off: Operand) -> Node:
    values = Operand(np.stack([off.values, on.values]), on.dtype)
    return Node("OneHot", [indices, np.array(depth), values], {"axis": axis}, opset=11)


@peer(NODES, "triangle")
def _triangle(x: Operand, diagonal: int | Operand = 0, *, upper: bool) -> Node:
    computed = isinstance(diagonal, Operand)
    k = Operand(diagonal.values.astype(np.int64), "i64") if computed else np.array(diagonal)
    return Node("Trilu", [x, k], {"upper": int(upper)}, opset=14)


@peer(NODES, "negative_likelihood")
def _negative_likelihood(
    x: Operand, classes: Operand, weights: Operand | None = None, axis: int = 1, *, ignored: int | None = None,
    reduction: str = "mean",
) -> Node:  # fmt: skip
    known = classes.values[classes.values != ignored]
    if axis != 1 or ((known < 0) | (known >= x.shape[axis])).any():
        raise AbsentError("classes are along axis 1, and in range")
    attributes = {"reduction": reduction} | ({} if ignored is None else {"ignore_index": ignored})
    inputs = [x, classes, *([] if weights is None else [weights])]
    return Node("NegativeLogLikelihoodLoss", inputs, attributes, opset=22, read=(0,))


@peer(NODES, "quantize")
def _quantize(x: Operand, scale: Operand, zero: Operand | None, dtype: str, computed: str) -> Node:
    if zero is None and dtype != "u8":
        raise AbsentError("without a zero point, results are of u8")
    return Node("QuantizeLinear", [x, scale, *([] if zero is None else [zero])], {"axis": -1}, opset=21)


@peer(NODES, "dequantize")
def _dequantize(x: Operand, scale: Operand, zero: Operand | None, computed: str) -> Node:
    return Node("DequantizeLinear", [x, scale, *([] if zero is None else [zero])], {"axis": -1}, opset=21)


@peer(NODES, "integer_matmul")
def _integer_matmul(a: Operand, b: Operand, a_zero: Operand | None = None, b_zero: Operand | None = None) -> Node:
    return Node("MatMulInteger", [a, b, a_zero, b_zero], opset=10)


@peer(NODES, "quantised_matmul")
def _quantised_matmul(*operands: Operand) -> Node:
    return Node("QLinearMatMul", operands, opset=10)


@peer(NODES, "quantize_by_range")
def _quantize_by_range(x: Operand) -> Node:
    return Node("DynamicQuantizeLinear", [x], outputs=3, opset=11)


_DOMAIN = "ai.onnx.preview.training"


@peer(NODES, "momentum")
def _momentum(
    x: Operand, gradient: Operand, velocity: Operand, *, rate: Operand, time: Operand, alpha: float, beta: float,
    penalty: float, nesterov: bool,
) -> Node:  # fmt: skip
    attributes: dict[str, Any] = {"alpha": alpha, "beta": beta, "norm_coefficient": penalty}
    attributes["mode"] = "nesterov" if nesterov else "standard"
    step = Operand(time.values.astype(np.int64), "i64")
    return Node("Momentum", [rate, step, x, gradient, velocity], attributes, 2, 1, _DOMAIN)


@peer(NODES, "pad")
def _pad(x: Operand, widths: Sequence[Sequence[int]], value: float = 0, mode: str = "constant") -> Node:
    ends = np.array([*[before for before, _ in widths], *[after for _, after in widths]], np.int64)
    known = [np.array(value).astype(numpy_type(x.dtype))] if mode == "constant" else []
    return Node("Pad", [x, ends, *known], {"mode": mode}, opset=21)


@peer(NODES, "tile")
def _tile(x: Operand, counts: Sequence[int]) -> Node:
    return Node("Tile", [x, np.array(counts, np.int64)], opset=13)


@peer(NODES, "concatenate")
def _concatenate(arrays: Sequence[Operand], axis: int = 0) -> Node:
    return Node("Concat", arrays, {"axis": axis}, opset=13)


@peer(NODES, "rotary_embedding")
def _rotary_embedding(x: Operand, cos: Operand, sin: Operand, *, interleaved: bool = False) -> Node:
    angles = [Operand(each.values[:, :, 0], each.dtype) for each in (cos, sin)]
    turned = Operand(x.values.reshape(*x.shape[:2], -1), x.dtype)
    if x.shape[3] % 2:
        raise AbsentError("all elements are pairs, or the rest is even")
    sizes = {"rotary_embedding_dim": 2 * cos.shape[-1] if 2 * cos.shape[-1] < x.shape[3] else 0}
    facts = {"interleaved": int(interleaved), "num_heads": x.shape[2], **sizes}
    return Node("RotaryEmbedding", [turned, *angles], facts, shapes=[x.shape])


_GATES = {"rnn": "h", "gru": "zrh", "lstm": "iofc"}


@peer(NODES, "recurrent_layer")
def _recurrent_layer(
    x: Operand, w: Operand, r: Operand, biases: Sequence[Operand] | None, states: Sequence[Operand] | None, *,
    kind: str, gates: str = "", peephole: Operand | None = None, lengths: Operand | None = None,
    backwards: bool = False, clip: float | None = None, coupled: bool = False, linear_before_reset: bool = False,
) -> Node:  # fmt: skip
    if gates not in ("", _GATES[kind]):
        raise AbsentError("its gates have one order")

    def with_direction(operand: Operand | None) -> Operand | None:
        return None if operand is None else Operand(operand.values[None], operand.dtype)

    both = None if biases is None else Operand(np.concatenate([each.values for each in biases]), x.dtype)
    first = [None] * (2 if kind == "lstm" else 1) if states is None else states
    weights = [*map(with_direction, (w, r, both)), lengths, *map(with_direction, first)]
    facts: dict[str, Any] = {"direction": "reverse" if backwards else "forward", "hidden_size": r.shape[1]}
    facts |= {} if clip is None else {"clip": clip}
    facts |= {"linear_before_reset": int(linear_before_reset)} if kind == "gru" else {}
    if kind == "lstm":
        weights, facts = [*weights, with_direction(peephole)], {**facts, "input_forget": int(coupled)}
    count, last = (3 if kind == "lstm" else 2), (x.shape[1], r.shape[1])
    return Node(kind.upper(), [x, *weights], facts, count, 22, shapes=[(x.shape[0], *last), last, last])


def _blocks(name: str) -> Callable[..., Node]:
    def node(x: Operand, size: int, *, depth_first: bool = True) -> Node:
        if name == "SpaceToDepth" and not depth_first:
            return Node(name, [x], {"blocksize": size, "mode": "CRD"}, opset=28)
        return Node(name, [x], {"blocksize": size, "mode": "DCR" if depth_first else "CRD"}, opset=13)

    return node


peer(NODES, "depth_to_space")(_blocks("DepthToSpace"))
peer(NODES, "space_to_depth")(_blocks("SpaceToDepth"))


@peer(NODES, "bitcast")
def _bitcast(x: Operand, dtype: str) -> Node:
    numbers = {"f32": 1, "i32": 6, "i64": 7, "f64": 11, "u32": 12}
    return Node("BitCast", [x], {"to": numbers[dtype]}, opset=26)


@peer(NODES, "write_sequences")
def _write_sequences(
    x: Operand, updates: Operand, starts: Sequence[int] | Operand, axis: int, *, circular: bool = False
) -> Node:
    mode = {"axis": axis, "mode": "circular" if circular else "linear"}
    first = starts if isinstance(starts, Operand) else np.array(starts, np.int64)
    return Node("TensorScatter", [x, updates, first], mode, opset=24)


@peer(NODES, "reverse_sequences")
def _reverse_sequences(x: Operand, lengths: Sequence[int], axis: int, batch: int) -> Node:
    axes = {"time_axis": axis, "batch_axis": batch}
    return Node("ReverseSequence", [x, np.array(lengths, np.int64)], axes, opset=10)


@peer(NODES, "transpose")
def _transpose(x: Operand, axes: Sequence[int] | None = None) -> Node:
    return Node("Transpose", [x], {} if axes is None else {"perm": [axis % x.rank for axis in axes]}, opset=13)


def _of_numbers(name: str) -> Callable[..., Node]:
    """The peer of a function of an array and known numbers."""

    def node(x: Operand, numbers: int | Sequence[int] | None = None) -> Node:
        known = [numbers] if isinstance(numbers, int) else numbers
        facts = {"allowzero": 1} if name == "Reshape" else {}
        return Node(name, [x, *([] if known is None else [np.array(known, np.int64)])], facts, opset=14)

    return node


peer(NODES, "reshape")(_of_numbers("Reshape"))
peer(NODES, "broadcast_to")(_of_numbers("Expand"))
peer(NODES, "expand_dims")(_of_numbers("Unsqueeze"))
peer(NODES, "squeeze")(_of_numbers("Squeeze"))


@peer(NODES, "split")
def _split(x: Operand, sizes: int | Sequence[int], axis: int = 0) -> Node:
    parts = [x.shape[axis] // sizes] * sizes if isinstance(sizes, int) else list(sizes)
    return Node("Split", [x, np.array(parts, np.int64)], {"axis": axis}, len(parts), 13)
