"""The library kernels in TVM's tensor expressions: unscheduled, by the formulas of their meaning."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, TypeAlias

te: Any = import_module("tvm.te")
tirx: Any = import_module("tvm.tirx")
"""Optional packages, which type checkers may not find."""

EPSILON = 1e-5
Sizes: TypeAlias = Mapping[str, int]
Tensor: TypeAlias = Any


def _total(x: Tensor, axes: int = 1) -> Tensor:
    """The sums over the last axes."""
    kept = len(x.shape) - axes
    loops = [te.reduce_axis((0, n), name=f"k{d}") for d, n in enumerate(x.shape[kept:])]
    return te.compute(x.shape[:kept], lambda *i: te.sum(x[(*i, *loops)], axis=loops), name="total")


def _largest(x: Tensor) -> Tensor:
    k = te.reduce_axis((0, x.shape[1]), name="k")
    return te.compute(x.shape[:1], lambda i: te.max(x[i, k], axis=k), name="largest")


def _each(shape: Any, function: Callable[..., Any]) -> Tensor:
    return te.compute(shape, function, name="each")


def _reciprocal_root(x: Any) -> Any:
    return 1 / tirx.sqrt(x + EPSILON)


def _softmax(x: Tensor) -> Tensor:
    largest = _largest(x)
    e = _each(x.shape, lambda i, j: tirx.exp(x[i, j] - largest[i]))
    total = _total(e)
    return _each(x.shape, lambda i, j: e[i, j] / total[i])


def _layernorm(x: Tensor, g: Tensor, b: Tensor) -> Tensor:
    total, n = _total(x), x.shape[1]
    d = _each(x.shape, lambda i, j: x[i, j] - total[i] / n)
    squares = _total(_each(x.shape, lambda i, j: d[i, j] * d[i, j]))
    return _each(x.shape, lambda i, j: d[i, j] * _reciprocal_root(squares[i] / n) * g[j] + b[j])


def _rmsnorm(x: Tensor, w: Tensor) -> Tensor:
    squares, n = _total(_each(x.shape, lambda i, j: x[i, j] * x[i, j])), x.shape[1]
    return _each(x.shape, lambda i, j: x[i, j] * _reciprocal_root(squares[i] / n) * w[j])


def _reducemean(x: Tensor) -> Tensor:
    total, n = _total(x), x.shape[1]
    return _each(total.shape, lambda i: total[i] / n)


def _by_channel(x: Tensor) -> Tensor:
    """The sums over all axes except the channels."""
    batch, channels, rows, columns = x.shape
    loops = [te.reduce_axis((0, n), name=f"k{d}") for d, n in enumerate((batch, rows, columns))]
    n, h, w = loops
    return te.compute((channels,), lambda c: te.sum(x[n, c, h, w], axis=loops), name="total")


def _batchnorm(x: Tensor, g: Tensor, b: Tensor) -> Tensor:
    count = x.shape[0] * x.shape[2] * x.shape[3]
    total = _by_channel(x)
    d = _each(x.shape, lambda n, c, h, w: x[n, c, h, w] - total[c] / count)
    squares = _by_channel(_each(x.shape, lambda n, c, h, w: d[n, c, h, w] * d[n, c, h, w]))
    return _each(x.shape, lambda n, c, h, w: d[n, c, h, w] * _reciprocal_root(squares[c] / count) * g[c] + b[c])


def _product(a: Tensor, b: Tensor) -> Tensor:
    """A matrix product; extra axes of `a` are rows, axes of both are batches."""
    k = te.reduce_axis((0, a.shape[-1]), name="k")
    shared = len(b.shape) - 2
    shape = (*a.shape[:-1], b.shape[-1])
    return te.compute(shape, lambda *i: te.sum(a[(*i[:-1], k)] * b[(*i[:shared], k, i[-1])], axis=k), name="product")


def _swiglu(x: Tensor, w: Tensor, v: Tensor) -> Tensor:
    gate, value = _product(x, w), _product(x, v)
    return _each(gate.shape, lambda *i: gate[i] / (1 + tirx.exp(-gate[i])) * value[i])


def _conv(x: Tensor, k: Tensor, z: Sizes) -> Tensor:
    step, pad, dilation = z["S"], z["P"], z["DIL"]
    batch, channels, rows, columns = (int(n) for n in x.shape)
    outputs, _, height, width = (int(n) for n in k.shape)
    if pad:
        shape = (batch, channels, rows + 2 * pad, columns + 2 * pad)
        inner = x

        def padded(n: Any, c: Any, h: Any, w: Any) -> Any:
            inside = tirx.all(h >= pad, h < rows + pad, w >= pad, w < columns + pad)
            return tirx.if_then_else(inside, inner[n, c, h - pad, w - pad], tirx.const(0, inner.dtype))

        x = te.compute(shape, padded, name="padded")
    loops = [te.reduce_axis((0, n), name=f"r{n}{d}") for d, n in enumerate((channels, height, width))]
    c, i, j = loops
    shape = (
        batch,
        outputs,
        (rows + 2 * pad - dilation * (height - 1) - 1) // step + 1,
        (columns + 2 * pad - dilation * (width - 1) - 1) // step + 1,
    )
    return te.compute(
        shape,
        lambda n, o, h, w: te.sum(
            x[n, c, h * step + i * dilation, w * step + j * dilation] * k[o, c, i, j], axis=loops
        ),
        name="conv",
    )


def definition(kernel: str, z: Sizes, inputs: list[Tensor]) -> Tensor:
    """The result of a kernel on these inputs."""
    definitions: dict[str, Callable[..., Tensor]] = {
        "add": lambda x, y: _each(x.shape, lambda *i: x[i] + y[i]),
        "mul": lambda x, y: _each(x.shape, lambda *i: x[i] * y[i]),
        "relu": lambda x: _each(x.shape, lambda *i: tirx.max(x[i], tirx.const(0, x.dtype))),
        "relu_ffn": lambda x, b: _each(
            x.shape, lambda n, c, h, w: tirx.max(x[n, c, h, w] + b[c], tirx.const(0, x.dtype))
        ),
        "softmax": _softmax,
        "layernorm": _layernorm,
        "rmsnorm": _rmsnorm,
        "reducemean": _reducemean,
        "batchnorm": _batchnorm,
        "matmul": _product,
        "bmm": _product,
        "swiglu": _swiglu,
        "conv": lambda x, k: _conv(x, k, z),
    }
    return definitions[kernel](*inputs)


def function(kernel: str, z: Sizes, shapes: list[tuple[tuple[int, ...], str]]) -> Any:
    """The kernel as an unscheduled TIR function of inputs and output."""
    inputs = [te.placeholder(shape, dtype, name=f"a{n}") for n, (shape, dtype) in enumerate(shapes)]
    return te.create_prim_func([*inputs, definition(kernel, z, inputs)])
