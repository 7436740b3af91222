"""Constants of models as kernels take them: aligned, and what is computed from them when they are bound."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from pdojo.backends.calling.arrays import aligned
from pdojo.model.element_types import memory_of
from pdojo.model.executable import Executable
from pdojo.model.graph import Known


@dataclass(eq=False)
class Held:
    """Arrays, and what they were made from: as long as they live, no other array has the memory of a source."""

    sources: tuple[object, ...]
    arrays: Mapping[str, NDArray[Any]]
    """The arrays that kernels read, keyed by name."""


class SharedConstants:
    """Constants that models share, as long as one of them uses them; arrays with the same memory are the same."""

    def __init__(self) -> None:
        self._known: WeakValueDictionary[Hashable, Held] = WeakValueDictionary()

    def forget(self) -> None:
        """Share nothing that was made before: the contents of arrays have changed."""
        self._known = WeakValueDictionary()

    def aligned(self, value: Known) -> Held:
        """A constant as kernels take it; its name is ''."""
        return self._made(_memory(value), (value,), lambda: {"": _bound(value)})

    def bound(self, kernel: Executable, values: Mapping[str, Known]) -> Held:
        """The constants that calls of a kernel read, keyed by name."""

        def computed() -> Mapping[str, NDArray[Any]]:
            return kernel.bound_constants(**{name: _bound(value) for name, value in values.items()})

        key = (id(kernel.constants), tuple((name, _memory(value)) for name, value in values.items()))
        return self._made(key, (kernel.constants, *values.values()), computed)

    def _made(self, key: Hashable, sources: tuple[object, ...], make: Callable[[], Mapping[str, NDArray[Any]]]) -> Held:
        known = self._known
        held = known.get(key)
        if held is None:
            held = known[key] = Held(sources, make())
        return held


def _memory(value: Known) -> Hashable:
    """Where the elements of an array are; arrays that live at the same time have the same elements there."""
    return value.ctypes.data, value.shape, value.strides, value.dtype


def _bound(value: Known) -> NDArray[Any]:
    """A constant as kernels take it, aligned."""
    return aligned(memory_of(np.ascontiguousarray(value).reshape(value.shape)))
