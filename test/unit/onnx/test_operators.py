"""Lowerings of ONNX operators where ONNX's own suite has no test: element types, odd attributes, refusals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import pytest
from numpy.typing import DTypeLike, NDArray

from pdojo import build
from pdojo.dialect.notation import print_notation
from pdojo.dialect.semantics.interpreter import interpret
from pdojo.model.element_types import element_type, memory_of, numpy_type

pytest.importorskip("onnx", reason="pdojo.onnx needs the package onnx")

from pdojo.onnx.operators.registry import NeedsValue, Node, UnsupportedNode, lowering_of

Values: TypeAlias = NDArray[Any]


def lowered(
    operator: str, operands: Sequence[Values | None], known: Sequence[int] = (), results: int = 1, **attributes: Any
) -> tuple[list[Any], dict[build.Array, Values]]:
    """The results of a node, and the values of the inputs of its kernel; `known` are operands of known value."""
    opset, domain = attributes.pop("opset", 23), attributes.pop("domain", "")
    given: dict[build.Array, Values] = {}
    inputs: list[build.Array | Values | None] = []
    for k, value in enumerate(operands):
        if value is None or k in known:
            inputs.append(value)
            continue
        inputs.append(handle := build.input(f"x{k}", element_type(value.dtype), value.shape))
        given[handle] = value
    names = tuple(f"y{k}" for k in range(results))
    node = Node(operator, domain, "n", opset, tuple(inputs), names, attributes)
    lowering = lowering_of(operator, domain, opset)
    assert lowering is not None, operator
    made: Any = lowering(node)
    for k, handle in node.constants.items():
        value = node.inputs[k]
        assert isinstance(value, np.ndarray)
        given[handle] = value
    return [made] if isinstance(made, build.Array | np.ndarray) else [*made], given


def run(
    operator: str, operands: Sequence[Values | None], known: Sequence[int] = (), results: int = 1, **attributes: Any
) -> list[Values]:
    """The results of a node, by the reference interpreter."""
    found, given = lowered(operator, operands, known, results, **attributes)
    kernel = build.kernel("made", list(given), {f"y{k}": each for k, each in enumerate(found)})
    names = [name.data for name in kernel.arg_names]
    memory = {name: memory_of(value) for name, value in zip(names, given.values(), strict=False)}
    values = interpret(kernel, memory)
    return [values[f"y{k}"].view(numpy_type(each.dtype)) for k, each in enumerate(found)]


def random(*shape: int, dtype: DTypeLike = np.float32) -> Values:
    """Random numbers of any sign."""
    return np.asarray(np.random.default_rng(7).normal(size=shape)).astype(dtype)


def test_unsigned_elements() -> None:
    x, y = np.array([200, 7, 255], np.uint8), np.array([3, 250, 255], np.uint8)
    np.testing.assert_array_equal(run("Div", [x, y])[0], x // y)
    np.testing.assert_array_equal(run("Mod", [x, y])[0], x % y)
    np.testing.assert_array_equal(run("BitwiseNot", [x])[0], ~x)
    np.testing.assert_array_equal(run("Max", [x, y])[0], np.maximum(x, y))
    assert run("ArgMax", [x, None], axis=0)[0] == 2
    values, indices = run("TopK", [x, np.array([2])], [1], results=2)
    assert (values.tolist(), indices.tolist()) == ([255, 200], [2, 0])


def test_remainders_have_the_sign_of_the_divisor() -> None:
    x, y = np.array([-4.0, 4.0, -3.0, np.inf]), np.array([2.0, -2.0, np.inf, 2.0])
    with np.errstate(invalid="ignore"):
        wanted = np.mod(x, y)
    found = run("Mod", [x, y])[0]
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(np.signbit(found[:3]), np.signbit(wanted[:3]))


@pytest.mark.parametrize("axes", [{"opset": 11, "axes": (1,)}, {"opset": 18}])
def test_axes_are_an_attribute_or_an_operand(axes: dict[str, Any]) -> None:
    x = random(3, 4)
    operands = [x] if "axes" in axes else [x, np.array([1])]
    for name, wanted in (("ReduceMean", x.mean(1)), ("ReduceL2", np.sqrt((x * x).sum(1)))):
        np.testing.assert_allclose(run(name, operands, [1], keepdims=0, **axes)[0], wanted, rtol=1e-5)


def test_slices_with_ends_beyond_the_axis() -> None:
    x = random(5, 4)
    least, most = -(1 << 63), (1 << 63) - 1
    slices = {
        **{(most, least, -1): slice(None, None, -1), (4, least, -2): slice(4, None, -2), (-9, 2, 1): slice(0, 2)},
        **{(least, most, 3): slice(0, 5, 3), (2, -9, 1): slice(0, 0)},
        # A start is moved into the axis, where NumPy has no elements.
        (-9, least, -1): slice(0, 1),
    }
    for (start, end, step), wanted in slices.items():
        operands = [x, *[np.array([value]) for value in (start, end, 0, step)]]
        (found,), _ = lowered("Slice", operands, [1, 2, 3, 4])
        assert found.shape == x[wanted].shape, (start, end, step)
        if found.size:
            np.testing.assert_array_equal(run("Slice", operands, [1, 2, 3, 4])[0], x[wanted])


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_many_indices_of_a_short_axis(axis: int) -> None:
    x = random(4, 5, 3)
    shape = [70, 70, 3]
    shape[axis] = 1500
    shape = [min(a, b) if d != axis % 3 else a for d, (a, b) in enumerate(zip(shape, x.shape, strict=True))]
    indices = np.random.default_rng(1).integers(-x.shape[axis], x.shape[axis], shape)
    assert indices.size > 4096
    np.testing.assert_array_equal(run("GatherElements", [x, indices], axis=axis)[0],
                                  np.take_along_axis(x, indices, axis))  # fmt: skip


def test_signals_without_a_last_axis_are_real() -> None:
    """ONNX's definition has signals [batch, length, 1]; exporters also write [batch, length]."""
    x, window = random(2, 32), random(8)
    operands = [np.array(4), window]
    (plain,) = run("STFT", [x, *operands], [1])
    (spelled,) = run("STFT", [x[..., None], *operands], [1])
    np.testing.assert_array_equal(plain, spelled)
    frames = np.lib.stride_tricks.sliding_window_view(x, 8, 1)[:, ::4] * window
    wanted = np.fft.rfft(frames)
    np.testing.assert_allclose(plain, np.stack([wanted.real, wanted.imag], -1), rtol=1e-4, atol=1e-4)


