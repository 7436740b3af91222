"""The methods and attributes of NumPy's arrays, as a base of handles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn, Self, TypeAlias

from pdojo.build.like_numpy.table import FUNCTIONS, called, numpy_name
from pdojo.errors import UsageError, did_you_mean
from pdojo.math.composites.elements import Element

Axes: TypeAlias = int | Sequence[int] | None
"""Axes, counted from the end if negative; None is all."""


class NoAttribute(UsageError, AttributeError):
    """An attribute that handles do not have."""


class Methods(Element):
    """NumPy's methods: each is the function of NumPy of its name."""

    shape: tuple[int, ...]

    def __array_ufunc__(self, ufunc: Any, method: str, *operands: Any, **keywords: Any) -> Any:
        name = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
        return called(name, operands, keywords)

    def __array_function__(self, function: Any, types: Any, arguments: Sequence[Any], keywords: dict[str, Any]) -> Any:
        return called(numpy_name(function), arguments, keywords)

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        raise UsageError("a handle has no elements before the kernel runs; np.stack joins handles")

    def __bool__(self) -> NoReturn:
        raise UsageError("a handle has no truth value; a kernel has no branches: use build.where")

    def _no_number(self) -> NoReturn:
        raise UsageError("a handle is no number before the kernel runs; its shape, and a slice of it, are known")

    __int__ = __float__ = __complex__ = __index__ = _no_number

    def __setitem__(self, items: Any, value: Any) -> NoReturn:
        raise UsageError("a handle is not written in place; np.where, build.put_at and build.assemble make new arrays")

    def __len__(self) -> int:
        if not self.shape:
            raise UsageError("an array without axes has no length")
        return self.shape[0]

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            known = [each for each in dir(type(self)) if not each.startswith("_")]
            hint = f"np.{name} takes handles" if name in FUNCTIONS else did_you_mean(name, known)
            hint = hint if not hint.startswith("known:") else "docs/build.md lists methods and functions"
            raise NoAttribute(f"a handle has no attribute '{name}'; {hint}")

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def T(self) -> Self:
        """The array with its axes in reverse order."""
        return self._by("transpose")

    @property
    def mT(self) -> Self:
        """The array with its last two axes swapped."""
        return self._by("matrix_transpose")

    def _by(self, name: str, *arguments: Any, **keywords: Any) -> Self:
        """The result of NumPy's function of a name."""
        return called(name, (self, *arguments), keywords)

    def __pos__(self) -> Self:
        return self

    def __matmul__(self, other: Self) -> Self:
        return self._by("matmul", other)

    def __rmatmul__(self, other: Any) -> Self:
        return called("matmul", (other, self), {})

    def __divmod__(self, other: Self | float) -> tuple[Self, Self]:
        return self // other, self % other

    def __rdivmod__(self, other: float) -> tuple[Self, Self]:
        return other // self, other % self

    def sum(self, axis: Axes = None, dtype: Any = None, **options: Any) -> Self:
        """The sum along `axis`, as `np.sum`: `keepdims`, `initial`, `where`."""
        return self._by("sum", axis, dtype, **options)

    def prod(self, axis: Axes = None, dtype: Any = None, **options: Any) -> Self:
        """The product along `axis`, as `np.prod`: `keepdims`, `initial`, `where`."""
        return self._by("prod", axis, dtype, **options)

    def mean(self, axis: Axes = None, dtype: Any = None, **options: Any) -> Self:
        """The mean along `axis`, as `np.mean`: `keepdims`, `where`."""
        return self._by("mean", axis, dtype, **options)

    def var(self, axis: Axes = None, dtype: Any = None, **options: Any) -> Self:
        """The variance along `axis`, as `np.var`: `ddof`, `keepdims`, `where`."""
        return self._by("var", axis, dtype, **options)

    def std(self, axis: Axes = None, dtype: Any = None, **options: Any) -> Self:
        """The standard deviation along `axis`, as `np.std`: `ddof`, `keepdims`, `where`."""
        return self._by("std", axis, dtype, **options)

    def max(self, axis: Axes = None, **options: Any) -> Self:
        """The greatest element along `axis`, as `np.max`: `keepdims`, `initial`, `where`."""
        return self._by("max", axis, **options)

    def min(self, axis: Axes = None, **options: Any) -> Self:
        """The least element along `axis`, as `np.min`: `keepdims`, `initial`, `where`."""
        return self._by("min", axis, **options)

    def any(self, axis: Axes = None, **options: Any) -> Self:
        """Whether an element along `axis` is not 0, as `np.any`: `keepdims`, `where`."""
        return self._by("any", axis, **options)

    def all(self, axis: Axes = None, **options: Any) -> Self:
        """Whether no element along `axis` is 0, as `np.all`: `keepdims`, `where`."""
        return self._by("all", axis, **options)

    def argmax(self, axis: int | None = None, *, keepdims: bool = False) -> Self:
        """The index of the greatest element along `axis`, as `np.argmax`; of all elements in order for None."""
        return self._by("argmax", axis, keepdims=keepdims)

    def argmin(self, axis: int | None = None, *, keepdims: bool = False) -> Self:
        """The index of the least element along `axis`, as `np.argmin`; of all elements in order for None."""
        return self._by("argmin", axis, keepdims=keepdims)

    def cumsum(self, axis: int | None = None, dtype: Any = None) -> Self:
        """The sums of the elements up to each one, as `np.cumsum`."""
        return self._by("cumsum", axis, dtype)

    def cumprod(self, axis: int | None = None, dtype: Any = None) -> Self:
        """The products of the elements up to each one, as `np.cumprod`."""
        return self._by("cumprod", axis, dtype)

    def reshape(self, *shape: Any) -> Self:
        """The elements in another shape, of which one extent may be -1."""
        return self._by("reshape", _one(shape))

    def transpose(self, *axes: Any) -> Self:
        """The array with its axes in the order `axes`; none reverses them."""
        return self._by("transpose", _one(axes) if axes else None)

    def swapaxes(self, one: int, other: int) -> Self:
        """The array with two axes swapped."""
        return self._by("swapaxes", one, other)

    def squeeze(self, axis: Axes = None) -> Self:
        """The array without axes of extent 1."""
        return self._by("squeeze", axis)

    def ravel(self) -> Self:
        """The elements along one axis."""
        return self._by("ravel")

    def flatten(self) -> Self:
        """The elements along one axis."""
        return self._by("ravel")

    def astype(self, dtype: Any) -> Self:
        """The array in another element type: one of pdojo's names, or of NumPy's types."""
        return self._by("astype", dtype)

    def clip(self, min: Any = None, max: Any = None) -> Self:  # NumPy's names
        """The elements, but at least `min` and at most `max`."""
        return self._by("clip", min, max)

    def round(self, decimals: int = 0) -> Self:
        """The elements rounded to so many decimals, ties to even."""
        return self._by("round", decimals)

    def repeat(self, repeats: int | Sequence[int], axis: int | None = None) -> Self:
        """Every element so many times, as `np.repeat`."""
        return self._by("repeat", repeats, axis)

    def take(self, indices: Any, axis: int | None = None) -> Self:
        """The elements at indices, as `np.take`."""
        return self._by("take", indices, axis)

    def dot(self, other: Any) -> Self:
        """The product, as `np.dot`."""
        return self._by("dot", other)

    def trace(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Self:
        """The sum of a diagonal, as `np.trace`."""
        return self._by("trace", offset, axis1, axis2)

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Self:
        """The elements of a diagonal, as `np.diagonal`."""
        return self._by("diagonal", offset, axis1, axis2)

    def copy(self) -> Self:
        """The array itself: no handle is written in place."""
        return self


def _one(arguments: tuple[Any, ...]) -> Any:
    """The only argument, or all of them."""
    return arguments[0] if len(arguments) == 1 else arguments
