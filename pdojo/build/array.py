"""Handles of arrays with NumPy's operators: checks of shapes and element types, broadcasting, views, functions by name.

A handle is an element type, a shape, and an operand over the iterations of that shape. Unsigned integers are signless
in memory; the element type of the handle chooses the functions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod
from operator import add, mul
from types import EllipsisType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pdojo.build.extents import axes_of, broadcast_shape, check_shape, shown
from pdojo.build.graph import Computed, Definition, Operand, Read, Write, entries_in, identity, within
from pdojo.build.like_numpy.methods import Methods
from pdojo.build.like_numpy.table import called
from pdojo.build.numbers import (
    Scalar,
    cast_number,
    check_dtype,
    common_type,
    is_unsigned,
    is_within,
    number,
    storage_of,
)
from pdojo.build.plain import array_of, number_of
from pdojo.build.sizes import Open, OpenExtent, expression_of, greatest, is_at_most
from pdojo.build.slicing import Outer, Places, Selected, known_places, selected
from pdojo.dialect.affine import Expr, const, var
from pdojo.dialect.element_types import WIDE, is_float, wide_type
from pdojo.dialect.functions import check_types
from pdojo.dialect.lookups import lookups_in
from pdojo.dialect.names import name_problem
from pdojo.dialect.notation.spelling import CALLS, INFIX, PREFIX
from pdojo.dialect.strides import Strides, strides_problem
from pdojo.dialect.table import Outside
from pdojo.dialect.verification.structure import LARGEST
from pdojo.dialect.view.nest import Constant, Index
from pdojo.errors import UsageError, did_you_mean
from pdojo.math.composites import COMPOSITES, Composite
from pdojo.math.functions import FUNCTIONS, Signature

_UNSIGNED_NAMES = {
    **{"max": "umax", "min": "umin", "/": "udiv", "floordiv": "udiv", "rem": "urem", ">>": "ushr"},
    **{"<": "ult", "<=": "ule", ">": "ugt", ">=": "uge"},
}
"""Functions by their names for signed numbers, and their names for unsigned ones."""
_SIGNS = {"floor_divide": "//", "remainder": "%"}
"""Operators of Python whose functions have other names."""


@dataclass(frozen=True, eq=False, repr=False)
class Array(Methods):
    """The handle of an array that a kernel will read or compute; made by `input` and by functions of handles.

    >>> from pdojo import build
    >>> x = build.input("x", "f32", (4, 8))
    >>> x[:, ::2] * 2 + 1
    <Array f32 [4, 4]>
    """

    dtype: str
    """The element type: `f32`, `i64`, `u8`, `i1` ..."""
    shape: tuple[int, ...]
    operand: Operand
    """The element at each iteration of a nest whose extents are the shape."""

    def __post_init__(self) -> None:
        """Raise UsageError for an extent that no index expression reaches."""
        most = max(greatest(self.shape), default=0)
        if most >= LARGEST:
            raise UsageError(f"an axis of {most} elements is too long; extents stay below 2^62")
        for extent in self.shape:
            if expression_of(extent).bounds(())[0] < 0:
                raise OpenExtent(f"an axis of {extent} elements has less than none for some sizes", narrower=True)

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    @property
    def storage(self) -> str:
        """The element type in memory."""
        return storage_of(self.dtype)

    def view(self, shape: Sequence[int], index: Sequence[Expr]) -> Array:
        """The array of `shape` whose elements are those of this array at `index`, over the iterations of `shape`."""
        if not prod(shape):
            index = [const(0)] * len(index)
        value = Write(self.shape, (), self.operand).reindexed(tuple(shape), index, 0).value
        checked = {entry for entry in entries_in(index) if entry[0].outside is not Outside.CLAMP}
        if checked and checked.difference(entries_in(within(value))):
            # Indices of callers along an axis of one element, or of equal ones, stay, so that calls check them.
            value = Read(_in_memory(self), tuple(index))
        return Array(self.dtype, tuple(shape), value)

    def __repr__(self) -> str:
        return f"<Array {self.dtype} {shown(self.shape)}>"

    def __iter__(self) -> Iterator[Array]:
        return (self[k] for k in range(len(self)))

    def __getitem__(self, items: Item | tuple[Item, ...]) -> Array:
        if isinstance(items, Array) and items.dtype == "i1":
            raise UsageError("x[mask] has a shape that depends on data; build.where and where= keep the shape")
        return sliced(self, items if isinstance(items, tuple) else (items,))

    @property
    def known(self) -> float | None:
        """The number that all elements are; None if they depend on data."""
        return self.operand.value if isinstance(self.operand, Constant) else None

    def mapped(self, function: str, operands: Sequence[Any], parameters: Mapping[str, Any]) -> Array:
        """A function of elements by its name."""
        return map(function, *operands, **parameters)

    def cast(self, dtype: str) -> Array:
        """The array in another element type."""
        return cast(self, dtype)

    def by_sign(self, sign: str, *operands: Any) -> Array:
        """The function of an operator. Raises UsageError for element types that the operator does not take."""
        operands = tuple(promoted(f"'{_SIGNS.get(sign, sign)}'", *operands))
        first = next(x for x in operands if isinstance(x, Array))
        if first.dtype == "i1" and sign in ("+", "-", "*", "floor_divide", "remainder"):
            raise UsageError(f"'{_SIGNS.get(sign, sign)}' does not take i1; use & | ^, or build.cast to a number")
        if sign == "/" and not first.is_float:
            raise UsageError(f"'/' takes floating-point numbers, not {first.dtype}; '//' rounds down")
        return map(sign, *operands)

    def __invert__(self) -> Array:
        if self.is_float:
            raise UsageError(f"'~' takes integers and i1, not {self.dtype}")
        return map("^", self, (1 << int(self.dtype[1:])) - 1 if self.is_unsigned else -1)

    def __pow__(self, other: Like) -> Array:
        return power(*promoted("'**'", self, other))

    def __rpow__(self, other: Scalar) -> Array:
        return power(*promoted("'**'", other, self))


Like: TypeAlias = Array | Scalar
Item: TypeAlias = int | slice | EllipsisType | Array | list[Any] | NDArray[Any] | None


def input(
    name: str,
    dtype: str,
    shape: Sequence[int],
    *,
    const: bool = False,
    strided: bool | Sequence[int | None] = False,
) -> Array:
    """An array that the caller of the kernel passes.

    `dtype` is an element type of the notation, `bool` (`i1`), or `u8 u16 u32 u64`: callers pass these as signed
    integers with the same bits. A `const` array, for example of weights, has the same bytes at every call after it was
    bound (`LoadedKernel.bind_constants`). A `strided` array need not be dense: only its last dimension is contiguous,
    and each call gives the other strides. As a sequence, `strided` has those that are constant, in elements, and None.

    >>> from pdojo import build
    >>> build.input("x", "f32", (4, 8))
    <Array f32 [4, 8]>
    """
    extents, kind, problem = check_shape(shape), check_dtype(dtype), name_problem(name)
    if problem is not None:
        raise UsageError(problem)
    strides: Strides = ()
    if strided is not False:
        strides = (None,) * (len(extents) - 1) if strided is True else tuple(strided)
        if (problem := strides_problem(greatest(extents), strides, kind="constant" if const else "")) is not None:
            raise UsageError(f"strided input '{name}': {problem}")
    definition = Definition(storage_of(kind), extents, name=name, constant=const, strides=strides)
    return Array(kind, extents, Read(definition, identity(extents)))


def constant(value: Scalar, dtype: str, shape: Sequence[int] = ()) -> Array:
    """A number as an array of `shape`, all of whose elements are `value`.

    >>> from pdojo import build
    >>> build.constant(0.5, "f16", (4, 1))
    <Array f16 [4, 1]>
    """
    kind = check_dtype(dtype)
    return Array(kind, check_shape(shape), scalar(value, kind).operand)


def iota(shape: Sequence[int], dtype: str = "i64", axis: int = 0, start: int = 0, step: int = 1) -> Array:
    """The array of `shape` whose elements are `start + step * i` at index i of `axis`; it takes no memory.

    >>> from pdojo import build
    >>> build.iota((8,), "i32", start=3, step=2)
    <Array i32 [8]>
    """
    kind, extents = check_dtype(dtype), check_shape(shape)
    (axis,) = axes_of(axis, len(extents))
    box = greatest(extents)
    expression = (var(axis) * step + start).substitute({}, box) if prod(extents) else const(0)
    for bound in expression.bounds(box) if prod(extents) else ():
        if abs(bound) >= LARGEST:
            raise UsageError(f"{bound} is too large for iota: its numbers stay below 2^62")
        number(float(bound) if is_float(kind) else bound, kind)
    return Array(kind, extents, Index(expression, storage_of(kind)))


def define(dtype: str, shape: Sequence[int], *writes: Write) -> Array:
    """The handle of a new array that `writes` write, in order."""
    definition = Definition(storage_of(dtype), tuple(shape), writes)
    return Array(dtype, tuple(shape), Read(definition, identity(shape)))


def scalar(value: Scalar, dtype: str) -> Array:
    """A number, or an extent that depends on sizes, as an array without axes."""
    if not isinstance(value, Open):
        return Array(dtype, (), number(value, dtype))
    if not is_float(dtype):
        for bound in value.bounds:
            number(bound, dtype)
    if value.is_linear:
        return Array(dtype, (), Index(value.expression, storage_of(dtype)))
    parts = [reduce(mul, [Array("i64", (), Index(each, "i64")) for each in factors]) for factors in value.products]
    return cast(reduce(add, parts), dtype)


def is_whole(x: Array) -> bool:
    """Whether a handle is an array as it is in memory, not a view."""
    return (
        isinstance(x.operand, Read) and x.operand.definition.shape == x.shape and x.operand.index == identity(x.shape)
    )


def _in_memory(x: Array) -> Definition:
    """The array of which a handle is the whole, or a new one with its elements."""
    if not is_whole(x):
        x = define(x.dtype, x.shape, Write(x.shape, identity(x.shape), x.operand))
    assert isinstance(x.operand, Read)
    return x.operand.definition


def broadcast_to(x: Array, shape: Sequence[int]) -> Array:
    """The array with `shape`, repeated along new axes and axes of extent 1; a view.

    >>> from pdojo import build
    >>> build.broadcast_to(build.input("b", "f32", (8,)), (4, 8))
    <Array f32 [4, 8]>
    """
    extents = check_shape(shape)
    if broadcast_shape(x.shape, extents) != extents:
        raise UsageError(f"shape {shown(x.shape)} does not broadcast to {shown(extents)}")
    new = len(extents) - x.rank
    index = [const(0) if extent == 1 else var(new + d) for d, extent in enumerate(x.shape)]
    return x.view(extents, index)


def sliced(x: Array, items: Sequence[Item], outside: Outer = "wrap") -> Array:
    """The view `x[items]`; `outside` is the meaning of callers' indices that are outside of their axis."""
    return x.view(*selected(x.shape, [each for item in items for each in _selected(item)], outside))


