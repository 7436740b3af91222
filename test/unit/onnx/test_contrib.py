"""Quantised operators of ONNX Runtime's domain, beside ONNX Runtime."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="needs onnx")
pytest.importorskip("onnxruntime", reason="needs onnxruntime")

from onnx import TensorProto, helper, numpy_helper

import pdojo
from beside_runtime import SEEDS, TYPES, Draw, check, node_model
from pdojo import onnx
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.view.build import nest_of
from pdojo.passes.scheduled_kernel import PASS, assume_alignment, make_moves


def quantised(draw: Draw, dtype: str, shape: Sequence[int]) -> list[Any]:
    return [draw.bytes(dtype, *shape), draw.scale(), draw.zero(dtype)]


@pytest.mark.parametrize("op", ["QLinearAdd", "QLinearMul"])
@pytest.mark.parametrize("seed", SEEDS)
def test_sums_and_products_of_elements(op: str, seed: int) -> None:
    draw = Draw(seed)
    dtype, shape = draw.among("u8", "i8"), draw.extents(3)
    other = draw.among(shape, shape[1:], (), tuple(1 if draw.flip() else each for each in shape))
    # ONNX Runtime 1.32 infers no type if one of these zero points is absent.
    points = [[draw.scale(), draw.bytes(dtype)] for _ in range(2)]
    operands = [draw.bytes(dtype, *shape), *points[0], draw.bytes(dtype, *other), *points[1]]
    check(draw, op, [*operands, draw.scale() * np.float32(2), draw.zero(dtype)])


@pytest.mark.parametrize("op", ["QLinearSigmoid", "QLinearLeakyRelu"])
@pytest.mark.parametrize("seed", SEEDS)
def test_functions_of_elements(op: str, seed: int) -> None:
    draw = Draw(seed)
    dtype = draw.among("u8", "i8")
    attributes = {"alpha": 0.3} if op == "QLinearLeakyRelu" and draw.flip() else {}
    # ONNX Runtime 1.32 aborts if the last zero point is absent.
    operands = [*quantised(draw, dtype, draw.extents(3)), draw.scale(), draw.bytes(dtype)]
    check(draw, op, operands, fixed=range(1, 5), attributes=attributes)


@pytest.mark.parametrize("seed", range(10))
def test_softmax(seed: int) -> None:
    draw = Draw(seed)
    dtype, opset = draw.among("u8", "i8"), draw.among(12, 13)
    last = [np.float32(1 / 256).reshape(()), np.asarray(0 if dtype == "u8" else -128, TYPES[dtype])]
    attributes = {"axis": int(draw.random.integers(-3, 3))} if draw.flip() else {}
    check(
        draw,
        "QLinearSoftmax",
        [*quantised(draw, dtype, draw.extents(3)), *last],
        attributes={"opset": opset, **attributes},
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_choices(seed: int) -> None:
    draw = Draw(seed)
    dtype, shape = draw.among("u8", "i8"), draw.extents(3)
    arrays = [[draw.bytes(dtype, *shape), draw.scale(), draw.bytes(dtype)] for _ in range(2)]
    last = [draw.scale(), draw.bytes(dtype)]
    condition = draw.random.random(shape[1:]) < 0.5
    check(draw, "QLinearWhere", [condition, *arrays[0], *arrays[1], *last], fixed=range(1, 9))


@pytest.mark.parametrize("seed", range(8))
def test_means_of_windows(seed: int) -> None:
    draw = Draw(seed)
    dtype, last = draw.among("u8", "i8"), draw.flip()
    attributes: dict[str, Any] = {"kernel_shape": [2, 3], "count_include_pad": int(draw.flip())}
    if draw.flip():
        attributes["strides"] = [2, 1]
    if draw.flip():
        attributes["pads"] = [1, 0, 1, 2]
    elif draw.flip():
        attributes["auto_pad"] = draw.among("SAME_UPPER", "SAME_LOWER", "VALID")
    images = (2, 6, 7, 4) if last else (2, 4, 6, 7)
    # ONNX Runtime 1.32 infers no type if the first zero point is absent.
    operands = [draw.bytes(dtype, *images), draw.scale(), draw.bytes(dtype), draw.scale(), draw.zero(dtype)]
    check(draw, "QLinearAveragePool", operands, attributes={"channels_last": int(last), **attributes})


@pytest.mark.parametrize("seed", SEEDS)
def test_means_of_channels(seed: int) -> None:
    draw = Draw(seed)
    dtype, shape = draw.among("u8", "i8"), draw.extents(4)
    operands = [draw.bytes(dtype, *shape), draw.scale(), draw.bytes(dtype), draw.scale(), draw.bytes(dtype)]
    check(draw, "QLinearGlobalAveragePool", operands, attributes={"channels_last": int(draw.flip())})


@pytest.mark.parametrize("seed", SEEDS)
def test_greatest_of_windows(seed: int) -> None:
    draw = Draw(seed)
    attributes = {"kernel_shape": [2, 3], "strides": [2, 1], "pads": [1, 1, 0, 1]}
    check(draw, "NhwcMaxPool", [draw.bytes(draw.among("u8", "i8"), 2, 5, 6, 3)], attributes=attributes)


@pytest.mark.parametrize("seed", SEEDS)
def test_arrays_side_by_side(seed: int) -> None:
    draw = Draw(seed)
    dtype, axis = draw.among("u8", "i8"), int(draw.random.integers(-3, 3))
    operands = [draw.scale(), draw.bytes(dtype)]
    for number in range(3):
        shape = [3, 4, 5]
        shape[axis] += number
        points = operands[:2] if number == 1 else [draw.scale(), draw.bytes(dtype)]
        operands += [draw.bytes(dtype, *shape), *points]
    check(
        draw, "QLinearConcat", operands, fixed=[n for n in range(11) if n < 2 or n % 3 != 2], attributes={"axis": axis}
    )


@pytest.mark.parametrize("seed", range(8))
def test_convolutions(seed: int) -> None:
    draw = Draw(seed)
    x_type, w_type = draw.among(("u8", "u8"), ("u8", "i8"), ("i8", "i8"))
    last, groups, outputs = draw.flip(), draw.among(1, 2), 6
    points = (outputs,) if draw.flip() else ()
    zeros = np.zeros(points, TYPES[w_type]) if points and w_type == "i8" else draw.bytes(w_type, *[1] * len(points))
    zeros = np.broadcast_to(zeros, points).copy()
    bias = draw.integers(-1000, 1000, outputs) if draw.flip() else None
    operands = [
        *(draw.bytes(x_type, *((2, 6, 7, 4) if last else (2, 4, 6, 7))), draw.scale(), draw.bytes(x_type)),
        *(draw.bytes(w_type, outputs, 4 // groups, 3, 2), draw.scale(*points), zeros),
        *(np.float32(1.5).reshape(()), draw.bytes(x_type), bias),
    ]
    attributes = {"group": groups, "pads": [1, 0, 1, 1], "strides": [2, 1], "channels_last": int(last)}
    check(draw, "QLinearConv", operands, fixed=range(1, 9), attributes=attributes)


def matrices(draw: Draw) -> tuple[str, tuple[int, ...], tuple[int, int], tuple[int, ...]]:
    """The type of the second matrix, both shapes, and the shape of its scales."""
    rows, terms, columns = draw.extents(3, 40)
    shape = draw.among((rows, terms), (2, rows, terms))
    return draw.among("u8", "i8"), shape, (terms, columns), draw.among((), (columns,))


@pytest.mark.parametrize("seed", range(8))
def test_integers_to_numbers(seed: int) -> None:
    draw = Draw(seed)
    kind, shape, other, points = matrices(draw)
    dtype = "u8" if kind == "u8" else draw.among("u8", "i8")
    bias = draw.numbers(other[1]) if draw.flip() else None
    operands = [draw.bytes(dtype, *shape), draw.bytes(kind, *other), draw.scale(), draw.scale(*points)]
    check(draw, "MatMulIntegerToFloat", [*operands, draw.zero(dtype), draw.zero(kind, *points), bias])


@pytest.mark.parametrize("seed", range(8))
def test_products_with_dynamic_ranges(seed: int) -> None:
    draw = Draw(seed)
    kind, shape, other, points = matrices(draw)
    bias = draw.numbers(other[1]) if draw.flip() else None
    x = draw.numbers(*shape) if seed else np.zeros(shape, np.float32)
    operands = [x, draw.bytes(kind, *other), draw.scale(*points), draw.zero(kind, *points), bias]
    # An element at a tie, quantised to the other side, is half a step of the range.
    check(draw, "DynamicQuantizeMatMul", operands, rtol=2e-4, fixed=[1, 2, 3])


@pytest.mark.parametrize("seed", range(8))
def test_linear_layers_of_integers(seed: int) -> None:
    draw = Draw(seed)
    (rows, terms, columns), kind, result = draw.extents(3, 40), draw.among("u8", "i8"), draw.flip()
    turned, points = [int(draw.flip()) for _ in range(2)], draw.among((), (columns,))
    dtype = "u8" if kind == "u8" else draw.among("u8", "i8")
    bias = draw.integers(-1000, 1000, *draw.among((columns,), (rows, columns)))
    operands = [
        *(draw.bytes(dtype, *((terms, rows) if turned[0] else (rows, terms))), draw.scale(), draw.bytes(dtype)),
        *(draw.bytes(kind, *((columns, terms) if turned[1] else (terms, columns))), draw.scale(*points)),
        *(draw.bytes(kind, *points), bias if draw.flip() else None),
        *((np.float32(2).reshape(()), draw.bytes(dtype)) if result else ()),
    ]
    check(
        draw, "QGemm", operands, fixed=range(1, 9), attributes={"transA": turned[0], "transB": turned[1], "alpha": 0.5}
    )


@pytest.mark.parametrize("seed", range(12))
def test_products_with_packed_bits(seed: int) -> None:
    draw = Draw(seed)
    bits, size = draw.among(4, 8), draw.among(16, 32, 64)
    rows, columns, terms = int(draw.random.integers(1, 9)), int(draw.random.integers(1, 20)), 32 * draw.among(1, 2, 3)
    blocks = -(-terms // size)
    zeros = draw.among(None, draw.bytes("u8", columns, -(-blocks * bits // 8)), draw.numbers(columns, blocks) * 8)
    if bits == 8 and zeros is not None and zeros.dtype == np.float32:  # refused by ONNX Runtime
        zeros = None
    weights = draw.bytes("u8", columns, blocks, size * bits // 8)
    scales, bias = draw.scale(columns, blocks), draw.numbers(columns) if draw.flip() else None
    operands = [draw.numbers(*draw.among((rows, terms), (2, rows, terms))), weights, scales, zeros, None, bias]
    sizes = {"K": terms, "N": columns, "bits": bits, "block_size": size}
    check(draw, "MatMulNBits", operands, fixed=range(1, 6), attributes=sizes)


def refusal(op: str, operands: Sequence[Any], attributes: dict[str, Any], outputs: Sequence[str] = ("y",)) -> str:
    given = [each if each is None else np.asarray(each) for each in operands]
    model = node_model(op, given, [n > 0 for n in range(len(given))], attributes, outputs)
    with pytest.raises(pdojo.UsageError) as caught:
        onnx.load(model).run(x0=given[0])
    return str(caught.value)


_BYTES, _NUMBERS = np.ones((2, 32), np.uint8), np.ones((2, 32), np.float32)
_ONE, _ZERO = np.float32(1), np.uint8(0)
_PACKED = [_NUMBERS, np.ones((3, 1, 16), np.uint8), np.ones((3, 1), np.float32)]
_SIZES = {"K": 32, "N": 3, "block_size": 32}


@pytest.mark.parametrize(
    ("op", "operands", "attributes", "reason"),
    [
        ("QLinearAdd", [_BYTES, _ONE, _ZERO, _BYTES, _ONE, _ZERO], {}, "operand 'C_scale' is absent"),
        ("QLinearAdd", [_BYTES, _ONE, _ZERO, _BYTES.astype(np.int8), _ONE, _ZERO, _ONE], {}, "is of type i8, 'A'"),
        ("QLinearMul", [_BYTES, _ONE, _ZERO, _BYTES, [_ONE, _ONE], _ZERO, _ONE], {}, "operand 4 has 2 elements"),
        ("QLinearSigmoid", [_NUMBERS, _ONE, None, _ONE], {}, "operand 'X' is of type f32, not u8 or i8"),
        ("QLinearLeakyRelu", [_BYTES, _ONE, None, _ONE], {"aplha": 1.0}, "did you mean 'alpha'"),
        ("QLinearSoftmax", [_BYTES, _ONE, None, _ONE, _ZERO], {}, "attribute 'opset' is absent"),
        ("QLinearGlobalAveragePool", [_BYTES, _ONE, _ZERO, _ONE, _ZERO], {"channels_last": 2}, "is 2, not 0 or 1"),
        ("QLinearConcat", [_ONE, _ZERO, _BYTES, _ONE], {"axis": 0}, "2 and 3 for each array"),
        ("QuickGelu", [_NUMBERS, _NUMBERS], {}, "it has 2 operands, not at most 1"),
        ("MatMulNBits", _PACKED, _SIZES | {"N": 4}, "operand 'B' has shape [3, 1, 16], not [4, 1, 16]"),
        ("MatMulNBits", _PACKED, _SIZES | {"bits": 3}, "attribute 'bits' is 3"),
        ("MatMulNBits", _PACKED, _SIZES | {"block_size": 24}, "not a power of 2 from 16 on"),
        ("MatMulNBits", [*_PACKED, np.ones((3, 2), np.uint8)], _SIZES, "operand 'zero_points' has shape"),
        ("DynamicQuantizeMatMul", [_NUMBERS, np.ones((31, 2), np.uint8), _ONE], {}, ""),
        ("SkipLayerNormalization", [_NUMBERS, _NUMBERS, np.ones(8, np.float32)], {}, "'gamma' has shape [8]"),
        ("FusedGemm", [_NUMBERS, _NUMBERS], {"activation": "Nothing", "transB": 1}, "'Nothing' is no activation"),
        ("Attention", [_NUMBERS[None], np.ones((32, 9), np.float32)], {"num_heads": 2}, "does not divide 3"),
        ("MultiHeadAttention", [_NUMBERS[None]] * 3, {"num_heads": 5}, "does not divide 32"),
    ],
)
def test_wrong_nodes_are_refused(op: str, operands: Sequence[Any], attributes: dict[str, Any], reason: str) -> None:
    message = refusal(op, operands, attributes)
    assert message.startswith(f"node 'n' ({op}): ")
    assert reason in message


@pytest.mark.parametrize("rows", [1, 16])
@pytest.mark.parametrize(("bits", "zeros"), [(4, None), (4, "u8"), (4, "f32"), (8, "u8")])
def test_packed_matrices_stay_packed(rows: int, bits: int, zeros: str | None) -> None:
    """No array of the program has all elements of the matrix as numbers."""
    draw, size = Draw(0), 256
    points = {"u8": draw.bytes("u8", size, size // 32 * bits // 8), "f32": draw.numbers(size, size // 32)}
    weights, scales = draw.bytes("u8", size, size // 32, 4 * bits), draw.scale(size, size // 32)
    operands = [draw.numbers(rows, size), weights, scales, points.get(zeros or "")]
    sizes = {"K": size, "N": size, "bits": bits, "block_size": 32}
    (step,) = (
        onnx.load(node_model("MatMulNBits", operands, [False, True, True, True], sizes, ["y"]))
        .specialise(operands[0])
        .steps
    )
    target = replace(machine("x86-64-avx512"), threads=1)
    program = make_moves(assume_alignment(step.kernel, None), target, PASS).after
    wide = [each for each in nest_of(program).arrays.values() if each.dtype not in ("u8", "i8")]
    held = [prod(n for n, reused in zip(a.shape, a.buffer.reuse, strict=True) if not reused) for a in wide]
    assert max(held) < size * size


def test_integers_of_four_bits_stay_narrow() -> None:
    """Constants of 4 bits behind DequantizeLinear are bytes of a kernel, not numbers."""
    draw = Draw(0)
    x, values = draw.numbers(3, 32), draw.integers(-8, 8, 32, 6)
    scales = draw.scale(2, 6)
    tensor = helper.make_tensor("w", TensorProto.INT4, (32, 6), values.reshape(-1).tolist())
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "s"], ["f"], axis=0, block_size=16),
        helper.make_node("MatMul", ["x", "f"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "narrow",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (3, 6))],
        [tensor, numpy_helper.from_array(scales, "s")],
    )
    made = onnx.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10))
    np.testing.assert_allclose(made.run(x), x @ (values * np.repeat(scales, 16, 0)), rtol=1e-5, atol=1e-5)
    kernels = [step.kernel for step in made.specialise(x).steps]
    assert any(each.dtype == "i8" for kernel in kernels for each in nest_of(kernel).arrays.values())
