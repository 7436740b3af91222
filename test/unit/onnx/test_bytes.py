"""Products of dequantised bytes (QDQ) are computed from the bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="needs onnx")

from onnx import TensorProto, helper, numpy_helper

import pdojo
from pdojo import onnx
from pdojo.dialect.view.build import nest_of

RANDOM = np.random.default_rng(3)
_TYPES = {"u8": np.uint8, "i8": np.int8, "f32": np.float32}


def whole(dtype: str, *shape: int) -> Any:
    """Random bytes, or numbers."""
    if dtype == "f32":
        return RANDOM.standard_normal(shape).astype(np.float32)
    return RANDOM.integers(0 if dtype == "u8" else -128, 256 if dtype == "u8" else 128, shape).astype(_TYPES[dtype])


def model(
    op: str, x: Any, known: dict[str, Any], axes: tuple[int, int], result: Sequence[int], **attributes: Any
) -> onnx.OnnxModel:
    """A product of dequantised `x` and `w`; `known` has w, scales (xs, ws), zero points (xz, wz), and perhaps b."""
    last = ["b"] if "b" in known else []
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "xs", "xz"], ["xf"], axis=axes[0]),
        helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["wf"], axis=axes[1]),
        helper.make_node(op, ["xf", "wf", *last], ["y"], **attributes),
    ]
    kind = {np.dtype(np.uint8): TensorProto.UINT8, np.dtype(np.int8): TensorProto.INT8}[x.dtype]
    graph = helper.make_graph(
        nodes,
        "bytes",
        [helper.make_tensor_value_info("x", kind, x.shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, result)],
        [numpy_helper.from_array(value, name) for name, value in known.items()],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    made.ir_version = 8
    return onnx.load(made)


def along(values: Any, rank: int, axis: int) -> Any:
    return values.astype(np.float64).reshape([-1 if d == axis % rank else 1 for d in range(rank)])


def factors(x: Any, known: dict[str, Any], axes: tuple[int, int]) -> tuple[Any, Any]:
    """Both factors, dequantised in f64."""
    w, a, b = known["w"], axes[0], axes[1]
    left = (x - along(known["xz"], x.ndim, a)) * along(known["xs"], x.ndim, a)
    return left, (w - along(known["wz"], w.ndim, b)) * along(known["ws"], w.ndim, b)


def multiplies_integers(kernel: Any) -> bool:
    """Whether a kernel adds up products of integers."""
    leaves = nest_of(kernel).leaves
    return any(
        leaf.accumulate is not None and leaf.output.array.dtype == "i32" and len(leaf.reads) == 2 for leaf in leaves
    )


def check(made: onnx.OnnxModel, x: Any, wanted: Any, *, of_bytes: bool = True) -> None:
    compiled = made.compile()
    found = np.asarray(compiled(x=pdojo.aligned(x)))
    np.testing.assert_allclose(found, wanted, rtol=2e-6, atol=2e-6 * np.abs(wanted).max())
    kernels = [each.kernel for each in compiled.prepare(x=x)[0].model.steps]
    assert any(map(multiplies_integers, kernels)) == of_bytes


@pytest.mark.parametrize(("x_type", "w_type"), [("u8", "i8"), ("i8", "i8"), ("u8", "u8"), ("i8", "u8")])
@pytest.mark.parametrize("each", [False, True])
def test_products_of_matrices(x_type: str, w_type: str, each: bool) -> None:
    x = whole(x_type, 5, 18)
    count = 7 if each else 1
    known = {
        "w": whole(w_type, 18, 7),
        "xs": np.asarray(np.float32(0.25)),
        "xz": whole(x_type, 1).reshape(()),
        "ws": RANDOM.uniform(0.5, 2, count).astype(np.float32),
        "wz": whole(w_type, count),
    }
    if not each:
        known |= {name: known[name].reshape(()) for name in ("ws", "wz")}
    left, right = factors(x, known, (1, 1))
    check(model("MatMul", x, known, (1, 1), (5, 7)), x, left @ right)


@pytest.mark.parametrize("transposed", [0, 1])
def test_linear_layers(transposed: int) -> None:
    x, outputs = whole("u8", 3, 12), 6
    known = {
        "w": whole("i8", *((outputs, 12) if transposed else (12, outputs))),
        "xs": np.float32(0.5),
        "xz": np.uint8(9),
        "ws": RANDOM.uniform(0.5, 2, outputs).astype(np.float32),
        "wz": np.zeros(outputs, np.int8),
        "b": whole("f32", outputs),
    }
    known = {name: np.asarray(value) for name, value in known.items()}
    axes = (1, 0 if transposed else 1)
    left, right = factors(x, known, axes)
    wanted = left @ (right.T if transposed else right) + known["b"]
    check(model("Gemm", x, known, axes, (3, outputs), transB=transposed), x, wanted)


@pytest.mark.parametrize(("channels", "stride"), [(3, 2), (8, 1)])
def test_convolutions(channels: int, stride: int) -> None:
    """Elements of the border are 0, whatever the zero point."""
    x = whole("u8", 2, channels, 6, 7)
    known = {
        "w": whole("i8", 5, channels, 3, 3),
        "xs": np.asarray(np.float32(0.5)),
        "xz": np.asarray(np.uint8(77)),
        "ws": RANDOM.uniform(0.5, 2, 5).astype(np.float32),
        "wz": whole("i8", 5),
        "b": whole("f32", 5),
    }
    left, right = factors(x, known, (1, 0))
    padded = np.pad(left, [(0, 0), (0, 0), (1, 1), (1, 1)])
    seen = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))[:, :, ::stride, ::stride]
    wanted = np.einsum("nchwij,ocij->nohw", seen, right) + known["b"].reshape(-1, 1, 1)
    made = model("Conv", x, known, (1, 0), wanted.shape, pads=[1, 1, 1, 1], strides=[stride, stride])
    check(made, x, wanted)


def test_scales_by_channel_of_the_input_are_left_as_they_are() -> None:
    """Terms of one sum have different scales."""
    x = whole("u8", 4, 6)
    known = {
        "w": whole("i8", 6, 3),
        "xs": RANDOM.uniform(0.5, 2, 6).astype(np.float32),
        "xz": np.zeros(6, np.uint8),
        "ws": np.asarray(np.float32(0.5)),
        "wz": np.asarray(np.int8(0)),
    }
    left, right = factors(x, known, (1, 1))
    check(model("MatMul", x, known, (1, 1), (4, 3)), x, left @ right, of_bytes=False)


def test_scales_by_term_of_the_weights_are_left_as_they_are() -> None:
    x = whole("u8", 4, 6)
    known = {
        "w": whole("i8", 6, 3),
        "xs": np.asarray(np.float32(0.5)),
        "xz": np.asarray(np.uint8(3)),
        "ws": RANDOM.uniform(0.5, 2, 6).astype(np.float32),
        "wz": np.zeros(6, np.int8),
    }
    left, right = factors(x, known, (1, 0))
    check(model("MatMul", x, known, (1, 0), (4, 3)), x, left @ right, of_bytes=False)


@pytest.mark.parametrize("op", ["MatMul", "Gemm"])
@pytest.mark.parametrize("block", [0, 32])
def test_bytes_of_weights_are_expanded_in_kernels(op: str, block: int) -> None:
    """The factor is dequantised alone: the kernel gets its bytes."""
    rows, terms, outputs = 3, 192, 128
    x, transposed = whole("f32", rows, terms), op == "Gemm"
    w = whole("i8", *((outputs, terms) if transposed else (terms, outputs)))
    axis = (1 if transposed else 0) if block else (0 if transposed else 1)
    places = [n // block if block and d == axis else n for d, n in enumerate(w.shape)] if block else [outputs]
    known = {"w": w, "ws": RANDOM.uniform(0.5, 2, places).astype(np.float32), "wz": whole("i8", *places)}
    if transposed:
        known["b"] = whole("f32", outputs)
    attributes: dict[str, Any] = {"axis": axis, "block_size": block} if block else {"axis": axis}
    further: dict[str, Any] = {"transB": 1} if transposed else {}
    graph = helper.make_graph(
        [
            helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["wf"], **attributes),
            helper.make_node(op, ["x", "wf", *(["b"] if transposed else [])], ["y"], **further),
        ],
        "weights",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (rows, outputs))],
        [numpy_helper.from_array(value, name) for name, value in known.items()],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
    made.ir_version = 10
    scales, zeros = (np.repeat(v, block, axis) if block else along(v, 2, axis) for v in (known["ws"], known["wz"]))
    wide = (w.astype(np.float64) - zeros) * scales
    wanted = x @ (wide.T if transposed else wide) + known.get("b", 0)
    compiled = onnx.load(made).compile()
    found = np.asarray(compiled(x=pdojo.aligned(x)))
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5 * np.abs(wanted).max())
    arrays = nest_of(compiled.prepare(x=x)[0].model.steps[0].kernel).arrays.values()
    assert [each.dtype for each in arrays if each.intent is not None].count("i8") == 2


@pytest.mark.parametrize("channels", [4, 6])
def test_convolutions_by_channels_and_what_follows_stay_bytes(channels: int) -> None:
    """Convolutions, residuals and pools of a quantised model; each number may be rounded once differently."""
    x = whole("u8", 2, channels, 9, 8)
    known: dict[str, Any] = {"xs": np.asarray(np.float32(0.5)), "xz": np.asarray(np.uint8(120))}
    nodes, last = [helper.make_node("DequantizeLinear", ["x", "xs", "xz"], ["x0"])], "x0"
    values, step = (x.astype(np.float64) - 120) * 0.5, float(np.float32(0.7654))
    for number, (groups, k) in enumerate([(1, 3), (8, 3), (1, 1)]):
        inputs = channels if number == 0 else 8
        w, scale = whole("i8", 8, inputs // groups, k, k), np.float32(0.0113 / k)
        known |= {f"w{number}": w, f"ws{number}": np.asarray(scale), f"wz{number}": np.asarray(np.int8(0))}
        known |= {f"ys{number}": np.asarray(np.float32(step)), f"yz{number}": np.asarray(np.uint8(100))}
        y, pads = f"y{number}", [k // 2] * 4
        nodes += [
            helper.make_node("DequantizeLinear", [f"w{number}", f"ws{number}", f"wz{number}"], [f"wf{number}"]),
            helper.make_node("Conv", [last, f"wf{number}"], [y], pads=pads, group=groups),
            helper.make_node("QuantizeLinear", [y, f"ys{number}", f"yz{number}"], [f"{y}q"]),
            helper.make_node("DequantizeLinear", [f"{y}q", f"ys{number}", f"yz{number}"], [f"{y}d"]),
        ]
        padded = np.pad(values, [(0, 0), (0, 0), (k // 2, k // 2), (k // 2, k // 2)])
        seen = np.lib.stride_tricks.sliding_window_view(padded, (k, k), (2, 3))
        wide = w.astype(np.float64) * float(scale)
        parts = np.split(seen, groups, 1)
        values = np.concatenate(
            [np.einsum("nchwij,ocij->nohw", p, q) for p, q in zip(parts, np.split(wide, groups), strict=True)], 1
        )
        values = (np.clip(np.rint(values / step) + 100, 0, 255) - 100) * step
        last = f"{y}d"
    graph = helper.make_graph(
        nodes,
        "chain",
        [helper.make_tensor_value_info("x", TensorProto.UINT8, x.shape)],
        [helper.make_tensor_value_info(last, TensorProto.FLOAT, values.shape)],
        [numpy_helper.from_array(value, name) for name, value in known.items()],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    made.ir_version = 8
    compiled = onnx.load(made).compile()
    found = np.asarray(compiled(x=pdojo.aligned(x)))
    assert np.mean(np.abs(found - values) > step / 2) < 0.001
    assert np.abs(found - values).max() < 2 * step
    outputs = [step.outputs[0] for step in compiled.prepare(x=x)[0].model.steps]
    assert any(each.plain is not None for each in outputs)
