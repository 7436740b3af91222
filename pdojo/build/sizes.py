"""Extents that depend on sizes known at run time: numbers with `+ - * // %` and comparisons for all of their values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from itertools import product as corners_of
from math import prod
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from pdojo.dialect.affine import Atom, Expr, Size, const, floordiv, linear
from pdojo.dialect.lookups import sizes_in
from pdojo.dialect.names import name_problem
from pdojo.dialect.sizes import size_problem
from pdojo.errors import UsageError

if TYPE_CHECKING:
    _Number = int  # So a shape is a tuple of integers for functions that only pass extents on.
else:
    _Number = object

_Monomial: TypeAlias = tuple[Atom, ...]
"""A product of sizes and quotients of sizes; () is 1."""


MOST_VALUES = 1 << 13
"""Most values of a size that are tried where bounds do not answer a question."""


class OpenExtent(UsageError):
    """A question about an extent with different answers for the values of its sizes."""

    def __init__(self, message: str, *, narrower: bool = False) -> None:
        super().__init__(message)
        self.narrower = narrower
        """Whether it may have one answer for fewer values."""


class UnequalExtents(UsageError):
    """Extents that have to be equal, and are not for all values of their sizes."""


class OpenArgument(OpenExtent):
    """An OpenExtent whose message names the function that was called."""


class Open(_Number):
    """A polynomial of sizes that is not constant; results that are constant are plain integers.

    Two are equal if they are for all values of their sizes. Other questions are answered for all values, or raise
    OpenExtent; so does every use as a plain integer.
    """

    __slots__ = ("_hash", "_terms")
    _terms: tuple[tuple[_Monomial, int], ...]
    _hash: int

    def __new__(cls, terms: Mapping[_Monomial, int]) -> Self:
        """The polynomial with a coefficient for each product of sizes."""
        made = object.__new__(cls)
        made._terms = tuple(sorted(((m, c) for m, c in terms.items() if c), key=lambda term: _order(term[0])))
        return made

    @property
    def terms(self) -> tuple[tuple[_Monomial, int], ...]:
        """The products of sizes and their coefficients, those of most factors last."""
        return self._terms

    @property
    def expression(self) -> Expr:
        """It as an expression. Raises OpenExtent for a product of sizes."""
        if not self.is_linear:
            raise OpenExtent(f"an extent is linear in sizes, not {self}; keep axes of several sizes apart")
        factors = dict(self._terms)
        return linear(factors.pop((), 0), ((monomial[0], factor) for monomial, factor in factors.items()))

    @property
    def is_linear(self) -> bool:
        """Whether it has no products of sizes."""
        return all(len(monomial) < 2 for monomial, _ in self._terms)

    @property
    def products(self) -> list[list[Expr]]:
        """The factors of products whose sum is the extent."""
        found: list[list[Expr]] = []
        for monomial, factor in self._terms:
            first, *others = [Expr(0, ((atom, 1),)) for atom in monomial] or [const(1)]
            found.append([first * factor, *others])
        return found

    @property
    def bounds(self) -> tuple[int, int]:
        """Bounds of its values for all sizes."""
        if self.is_linear:
            return self.expression.bounds(())
        low = high = 0
        ends = {atom: Expr(0, ((atom, 1),)).bounds(()) for monomial, _ in self._terms for atom in monomial}
        if all(len(set(monomial)) == len(monomial) for monomial, _ in self._terms):
            # It is linear in each factor, so that its extremes are at ends of all.
            corners = [dict(zip(ends, corner, strict=True)) for corner in corners_of(*ends.values())]
            found = [sum(c * prod(known[atom] for atom in m) for m, c in self._terms) for known in corners]
            return min(found), max(found)
        for monomial, factor in self._terms:
            products = [factor * prod(corner) for corner in corners_of(*(ends[atom] for atom in monomial))]
            low, high = low + min(products), high + max(products)
        return low, high

    def at(self, values: Mapping[Size, int]) -> int:
        """The value for values of its sizes."""
        return sum(prod([each.evaluate((), values) for each in factors]) for factors in self.products)

    @property
    def sizes(self) -> list[Size]:
        """The sizes on which it depends."""
        return sizes_in([Expr(0, ((atom, 1),)) for monomial, _ in self._terms for atom in monomial])

    def __str__(self) -> str:
        flat = {m: factor for m, factor in self._terms if len(m) < 2}
        text = str(_number(flat)) if len(flat) < len(self._terms) else self.expression.render(str)
        pieces = [] if text == "0" else [text]
        for monomial, factor in self._terms[len(flat) :]:
            names: list[str] = []
            for atom in monomial:
                step = atom.step if isinstance(atom, Size) and factor % atom.step == 0 else 1
                factor //= step
                names.append(Expr(0, ((atom, step),)).render(str))
            pieces.append("*".join([*names, str(factor)] if factor != 1 else names))
        return "+".join(pieces)

    __repr__ = __str__

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            self._hash = hash(self._terms)
            return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Open) and self._terms == other._terms

    def __add__(self, other: int) -> int:
        return _joined(self, other, 1)

    __radd__ = __add__

    def __sub__(self, other: int) -> int:
        return _joined(self, other, -1)

    def __rsub__(self, other: int) -> int:
        return _joined(-self, other, 1)

    def __neg__(self) -> int:
        return self * -1

    def __mul__(self, other: int) -> int:
        if not _is_number(other):
            return NotImplemented
        found: dict[_Monomial, int] = {}
        for left, factor in self._terms:
            for right, other_factor in _terms(other):
                monomial = tuple(sorted((*left, *right), key=_key))
                found[monomial] = found.get(monomial, 0) + factor * other_factor
        return _number(found)

    __rmul__ = __mul__

    def __floordiv__(self, other: int) -> int:
        if not _is_number(other):
            return NotImplemented
        if (whole := _quotient(self, other)) is not None:
            return whole
        if isinstance(other, Open) or other < 1:
            raise OpenExtent(f"({self}) // ({other}) is no expression of sizes: divisors are positive integers")
        return open_extent(floordiv(self.expression, other, ()))

    def __mod__(self, other: int) -> int:
        return self - self // other * other if _is_number(other) else NotImplemented

    def __divmod__(self, other: int) -> tuple[int, int]:
        return self // other, self % other

    def __lt__(self, other: int) -> bool:
        return _decided(self, "<", other, -1) if _is_number(other) else NotImplemented

    def __le__(self, other: int) -> bool:
        return _decided(self, "<=", other, 0) if _is_number(other) else NotImplemented

    def __gt__(self, other: int) -> bool:
        return not self <= other if _is_number(other) else NotImplemented

    def __ge__(self, other: int) -> bool:
        return not self < other if _is_number(other) else NotImplemented

    def __bool__(self) -> bool:
        low, high = _range(self, 0, 0)
        if low <= 0 <= high:
            raise OpenExtent(f"whether {self} is 0 depends on {_named(self)}", narrower=True)
        return True

    def _refuse(self, *others: Any) -> Any:
        if others and not _is_number(others[0]):
            return NotImplemented
        raise OpenExtent(f"a constant extent is needed, and {self} depends on {_named(self)}")

    __index__ = __int__ = __float__ = __abs__ = __truediv__ = __rtruediv__ = __pow__ = __rpow__ = _refuse
    __rfloordiv__ = __rmod__ = __rdivmod__ = _refuse


def size(name: str, low: int, high: int, *, multiple: int = 1) -> int:
    """A size that is known when the kernel is called: a multiple of `multiple` from `low` to `high`, for shapes.

    Extents may be linear in sizes, with `//` and `%` by numbers. Comparisons hold for all values, or raise UsageError.

    >>> from pdojo import build
    >>> n = build.size("N", 1, 4096)
    >>> x = build.input("x", "f32", (n, 8))
    >>> build.concatenate([x, x[:1]]), build.sum(x, axis=1)
    (<Array f32 [N+1, 8]>, <Array f32 [N]>)
    """
    found = Size(name, low, high, multiple)
    if (problem := name_problem(name) or size_problem(found)) is not None:
        raise UsageError(problem)
    return open_extent(found.expression)


def open_extent(expression: Expr) -> int:
    """The extent that an expression of sizes is."""
    return _number({(): expression.constant, **{(atom,): factor for atom, factor in expression.terms}})


def expression_of(extent: int) -> Expr:
    """An extent as an expression."""
    return extent.expression if isinstance(extent, Open) else const(extent)


def greatest(extents: Iterable[int]) -> tuple[int, ...]:
    """Extents, each the greatest one for all sizes: the box of the iterations."""
    return tuple([bounds_of(extent)[1] for extent in extents])


def lesser(one: int, other: int) -> int:
    """The lesser one for all sizes. Raises OpenExtent if that depends on them."""
    if not is_open([one, other]):
        return min(one, other)
    low, high = _range(one - other, -1, 1)
    if low < 0 < high:
        raise OpenExtent(f"whether {one} <= {other} depends on {_named(one - other)}", narrower=True)
    return one if high <= 0 else other


def is_at_most(one: int, other: int) -> bool:
    """Whether `one` is at most `other` for all sizes."""
    return _range(one - other, 0, 1)[1] <= 0


def is_multiple(extent: int, divisor: int) -> bool:
    """Whether an extent is known to be a multiple of a number for all sizes."""
    return _quotient(extent, divisor) is not None


def sizes_of(extent: int) -> list[Size]:
    """The sizes on which an extent depends."""
    return extent.sizes if isinstance(extent, Open) else []


def is_open(shape: Iterable[int]) -> bool:
    """Whether an extent depends on sizes."""
    return any(isinstance(extent, Open) for extent in shape)


def bounds_of(extent: int) -> tuple[int, int]:
    """Bounds of an extent for all sizes."""
    return extent.bounds if isinstance(extent, Open) else (extent, extent)


def _is_number(value: object) -> bool:
    """Whether a value may be an operand. Raises OpenExtent for a broken number."""
    if isinstance(value, float) and not value.is_integer():
        raise OpenExtent(f"extents are combined with integers, not with {value}")
    return isinstance(value, int | float | Open)


def _terms(value: int) -> tuple[tuple[_Monomial, int], ...]:
    return value.terms if isinstance(value, Open) else (((), int(value)),)


def _key(atom: Atom) -> tuple[int, ...]:
    assert not isinstance(atom, int)
    return atom.key


def _order(monomial: _Monomial) -> tuple[int, list[tuple[int, ...]]]:
    """The order of products of sizes: that of products with one factor more is the same."""
    return len(monomial), [_key(atom) for atom in monomial]


def _number(terms: Mapping[_Monomial, int]) -> int:
    """The number that is a sum: an integer if it is constant."""
    return Open(terms) if any(factor for monomial, factor in terms.items() if monomial) else terms.get((), 0)


def _joined(left: int, right: int, sign: int) -> int:
    if not _is_number(right):
        return NotImplemented
    found = dict(_terms(left))
    for monomial, factor in _terms(right):
        found[monomial] = found.get(monomial, 0) + sign * factor
    return _number(found)


def _quotient(number: int, divisor: int) -> int | None:
    """The quotient without remainder; None if there is none."""
    leading, factor = _terms(divisor)[-1]
    found: dict[_Monomial, int] = {}
    while number != 0:
        monomial, count = _terms(number)[-1]
        rest = list(monomial)
        for atom in leading:
            if atom not in rest:
                return None
            rest.remove(atom)
        if not factor or count % factor:
            return None
        part = {tuple(rest): count // factor}
        found |= part
        number = number - divisor * _number(part)
    return _number(found)


def _decided(left: int, sign: str, right: int, most: int) -> bool:
    """Whether `left - right <= most` for all sizes, which `sign` says. Raises OpenExtent if that depends on them."""
    low, high = _range(left - right, most, most + 1)
    if low <= most < high:
        raise OpenExtent(f"whether {left} {sign} {right} depends on {_named(left - right)}", narrower=True)
    return high <= most


def _range(extent: int, low: int, high: int) -> tuple[int, int]:
    """Bounds of an extent for all sizes; the least and the greatest value if the others leave `low` to `high` open."""
    found = bounds_of(extent)
    if isinstance(extent, Open) and found[0] <= low and found[1] >= high and len(extent.sizes) == 1:
        (size,) = extent.sizes
        if len(size.values) <= MOST_VALUES:
            return _extremes(extent, size)
    return found


@cache
def _extremes(extent: Open, size: Size) -> tuple[int, int]:
    """The least and the greatest value for the values of the only size."""
    found = [extent.at({size: value}) for value in size.values]
    return min(found), max(found)


def _named(extent: int) -> str:
    """The sizes of an extent in messages."""
    assert isinstance(extent, Open)
    return " and ".join([f"the size {each.name}, from {each.low} to {each.high}" for each in extent.sizes])
