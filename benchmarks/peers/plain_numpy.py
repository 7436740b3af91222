"""NumPy: products by its BLAS, everything else on one thread."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from benchmarks.peers.array_functions import SHARED, Function, Sizes
from benchmarks.peers.calls import Fresh, Into
from pdojo.errors import UsageError
from pdojo.kernels import Workload

Array: TypeAlias = NDArray[Any]


def _windows(x: Array, z: Sizes, fill: float) -> Array:
    """Windows [N, C, rows, columns, K, K]; copied only for padding."""
    p, step, dilation = z["P"], z["S"], z.get("DIL", 1)
    padded = np.pad(x, ((0, 0), (0, 0), (p, p), (p, p)), constant_values=fill) if p else x
    reach = dilation * (z["K"] - 1) + 1
    return sliding_window_view(padded, (reach, reach), (2, 3))[:, :, ::step, ::step, ::dilation, ::dilation]


def _conv(z: Sizes) -> Function:
    """Convolution as a matrix product of gathered windows, image by image."""

    def convolve(x: Array, k: Array) -> Array:
        weights = k.reshape(len(k), -1)
        windows = _windows(x, z, 0).transpose(0, 1, 4, 5, 2, 3)
        rows, columns = windows.shape[4:]
        return np.stack([(weights @ w.reshape(weights.shape[1], -1)).reshape(-1, rows, columns) for w in windows])

    return convolve


def _grouped(z: Sizes) -> Function:
    """A convolution for each group."""
    convolve = _conv(z)

    def grouped(x: Array, k: Array) -> Array:
        pairs = zip(np.split(x, z["G"], 1), np.split(k, z["G"]), strict=True)
        return np.concatenate([convolve(*pair) for pair in pairs], 1)

    return grouped


def _depthwise(z: Sizes) -> Function:
    return lambda x, k: np.einsum("nchwij,cij->nchw", _windows(x, z, 0), k)


OWN: dict[str, Callable[[Sizes], Function]] = {
    "conv": _conv,
    "depthwise_conv": _depthwise,
    "grouped_conv": _grouped,
    "maxpool": lambda z: lambda x: _windows(x, z, -np.inf).max((4, 5)),
    "avgpool": lambda z: lambda x: _windows(x, z, 0).mean((4, 5)),
    "sumpool": lambda z: lambda x: _windows(x, z, 0).sum((4, 5)),
}


def _softmax(x: Array, out: Array) -> None:
    np.subtract(x, x.max(-1, keepdims=True), out=out)
    np.exp(out, out=out)
    np.divide(out, out.sum(-1, keepdims=True), out=out)


def _swiglu(x: Array, w: Array, v: Array, out: Array) -> None:
    gate = np.matmul(x, w, out=out)
    e = np.negative(gate)
    np.exp(e, out=e)
    e += 1
    gate /= e
    gate *= np.matmul(x, v, out=e)


INTO: Mapping[str, Function] = {
    "add": np.add,
    "mul": np.multiply,
    "relu": lambda x, out: np.maximum(x, 0, out=out),
    "tanh": np.tanh,
    "exp": np.exp,
    "log": np.log,
    "reducemean": partial(np.mean, axis=1),
    "reducesum": partial(np.sum, axis=1),
    "reducemax": partial(np.max, axis=1),
    "colmean": partial(np.mean, axis=0),
    "colsum": partial(np.sum, axis=0),
    "colmax": partial(np.max, axis=0),
    "cumsum": partial(np.cumsum, axis=1),
    "gemv": np.matmul,
    "gemv_t": lambda a, x, out: np.matmul(x, a, out=out),
    "copy": lambda x, out: np.copyto(out, x),
    "fill": lambda a, out: np.copyto(out, a[0]),
    "softmax": _softmax,
    "matmul": np.matmul,
    "bmm": np.matmul,
    "bmm_broadcast_a": np.matmul,
    "bmm_broadcast_b": np.matmul,
    "swiglu": _swiglu,
    "transpose": lambda x, out: np.copyto(out, x.T),
}
"""Kernels that write into the memory `out`."""


class _Built:
    def __init__(self, function: Function, *, out: bool) -> None:
        self._function = function
        self._out = out

    def bind(self, arrays: Sequence[Array]) -> Fresh | Into:
        """A call on arrays."""
        if any(array.dtype.itemsize == 2 for array in arrays):
            raise UsageError("NumPy is compared on 32 and 64 bits")
        if self._out:
            return Into(partial(self._function, *arrays[:-1], out=arrays[-1]))
        return Fresh(self._function, arrays[:-1], arrays[-1])


def build(workload: Workload, variant: str, threads: int) -> _Built:
    """NumPy's implementation. Its BLAS follows OMP_NUM_THREADS, which the worker sets before it starts."""
    if variant == "out":
        return _Built(INTO[workload.kernel], out=True)
    sizes = workload.sizes
    own = OWN.get(workload.kernel)
    return _Built(own(sizes) if own else SHARED[workload.kernel](np, sizes), out=False)