def test_repeated_indices_are_views() -> None:
    x = random(3, 4)
    (found,), given = lowered("Gather", [x, np.array([0, 0, 1, 1, 2, 2])], [1])
    text = print_notation(build.kernel("made", list(given), [found]))
    assert sum(" = " in line for line in text.splitlines()) == 1


def test_activations_of_recurrences_take_their_parameters_in_order() -> None:
    x, w, r = random(2, 1, 3), random(1, 6, 3), random(1, 6, 2)
    plain = run("GRU", [x, w, r], hidden_size=2)[0]
    named = run("GRU", [x, w, r], hidden_size=2, activations=("HardSigmoid", "ScaledTanh"),
                activation_alpha=(0.3, 1.0), activation_beta=(0.4, 1.0))[0]  # fmt: skip
    gates = np.clip(0.3 * (x[0] @ w[0, :4].T) + 0.4, 0, 1)
    first = (1 - gates[:, :2]) * np.tanh(x[0] @ w[0, 4:].T)
    np.testing.assert_allclose(named[0, 0], first, rtol=1e-5)
    assert not np.allclose(plain, named)


REFUSALS: dict[str, tuple[str, Sequence[Values | None], Sequence[int], dict[str, Any]]] = {
    "kernels have no elements of TensorProto type 17": ("Cast", [random(2)], (), {"to": 17}),
    "'UP' is no direction of a shift": ("BitShift", [np.array([1]), np.array([1])], (), {"direction": "UP"}),
    "axis 2 is out of bounds for 2 dimensions": ("Softmax", [random(2, 2)], (), {"axis": 2}),
    "random numbers": ("Dropout", [random(2), np.array(0.5), np.array(True)], (1, 2), {}),
    "'Sine' is no activation": (
        "RNN", [random(1, 1, 1), random(1, 1, 1), random(1, 1, 1)], (), {"activations": ("Sine",)},
    ),
    "activation 'Affine' has no alpha": (
        "RNN", [random(1, 1, 1), random(1, 1, 1), random(1, 1, 1)], (), {"activations": ("Affine",)},
    ),
    "sampling_ratio": ("RoiAlign", [random(1, 1, 2, 2), random(1, 4), np.array([0])], (2,), {}),
    r"\[batch, length, 1 or 2\], not \[2, 8, 3\]": ("STFT", [random(2, 8, 3), np.array(4), random(4)], (1,), {}),
    "up to 6 rows": ("Det", [random(7, 7)], (), {}),
}  # fmt: skip


@pytest.mark.parametrize("reason", REFUSALS)
def test_refusals_name_node_operator_and_reason(reason: str) -> None:
    operator, operands, known, attributes = REFUSALS[reason]
    with pytest.raises(UnsupportedNode, match=reason) as raised:
        lowered(operator, operands, known, **attributes)
    assert f"node 'n' ({operator})" in str(raised.value)


def test_values_that_lowerings_need() -> None:
    with pytest.raises(NeedsValue) as raised:
        lowered("Compress", [random(3), np.array([1, 0, 1], bool)])
    assert raised.value.operand == 1
