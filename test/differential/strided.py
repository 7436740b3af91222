"""Arrays with random gaps, for calls that must keep all memory but the elements of outputs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pdojo.backends.calling.arrays import Parameter
from pdojo.backends.calling.strided import placed
from pdojo.dialect.attributes import Intent
from pdojo.dialect.semantics.rounding import INTERFACE


class Memory:
    """An array with random gaps inside of a larger memory of random bytes, all of which a call must keep."""

    def __init__(self, parameter: Parameter, values: NDArray[Any], random: np.random.Generator) -> None:
        dtype, known, end = INTERFACE[parameter.dtype], list[int](), 1
        strides = (*parameter.strides, 1) if parameter.strides else (None,) * len(parameter.shape)
        for extent, stride in zip(reversed(parameter.shape), reversed(strides), strict=True):
            gap = int(random.integers(0, 6)) if parameter.strides else 0
            known.insert(0, end + gap if stride is None else stride)
            end += (extent - 1) * known[0]
        offset = int(random.integers(0, 5))
        self.whole = random.integers(0, 256, (end + offset + 9) * dtype.itemsize, np.uint8)
        self.array = placed(self.whole.view(dtype)[offset:], parameter.shape, known)
        if parameter.intent is not Intent.OUT:
            self.array[...] = values
        self.strides = [stride for stride, said in zip(known, parameter.strides, strict=False) if said is None]
        """The strides that a call gives."""
        self.values = self.array.copy()
        """The contents before a call."""
        mask = np.zeros(self.whole.size // dtype.itemsize, np.bool_)
        placed(mask[offset:], parameter.shape, known)[...] = True
        self._kept = ~mask.repeat(dtype.itemsize) if parameter.written else np.ones(self.whole.size, np.bool_)
        self._before = self.whole.copy()

    def check(self) -> None:
        """Assert that only elements of an output have changed."""
        np.testing.assert_array_equal(self.whole[self._kept], self._before[self._kept], "memory that a call must keep")
