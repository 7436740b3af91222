"""Calls of a compiled model whose inputs fit as they are and whose outputs are new: checked in little time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pdojo.backends.calling.arrays import ALIGNMENT, address_of, located_empty
from pdojo.model.element_types import numpy_type
from pdojo.model.graph import Operand, Tensor

Outputs: TypeAlias = Any
"""The array of the only output, or a tuple."""
Run: TypeAlias = Callable[[Sequence[int], Sequence[int]], None]
"""A function of the addresses of the inputs that kernels read, and of those of the outputs."""


class _Form(NamedTuple):
    """An array that fits."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    size: int
    """Bytes."""

    @staticmethod
    def of(tensor: Tensor) -> _Form:
        """The arrays of a tensor."""
        dtype = numpy_type(tensor.dtype)
        return _Form(dtype, tuple(tensor.shape), prod(tensor.shape) * dtype.itemsize)

    def new(self) -> tuple[NDArray[Any], int]:
        """An uninitialised array at an address that tuned kernels accept, and the address."""
        return located_empty(self.shape, self.dtype, self.size)


def in_order(names: Sequence[str], arrays: Sequence[object], named: Mapping[str, object]) -> Sequence[object] | None:
    """The arrays of a call in the order of inputs with these names; None if there are others or some twice."""
    if not named:
        return arrays
    if arrays or len(named) != len(names) or not all(name in named for name in names):
        return None
    return [named[name] for name in names]


class QuickModel:
    """Calls with NumPy arrays for all inputs, in order."""

    def __init__(self, inputs: Sequence[Tensor], read: Sequence[Tensor], outputs: Sequence[Tensor], run: Run) -> None:
        self.names = [each.name for each in inputs]
        self._inputs = [(_Form.of(each), each in read) for each in inputs]
        self._outputs = [_Form.of(each) for each in outputs]
        self._run = run

    @staticmethod
    def fit(inputs: Sequence[Tensor], outputs: Sequence[Operand], written: Sequence[Tensor]) -> bool:
        """Whether calls of a model may be made here: kernels write each output into memory of its own."""
        memories = [each.memory for each in outputs if isinstance(each, Tensor)]
        return len(memories) == len(outputs) and memories == [*written] and not any(each.strides for each in inputs)

    def __call__(self, arrays: Sequence[object] | None) -> Outputs:
        """The outputs; None if an array does not fit as it is: then the long way says why, or makes it fit."""
        if arrays is None or len(arrays) != len(self._inputs):
            return None
        held: list[NDArray[Any]] = []
        given: list[int] = []
        for array, (form, is_read) in zip(arrays, self._inputs, strict=True):
            # Subclasses may have other memory than their shape says.
            if type(array) is not np.ndarray or array.dtype != form.dtype or array.shape != form.shape:
                return None
            if not array.flags.c_contiguous:
                return None
            if is_read:
                address = address_of(array)
                if address % ALIGNMENT:
                    copy, address = form.new()
                    copy[...] = array
                    held.append(copy)
                given.append(address)
        made = [form.new() for form in self._outputs]
        self._run(given, [address for _, address in made])
        return made[0][0] if len(made) == 1 else tuple([array for array, _ in made])
