"""Calls whose arrays fit as they are, which need no views: checked in a fraction of the time, without messages."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pdojo.backends.calling.arrays import INTERFACE, AnyArray, Parameter, address_of, empty_for
from pdojo.dialect.attributes import Intent


class _Form(NamedTuple):
    """Type, shape and place of an array that fits."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    alignment: int
    is_written: bool
    size: int
    """Bytes."""


class QuickCalls:
    """The calls of a kernel with NumPy arrays in the order of its interface."""

    def __init__(self, parameters: Sequence[Parameter]) -> None:
        self._parameters = parameters
        dtypes = [INTERFACE[p.dtype] for p in parameters]
        self._forms = [
            _Form(dtype, p.shape, p.alignment, p.written, dtype.itemsize * prod(p.shape))
            for p, dtype in zip(parameters, dtypes, strict=True)
        ]
        intents = [p.intent for p in parameters]
        self._least = 1 + max((k for k, intent in enumerate(intents) if intent is not Intent.OUT), default=-1)
        self._outputs = [k for k, intent in enumerate(intents) if intent is Intent.OUT]
        places = range(len(intents))
        self._pairs = [
            (written, [(other, self._forms[other].size) for other in places if other != written])
            for written in places
            if intents[written] is not Intent.IN
        ]

    @staticmethod
    def fit(parameters: Sequence[Parameter]) -> bool:
        """True if arrays of this interface can be checked here."""
        return not any(p.extents or p.strides or p.indices is not None for p in parameters)

    def arrays(self, given: Sequence[AnyArray]) -> tuple[list[NDArray[Any]], list[int]] | None:
        """The arrays of a call, outputs at the end that are left out allocated, and their addresses.

        None if one does not fit as it is: then the long way says why, or makes it fit.
        """
        if not self._least <= len(given) <= len(self._parameters):
            return None
        found: list[NDArray[Any]] = []
        addresses: list[int] = []
        for array, form in zip(given, self._forms, strict=False):
            # Subclasses may have other memory than their shape says.
            if type(array) is not np.ndarray or array.dtype != form.dtype or array.shape != form.shape:
                return None
            flags = array.flags
            address = address_of(array)
            if not flags.c_contiguous or address % form.alignment or (form.is_written and not flags.writeable):
                return None
            found.append(array)
            addresses.append(address)
        for parameter in self._parameters[len(given) :]:
            found.append(empty_for(parameter))
            addresses.append(address_of(found[-1]))
        return None if self._overlap(addresses) else (found, addresses)

    def outputs(self, arrays: Sequence[NDArray[Any]]) -> Any:
        """The `out` arrays of a call: the only one, a tuple, or None."""
        found = [arrays[k] for k in self._outputs]
        return None if not found else found[0] if len(found) == 1 else tuple(found)

    def _overlap(self, addresses: Sequence[int]) -> bool:
        """True if an array that the kernel writes shares memory with another array."""
        for written, others in self._pairs:
            begin = addresses[written]
            end = begin + self._forms[written].size
            for other, size in others:
                if addresses[other] < end and begin < addresses[other] + size:
                    return True
        return False