def _selected(item: Item) -> list[Selected]:
    """The form in which `selected` takes an item: a mask of several axes is an array of indices for each."""
    if isinstance(item, Array):
        return [Places(item.dtype, item.shape, item.operand)]
    if isinstance(item, list | np.ndarray):
        return [*known_places(np.asarray(item))]
    return [int(item) if isinstance(item, np.integer) else item]


def promoted(function: str, *operands: Any) -> list[Any]:
    """The operands in their common element type; NumPy's arrays become handles, and numbers stay numbers.

    Raises UsageError, which cites `function`, if there is no such type.
    """
    given = [x if array_of(x) is None else called("asarray", (x,), {}) for x in operands]
    kinds = [x.dtype for x in given if isinstance(x, Array)]
    kind = common_type(function, kinds) if kinds else ""
    return [cast(x, kind) if isinstance(x, Array) else x for x in given]


def map(function: str, *operands: Like, **parameters: Like | None) -> Array:
    """A function at every element: shapes broadcast, numbers take the element type of the arrays.

    `function` is a sign (`+`), a name (`exp`, `max`, `select`) or a full name (`arith.remf`) of the notation, or a
    composite (`erfc`, `mish`), which may have `parameters`. For unsigned integers and `i1`, the signs and names mean
    the unsigned functions. Functions like `exp` compute f16 and bf16 in f32.

    >>> from pdojo import build
    >>> x = build.input("x", "f32", (4, 1))
    >>> build.map("max", x, build.input("y", "f32", (8,)))
    <Array f32 [4, 8]>
    """
    if function in COMPOSITES:
        return _composed(COMPOSITES[function], operands, parameters)
    if parameters:
        raise UsageError(f"'{function}' has no parameters")
    arrays = _alike(function, operands)
    dtype = arrays[-1].dtype
    name = _UNSIGNED_NAMES.get(function, function) if is_unsigned(dtype) else function
    if function == "abs" and is_unsigned(dtype):
        return arrays[0]
    found = _function(name, function, arrays)
    record = FUNCTIONS[found]
    if dtype in WIDE and record.bound is not None:
        return cast(map(found, *(wide(array) for array in arrays)), dtype)
    shape = broadcast_shape(*(array.shape for array in arrays))
    compares = record.signature in (Signature.COMPARE_FLOAT, Signature.COMPARE_INTEGER)
    return apply(found, [broadcast_to(array, shape) for array in arrays], "i1" if compares else dtype)


