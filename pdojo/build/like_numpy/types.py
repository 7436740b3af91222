"""NumPy's questions about the element types of handles."""

from __future__ import annotations

from typing import Any

import numpy as np

from pdojo.build.array import Array, scalar
from pdojo.build.like_numpy.constants import element_type, of
from pdojo.build.like_numpy.table import FUNCTIONS
from pdojo.build.numbers import common_type
from pdojo.build.plain import array_of, plain_of
from pdojo.build.sizes import Open
from pdojo.errors import UsageError


def _result_type(*arrays_and_dtypes: Any) -> str:
    """The element type of arrays and types together, in which numbers are. Raises UsageError if there is none."""
    given = [plain_of(x) if (array := array_of(x)) is None else array.dtype for x in arrays_and_dtypes]
    numbers = [x for x in given if isinstance(x, int | float | Open)]
    found = common_type("'np.result_type'", [_kind(x) for x in given if not isinstance(x, int | float | Open)])
    for each in numbers:
        scalar(each, found)
    return found


def _kind(x: Any) -> str:
    return x.dtype if isinstance(x, Array) else element_type(x)


FUNCTIONS["result_type"] = _result_type


@of("can_cast")
def can_cast(from_: Array, to: Any, casting: Any = "safe") -> bool:
    """Whether a cast of elements to another type keeps their values, or is of another kind that NumPy names."""
    kinds = from_.dtype, element_type(to)
    if "bf16" in kinds:
        raise UsageError("np.can_cast knows NumPy's types, to which bf16 does not belong")
    one, other = (np.dtype("?" if kind == "i1" else f"{kind[0]}{int(kind[1:]) // 8}") for kind in kinds)
    try:
        return bool(np.can_cast(one, other, casting))
    except ValueError:
        raise UsageError(f"'{casting}' is no kind of casts; known: no, equiv, safe, same_kind, unsafe") from None
