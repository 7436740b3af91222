"""JAX, compiled by XLA. Inputs share our arrays' memory; a result has new memory or reuses a donated result's."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from benchmarks.peers.array_functions import SHARED, Function, Sizes
from benchmarks.peers.threads import unbound
from pdojo.errors import UsageError
from pdojo.kernels import Workload

Array: TypeAlias = Any


def _conv(groups: Callable[[Sizes], int], x: Array, k: Array, z: Sizes) -> Array:
    import jax

    return jax.lax.conv_general_dilated(
        x,
        k,
        (z["S"], z["S"]),
        [(z["P"], z["P"])] * 2,
        rhs_dilation=(z["DIL"], z["DIL"]),
        feature_group_count=groups(z),
    )


def _conv_transpose(x: Array, k: Array, z: Sizes) -> Array:
    """A convolution of the images, spread by the stride, with the flipped weights."""
    import jax

    before = z["K"] - 1 - z["P"]
    flipped = k[:, :, ::-1, ::-1].swapaxes(0, 1)
    sides = [(before, before + z["OP"])] * 2
    return jax.lax.conv_general_dilated(x, flipped, (1, 1), sides, lhs_dilation=(z["S"], z["S"]))


def _pool(x: Array, z: Sizes, initial: float, combine: Any) -> Array:
    import jax

    sides = [(0, 0), (0, 0), (z["P"], z["P"]), (z["P"], z["P"])]
    start = np.asarray(initial, x.dtype)
    return jax.lax.reduce_window(x, start, combine, (1, 1, z["K"], z["K"]), (1, 1, z["S"], z["S"]), sides)


def _own(kernel: str, z: Sizes) -> Function | None:
    """JAX's own function for a kernel; None if it has none."""
    import jax

    own: dict[str, Function] = {
        "gelu": lambda x: jax.nn.gelu(x, approximate=False),
        "bias_gelu": lambda x, b: jax.nn.gelu(x + b, approximate=False),
        "silu": jax.nn.silu,
        "sigmoid": jax.nn.sigmoid,
        "softmax": jax.nn.softmax,
        "log_softmax": jax.nn.log_softmax,
        "transpose": jax.numpy.transpose,
        "swiglu": lambda x, w, v: jax.nn.silu(x @ w) * (x @ v),
        "conv": lambda x, k: _conv(lambda _: 1, x, k, z),
        "depthwise_conv": lambda x, k: _conv(lambda z: z["C"], x, k[:, None], z),
        "grouped_conv": lambda x, k: _conv(lambda z: z["G"], x, k, z),
        "conv_transpose": lambda x, k: _conv_transpose(x, k, z),
        "maxpool": lambda x: _pool(x, z, -np.inf, jax.lax.max),
        "avgpool": lambda x: _pool(x, z, 0, jax.lax.add) / z["K"] ** 2,
        "sumpool": lambda x: _pool(x, z, 0, jax.lax.add),
    }
    return own.get(kernel)


class _Run:
    """A call on given arrays."""

    def __init__(self, function: Any, arrays: Sequence[NDArray[Any]], *, donated: bool) -> None:
        import jax

        self._function = function
        self._inputs = [jax.dlpack.from_dlpack(array) for array in arrays[:-1]]
        for view, array in zip(self._inputs, arrays, strict=False):
            if view.unsafe_buffer_pointer() != array.ctypes.data:
                raise UsageError("JAX copied an input, which would not be the same memory")
        self._output = arrays[-1]
        self._donated = donated
        self._result = jax.numpy.zeros(self._output.shape, self._output.dtype) if donated else None

    def __call__(self) -> None:
        """Run the call and wait for the result."""
        inputs = (*self._inputs, self._result) if self._donated else self._inputs
        self._result = self._function(*inputs)
        self._result.block_until_ready()

    def finish(self) -> None:
        """Copy the result into the output array."""
        self._output[...] = np.asarray(self._result)


class _Built:
    def __init__(self, function: Function, *, donated: bool) -> None:
        import jax

        if donated:
            # Only the argument's memory is used.
            self._function = jax.jit(lambda *given: function(*given[:-1]), donate_argnums=-1, keep_unused=True)
        else:
            self._function = jax.jit(function)
        self._donated = donated

    def bind(self, arrays: Sequence[NDArray[Any]]) -> _Run:
        """A call on arrays."""
        if any(array.dtype.itemsize == 2 for array in arrays):
            raise UsageError("JAX is compared on 32 and 64 bits")
        with unbound():
            return _Run(self._function, arrays, donated=self._donated)


def build(workload: Workload, variant: str, threads: int) -> _Built:
    """JAX's implementation. JAX starts PJRT_NPROC threads at first use."""
    os.environ["PJRT_NPROC"] = os.environ["NPROC"] = str(threads)
    os.environ["JAX_PLATFORMS"] = "cpu"
    import jax

    jax.config.update("jax_enable_x64", True)
    with unbound():
        jax.devices()
        function = _own(workload.kernel, workload.sizes) or SHARED[workload.kernel](jax.numpy, workload.sizes)
        return _Built(function, donated=variant.endswith("donated"))