def _alike(function: str, operands: Sequence[Like]) -> list[Array]:
    """The operands as arrays of one element type; the condition of `select` has its own."""
    apart = 1 if function in ("select", "arith.select") else 0
    arrays = [operand for operand in operands[apart:] if isinstance(operand, Array)]
    if not arrays:
        raise UsageError(f"'{function}' needs a handle among its operands; build.constant makes one of a number")
    dtypes = list(dict.fromkeys(array.dtype for array in arrays))
    if len(dtypes) > 1:
        raise UsageError(f"'{function}' takes operands of one element type, not {' and '.join(dtypes)}; use build.cast")
    kinds = ["i1"] * apart + dtypes * (len(operands) - apart)
    return [
        operand if isinstance(operand, Array) else scalar(operand, kind)
        for operand, kind in zip(operands, kinds, strict=True)
    ]


def _function(name: str, given: str, operands: Sequence[Array]) -> str:
    """The function that a name means for these operands. Raises UsageError, which cites `given`, if there is none."""
    signs = PREFIX if len(operands) == 1 else INFIX
    candidates = signs.get(name) or CALLS.get(name) or ((name,) if name in FUNCTIONS else ())
    if not candidates or FUNCTIONS[candidates[0]].signature is Signature.CAST:
        hint = "use build.cast" if candidates else did_you_mean(given, (*CALLS, *FUNCTIONS, *COMPOSITES))
        raise UsageError(f"'{given}' is no function of elements; {hint}")
    arities = sorted({FUNCTIONS[candidate].arity for candidate in candidates})
    if len(operands) not in arities:
        raise UsageError(f"'{given}' takes {arities[0]} operand{'s' * (arities[0] != 1)}, not {len(operands)}")
    types = [operand.storage for operand in operands]
    for candidate in candidates:
        if any(check_types(candidate, types, result) is None for result in ("i1", types[-1])):
            return candidate
    raise UsageError(f"'{given}' does not take {', '.join(operand.dtype for operand in operands)}")


