"""Values of NumPy for handles: element types, arrays as constants, and functions that take them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from pdojo.build.arguments import checked, replaced
from pdojo.build.array import Array, Like, cast, constant
from pdojo.build.like_numpy.table import FUNCTIONS
from pdojo.build.numbers import check_dtype
from pdojo.build.plain import array_of
from pdojo.build.tables import table
from pdojo.errors import UsageError

_P = ParamSpec("_P")
_R = TypeVar("_R")


def element_type(dtype: Any) -> str:
    """The element type that a text of pdojo, a type of NumPy or one of Python means. Raises UsageError."""
    if isinstance(dtype, str) and not dtype.startswith(("float", "int", "uint", "bfloat")):
        return check_dtype(dtype)
    try:
        found = np.dtype(dtype)
    except TypeError:
        return check_dtype("bf16" if dtype == "bfloat16" else str(dtype))
    if found.kind == "b":
        return "i1"
    if found.name == "bfloat16":
        return "bf16"
    if found.kind not in "fiu":
        raise UsageError(f"{found} is no element type of handles; kernels have real numbers and booleans")
    return check_dtype(f"{found.kind}{8 * found.itemsize}")


def handle_of(values: NDArray[Any]) -> Array:
    """An array of NumPy as a constant handle: equal or whole numbers, or booleans. Raises UsageError for others."""
    kind = element_type(values.dtype)
    if not values.size or values.tobytes() == values.size * values.ravel()[:1].tobytes():
        return constant(values.flat[0].item() if values.size else 0, kind, values.shape)
    if kind == "i1":
        return cast(table(values.astype(np.int8).tolist(), "i8"), "i1")
    if values.dtype.kind == "f":
        # As integers, infinities and -0.0 would change; whole numbers of more digits are no entries of tables.
        whole = (abs(values) < 1 << 53) & (values == np.rint(values)) & ~(np.signbit(values) & (values == 0))
        if bool(whole.all()):
            return cast(table(values.astype(np.int64).tolist()), kind)
        raise UsageError(
            f"an array of {values.dtype} with several values is no constant of a kernel, unless they are whole; pass "
            "it as an input: build.input(..., const=True)"
        )
    return table(values.tolist(), kind)


def operand_of(value: Any) -> Like:
    """An operand of a function of elements: arrays of NumPy with axes are constant handles."""
    array = array_of(value)
    return value if array is None else handle_of(array)


def _as_handle(a: Any, dtype: Any = None) -> Array:
    """A value as a handle: `np.asarray(a, like=x)`."""
    found = a if isinstance(a, Array) else handle_of(np.asarray(a))
    return found if dtype is None else cast(found, element_type(dtype))


FUNCTIONS["asarray"] = FUNCTIONS["array"] = _as_handle


def of(*names: str) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """A decorator that makes a function of handles the meaning of NumPy's functions `names`.

    Its parameters are NumPy's. Arrays of NumPy are constant handles for parameters that are annotated as handles.
    """

    def register(function: Callable[_P, _R]) -> Callable[_P, _R]:
        for name in names:
            FUNCTIONS[name] = _with_constants(function, name)
        return function

    return register


def _with_constants(function: Callable[_P, _R], name: str) -> Callable[_P, _R]:
    signature = inspect.signature(function)
    handles = [p.name for p in signature.parameters.values() if "Array" in p.annotation or "Like" in p.annotation]

    @wraps(function)
    def named(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        return function(*args, **kwargs)

    named.__name__ = f"np.{name}"
    check = checked(named)

    @wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise UsageError(f"'np.{name}' cannot be called like that: {error}") from None
        for each in handles:
            if each in bound.arguments:
                bound.arguments[each] = replaced(bound.arguments[each], np.ndarray, operand_of)
        return check(*bound.args, **bound.kwargs)

    return call


def as_float(x: Array) -> Array:
    """The array; integers and booleans as f64, as NumPy has them in means and square roots."""
    return x if x.is_float else cast(x, "f64")
