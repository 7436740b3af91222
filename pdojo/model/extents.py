"""Arrays of integers that are known but for the sizes on which they depend, such as shapes of open extents."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pdojo.build.sizes import Open


def is_extents(value: object) -> bool:
    """Whether a value is an array of integers of which some depend on sizes; its elements are objects."""
    if not isinstance(value, np.ndarray):
        return False
    array = cast("NDArray[Any]", value)
    return array.dtype == np.dtype(object) and any(isinstance(each, Open) for each in array.flat)


def extents_of(values: ArrayLike) -> NDArray[Any]:
    """The array of integers: of type int64 if none depends on sizes."""
    found = np.array(values, object)
    return found if is_extents(found) else found.astype(np.int64)
