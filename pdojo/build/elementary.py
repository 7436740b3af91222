"""Composite functions of `pdojo.math` that have functions of their own: trigonometric, hyperbolic, signs."""

from __future__ import annotations

from collections.abc import Callable

from pdojo.build.array import Array, map
from pdojo.math.composites import COMPOSITES


def unary(name: str) -> Callable[[Array], Array]:
    """A function with one operand that computes a composite; its docstring has an example."""

    def function(x: Array) -> Array:
        return map(name, x)

    dtype = "i1" if name == "sign_bit" else "f32"
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{COMPOSITES[name].summary}

    >>> from pdojo import build
    >>> build.{name}(build.input("x", "f32", (4, 8)))
    <Array {dtype} [4, 8]>
    """
    return function


tan, sinh, cosh = unary("tan"), unary("sinh"), unary("cosh")
asin, acos = unary("asin"), unary("acos")
asinh, acosh, atanh = unary("asinh"), unary("acosh"), unary("atanh")
sign, sign_bit = unary("sign"), unary("sign_bit")


def atan2(y: Array, x: Array) -> Array:
    """The angle of the points (x, y), from -pi to pi, as C's `atan2`; shapes broadcast.

    >>> from pdojo import build
    >>> build.atan2(build.input("y", "f32", (4, 8)), build.input("x", "f32", (8,)))
    <Array f32 [4, 8]>
    """
    return map("atan2", y, x)