def _composed(record: Composite, operands: Sequence[Like], parameters: Mapping[str, Any]) -> Array:
    """A composite function, computed in the type that its record says and rounded once."""
    name, count = record.name, len(record.operands)
    if len(operands) != count:
        raise UsageError(f"'{name}' takes {count} operand{'s' * (count != 1)}, not {len(operands)}")
    for parameter in parameters:
        if parameter not in record.parameters:
            raise UsageError(f"'{name}' has no parameter '{parameter}'; {did_you_mean(parameter, record.parameters)}")
    arrays = _alike(name, operands)
    dtype = arrays[0].dtype
    if record.computing(dtype) is None:
        takes = "floating-point numbers" if not is_float(dtype) else "f16, bf16 and f32"
        raise UsageError(f"'{name}' takes {takes}, not {dtype}; use build.cast")
    found = record.applied(arrays, parameters)
    assert isinstance(found, Array)
    return found


def power(x: Like, exponent: Like) -> Array:
    """`x` to the power of `exponent`, as NumPy's `**`; integers take constant exponents from 0 only.

    Small constant exponents are products, square roots and reciprocals.

    >>> from pdojo import build
    >>> build.power(build.input("x", "f32", (4,)), 3)
    <Array f32 [4]>
    """
    if isinstance(x, Array) and not isinstance(exponent, Array):
        exponent = number_of(exponent)
        whole = int(exponent) if float(exponent).is_integer() else None
        if whole is not None and 0 < whole <= 4:
            return _product_of(x, whole)
        if is_float(x.dtype) and exponent in (0.5, -0.5, -1):
            return map("/", 1, x) if exponent == -1 else map("sqrt" if exponent > 0 else "rsqrt", x)
        if not is_float(x.dtype):
            if whole is None or whole < 0:
                raise UsageError(f"integers have no power {exponent}; use build.cast")
            number(whole, "i64")
            return _product_of(x, whole) if whole else constant(1, x.dtype, x.shape)
    elif isinstance(exponent, Array) and not is_float(exponent.dtype):
        raise UsageError("integers are raised to constant powers only; use build.cast")
    return map("pow", x, exponent)


