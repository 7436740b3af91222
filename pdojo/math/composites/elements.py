"""Elements under construction, with Python's operators: the values of formulas of composite functions.

A frontend subclasses `Element`. `by_sign` and `mapped` append functions of statements or composites, by their names.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Self

FLOATS = ("f64", "f32", "f16", "bf16")


class Element(ABC):
    """The element of an array at each iteration. Comparisons give elements of type i1."""

    dtype: str
    """The element type; unsigned integers are `u8`, `u16` ..."""

    @property
    @abstractmethod
    def known(self) -> float | None:
        """The number that the element is in every iteration; None if it depends on data."""

    @abstractmethod
    def mapped(self, function: str, operands: Sequence[Any], parameters: Mapping[str, Any]) -> Self:
        """Append a function of elements of this class and numbers. Raises UsageError for operands that it lacks."""

    @abstractmethod
    def cast(self, dtype: str) -> Self:
        """The element in another element type."""

    def by_sign(self, sign: str, *operands: Any) -> Self:
        """Append the function of an operator of Python."""
        return self.mapped(sign, operands, {})

    @property
    def is_float(self) -> bool:
        """Whether the element is a floating-point number."""
        return self.dtype in FLOATS

    @property
    def is_unsigned(self) -> bool:
        """Whether the element is an integer that is never negative; true for i1."""
        return self.dtype == "i1" or self.dtype.startswith("u")

    def __neg__(self) -> Self:
        return self.by_sign("-", self) if self.is_float else self.by_sign("-", 0, self)

    def __abs__(self) -> Self:
        return self if self.is_unsigned else self.by_sign("abs", self)

    def __add__(self, other: Self | float) -> Self:
        return self.by_sign("+", self, other)

    def __radd__(self, other: float) -> Self:
        return self.by_sign("+", other, self)

    def __sub__(self, other: Self | float) -> Self:
        return self.by_sign("-", self, other)

    def __rsub__(self, other: float) -> Self:
        return self.by_sign("-", other, self)

    def __mul__(self, other: Self | float) -> Self:
        return self.by_sign("*", self, other)

    def __rmul__(self, other: float) -> Self:
        return self.by_sign("*", other, self)

    def __truediv__(self, other: Self | float) -> Self:
        return self.by_sign("/", self, other)

    def __rtruediv__(self, other: float) -> Self:
        return self.by_sign("/", other, self)

    def __floordiv__(self, other: Self | float) -> Self:
        return self.by_sign("floor_divide", self, other)

    def __rfloordiv__(self, other: float) -> Self:
        return self.by_sign("floor_divide", other, self)

    def __mod__(self, other: Self | float) -> Self:
        return self.by_sign("remainder", self, other)

    def __rmod__(self, other: float) -> Self:
        return self.by_sign("remainder", other, self)

    def __and__(self, other: Self | float) -> Self:
        return self.by_sign("&", self, other)

    def __rand__(self, other: float) -> Self:
        return self.by_sign("&", other, self)

    def __or__(self, other: Self | float) -> Self:
        return self.by_sign("|", self, other)

    def __ror__(self, other: float) -> Self:
        return self.by_sign("|", other, self)

    def __xor__(self, other: Self | float) -> Self:
        return self.by_sign("^", self, other)

    def __rxor__(self, other: float) -> Self:
        return self.by_sign("^", other, self)

    def __lshift__(self, other: Self | float) -> Self:
        return self.by_sign("<<", self, other)

    def __rlshift__(self, other: float) -> Self:
        return self.by_sign("<<", other, self)

    def __rshift__(self, other: Self | float) -> Self:
        return self.by_sign(">>", self, other)

    def __rrshift__(self, other: float) -> Self:
        return self.by_sign(">>", other, self)

    def __lt__(self, other: Self | float) -> Self:
        return self.by_sign("<", self, other)

    def __le__(self, other: Self | float) -> Self:
        return self.by_sign("<=", self, other)

    def __gt__(self, other: Self | float) -> Self:
        return self.by_sign(">", self, other)

    def __ge__(self, other: Self | float) -> Self:
        return self.by_sign(">=", self, other)

    def __eq__(self, other: object) -> Self:  # pyright: ignore[reportIncompatibleMethodOverride]  # as NumPy's
        return self.by_sign("==", self, other)

    def __ne__(self, other: object) -> Self:  # pyright: ignore[reportIncompatibleMethodOverride]  # as NumPy's
        return self.by_sign("!=", self, other)

    __hash__ = object.__hash__


def call(function: str, *operands: Element | float, **parameters: Any) -> Element:
    """A function of statements or a composite, of elements and numbers; one operand is an element."""
    first = next(operand for operand in operands if isinstance(operand, Element))
    return first.mapped(function, operands, parameters)


def where(condition: Element, x: Element | float, y: Element | float) -> Element:
    """`x` where the condition is true, `y` elsewhere; one of them is an element."""
    return call("select", condition, x, y)


def exp(x: Element) -> Element:
    """The exponential function."""
    return call("exp", x)


def log(x: Element) -> Element:
    """The natural logarithm."""
    return call("log", x)


def sqrt(x: Element) -> Element:
    """The square root."""
    return call("sqrt", x)
