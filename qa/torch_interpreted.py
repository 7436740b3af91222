"""Models that the reference interpreter runs, with the interface of compiled ones."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from pdojo.backends.calling.strided import placed, span
from pdojo.build.numbers import storage_of
from pdojo.dialect.semantics.rounding import INTERFACE
from pdojo.model.element_types import memory_of, numpy_type
from pdojo.model.graph import Tensor
from pdojo.model.model import Model
from pdojo.torch.element_types import strides_of


class Interpreted:
    """A model run by the reference interpreter, with the interface of a compiled one."""

    def __init__(self, model: Model) -> None:
        self.model = model
        read = {o.memory for step in model.steps for o in step.inputs if isinstance(o, Tensor)}
        self.inputs_read = tuple(tensor for tensor in model.inputs if tensor in read)

    def run_at(self, inputs: Sequence[int], outputs: Sequence[int]) -> None:
        """Run the kernels on arrays at these addresses."""
        given = dict(zip(self.inputs_read, inputs, strict=True))
        arrays = {
            t.name: _at(given[t], t).view(numpy_type(t.dtype)) if t in given else np.zeros(t.shape, numpy_type(t.dtype))
            for t in self.model.inputs
        }
        results = dict(zip([name for name, _ in self.model.outputs], self.model.interpret(**arrays), strict=True))
        for (tensor, name), address in zip(self.model.results.items(), outputs, strict=True):
            _at(address, tensor)[...] = memory_of(results[name]).reshape(tensor.shape)


def _at(address: int, tensor: Tensor) -> Any:
    """The array of a tensor at an address, in the types of memory."""
    dtype = np.dtype(INTERFACE[storage_of(tensor.dtype)])
    strides = (*tensor.strides, 1) if tensor.strides else strides_of(tensor.shape)
    memory = (ctypes.c_char * (span(tensor.shape, strides) * dtype.itemsize)).from_address(address)
    return placed(np.ndarray((span(tensor.shape, strides),), dtype, cast("Any", memory)), tensor.shape, strides)