def _product_of(x: Array, exponent: int) -> Array:
    """`x` to a power of at least 1, by repeated squaring."""
    if exponent == 1:
        return x
    half = _product_of(x, exponent // 2)
    square = map("*", half, half)
    return map("*", square, x) if exponent % 2 else square


def cast(x: Array, dtype: str) -> Array:
    """The array in another element type; to `i1`, everything but 0 is true.

    Floating-point numbers are rounded to nearest, to integers toward 0. Integers keep their low bits.

    >>> from pdojo import build
    >>> build.cast(build.input("x", "u8", (4,)), "f32")
    <Array f32 [4]>
    """
    kind = check_dtype(dtype)
    if kind == x.dtype:
        return x
    if isinstance(x.operand, Constant) and (known := cast_number(x.operand.value, x.dtype, kind)) is not None:
        return Array(kind, x.shape, known)
    if kind == "i1":
        return map("!=", x, 0)
    storage = storage_of(kind)
    if x.storage == storage:
        return Array(kind, x.shape, x.operand)
    if isinstance(x.operand, Index) and is_within(x.dtype, kind):
        return Array(kind, x.shape, Index(x.operand.expression, storage))
    if x.dtype in WIDE and kind in WIDE:
        return cast(wide(x), kind)
    unsigned = is_unsigned(kind if is_float(x.dtype) else x.dtype)
    for candidate in (*(CALLS["ucast"] if unsigned else ()), *CALLS["cast"]):
        if check_types(candidate, (x.storage,), storage) is None:
            return _cast_once(candidate, x, kind)
    raise AssertionError((x.dtype, kind))


def _cast_once(function: str, x: Array, dtype: str) -> Array:
    """The cast `function`; casts of one array, also of its views, share a definition."""
    read = x.operand
    if not isinstance(read, Read) or not _is_within(read.definition, x.shape):
        return apply(function, [x], dtype)
    known = read.definition.casts
    if (function, dtype) not in known:
        result = apply(function, [x], dtype).operand
        assert isinstance(result, Read)
        known[function, dtype] = result.definition
    return Array(dtype, x.shape, Read(known[function, dtype], read.index))


def apply(function: str, operands: Sequence[Array], dtype: str) -> Array:
    """A function of arrays of one shape, at every element; the result is of type `dtype`.

    A function of one view that has all elements of an array, or repeats some, is a view of the function of the array.
    """
    shape = operands[0].shape
    inputs = tuple(operand.operand for operand in operands)
    seen = {each for each in inputs if not _is_scalar(each)}
    if len(seen) == 1 and isinstance(read := seen.pop(), Read) and _is_within(read.definition, shape):
        shape = read.definition.shape
        inputs = tuple(each if _is_scalar(each) else Read(read.definition, identity(shape)) for each in inputs)
        result = define(dtype, shape, Write(shape, identity(shape), Computed(function, inputs, storage_of(dtype))))
        assert isinstance(result.operand, Read)
        return Array(dtype, operands[0].shape, Read(result.operand.definition, read.index))
    return define(dtype, shape, Write(shape, identity(shape), Computed(function, inputs, storage_of(dtype))))


def _is_within(definition: Definition, shape: Sequence[int]) -> bool:
    """Whether an array has elements, and never more of them than a shape."""
    return bool(count := prod(definition.shape)) and is_at_most(count, prod(shape))


def _is_scalar(operand: Operand) -> bool:
    """Whether an operand is a constant, or an extent that depends on sizes."""
    if isinstance(operand, Index):
        return (
            not operand.expression.is_constant
            and not operand.expression.variables()
            and not lookups_in([operand.expression])
        )
    return isinstance(operand, Constant)


def wide(x: Array) -> Array:
    """The array in the type in which functions of several steps compute."""
    return cast(x, wide_type(x.dtype))
