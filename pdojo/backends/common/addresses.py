"""Addresses of accesses: layouts, offsets, alignment, lanes."""

from __future__ import annotations

from collections.abc import Mapping as MappingABC
from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd, prod

from pdojo.dialect.affine import Atom, Expr, IndexArray, Lookup, Size, atom_variables, const, modulo
from pdojo.dialect.functions import byte_width
from pdojo.dialect.lookups import along, lookups_in
from pdojo.dialect.table import Table
from pdojo.dialect.view.nest import Access, Buffer, Nest, Scope
from pdojo.dialect.view.storage import (
    divisor_of,
    granule_numbers,
    physical_index,
    physical_shape,
    stride_symbol,
)
from pdojo.errors import LoweringError


@dataclass(frozen=True, slots=True)
class BufferLayout:
    """The row-major layout of one copy of a buffer in memory."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    """Strides in elements."""
    element_bytes: int
    sized: tuple[Expr, ...] = ()
    """The extents as expressions of sizes, if the memory is an interface array's, whose strides then depend on them.

    Other memory has the strides of the greatest extents."""
    given: tuple[Size | None, ...] = ()
    """Per outer dimension, the stride that each call gives; None, or beyond the end, where `strides` has it."""

    def factor(self, dimension: int) -> tuple[int, tuple[Expr, ...]]:
        """The stride of a dimension as a number and what it is multiplied by: extents by sizes, or a given stride."""
        given = self.given[dimension] if dimension < len(self.given) else None
        if given is not None:
            return 1, (given.expression,)
        if not self.sized:
            return self.strides[dimension], ()
        inner = self.sized[dimension + 1 :]
        return prod(e.constant for e in inner if e.is_constant), tuple(e for e in inner if not e.is_constant)

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def size_bytes(self) -> int:
        """Bytes of one copy."""
        return self.size * self.element_bytes


def layout_of(nest: Nest, buffer: Buffer) -> BufferLayout:
    """The layout of one copy of `buffer`; a private buffer has a copy per thread."""
    shape = physical_shape(nest, buffer)
    if buffer.strides:
        given = tuple(stride_symbol(buffer, d) if s is None else None for d, s in enumerate(buffer.strides))
        known = (*(stride or 0 for stride in buffer.strides), 1)
        return BufferLayout(shape, known, byte_width(buffer.dtype), given=given)
    strides = [1] * len(shape)
    for dimension in range(len(shape) - 2, -1, -1):
        strides[dimension] = strides[dimension + 1] * shape[dimension + 1]
    sized = buffer.sized if buffer.op is None else ()
    return BufferLayout(shape, tuple(strides), byte_width(buffer.dtype), sized)


@dataclass(frozen=True, slots=True)
class Exchange:
    """A swizzled position `factor * (left xor right)`; both are below the number of granules, a power of two."""

    left: Expr
    right: Expr
    factor: int


@dataclass(frozen=True, slots=True)
class Scaled:
    """A distance `factor * index * product(extents)` that depends on sizes or on a given stride."""

    index: Expr
    factor: int
    extents: tuple[Expr, ...]
    """Expressions of sizes, or a stride that callers give."""

    @property
    def divisor(self) -> int:
        """A number that certainly divides the distance."""
        return self.factor * prod(map(divisor_of, self.extents))


@dataclass(frozen=True, slots=True)
class Address:
    """Distance of an element from the start of its buffer, in elements: `linear`, `exchanges` and `scaled` summed."""

    linear: Expr
    exchanges: tuple[Exchange, ...] = ()
    """One exchange per swizzled dimension."""
    scaled: tuple[Scaled, ...] = ()
    """The distances of the dimensions whose strides depend on sizes."""


def address_of(access: Access, layout: BufferLayout, chain: Sequence[Scope]) -> Address:
    """The position of the accessed element in its buffer."""
    swizzles, shape = access.array.buffer.swizzles, access.array.buffer.shape
    extents = [s.extent for s in chain]
    total = const(0)
    exchanges: list[Exchange] = []
    scaled: list[Scaled] = []
    for dimension, index in enumerate(physical_index(access, chain)):
        stride, sized = layout.factor(dimension)
        if sized:
            scaled.append(Scaled(index, stride, sized))
            continue
        if dimension not in swizzles:
            total = total + index * stride
            continue
        swizzle = swizzles[dimension]
        total = total + modulo(index, swizzle.granule, extents) * stride
        left, right = granule_numbers(access.index, shape, dimension, swizzle, extents)
        exchanges.append(Exchange(left, right, swizzle.granule * stride))
    return Address(total, tuple(exchanges), tuple(scaled))


def address(access: Access, layout: BufferLayout, chain: Sequence[Scope]) -> Expr:
    """Distance of the accessed element from the start of its buffer, in elements.

    For backends without swizzled addresses (see `address_of`). Raises LoweringError for a swizzled buffer.
    """
    found = address_of(access, layout, chain)
    if found.exchanges:
        raise LoweringError(
            f"'{access.array.name}' is swizzled, which this backend cannot do; apply unswizzle_dim first"
        )
    if found.scaled:
        raise LoweringError(f"the strides of '{access.array.name}' are known at run time, which this backend cannot do")
    return found.linear


def bind(expression: Expr, known: MappingABC[int, int], extents: Sequence[int]) -> Expr:
    """Substitute the variables in `known` by their values; `extents` has the extents of all enclosing scopes."""
    used = [d for d in expression.variables() if d in known] if known else []
    if not used:
        return expression
    return expression.substitute({d: const(known[d]) for d in used}, extents)


def known_alignment(expression: Expr, element_bytes: int, base: int) -> int:
    """The largest power of two (in bytes) that always divides the address `base + element_bytes * expression`."""
    divisor = gcd(base, expression.constant * element_bytes)
    for _, coefficient in expression.terms:
        divisor = gcd(divisor, coefficient * element_bytes)
    return divisor & -divisor


@dataclass(frozen=True, slots=True)
class Lanes:
    """The values of an expression over the lanes of a vector scope: `base + offsets[lane]`."""

    base: Expr
    """The part that is equal in all lanes."""
    offsets: tuple[int, ...] | None
    """The offset of each lane; None if offsets depend on other variables, and then `base` is the whole expression."""

    @property
    def uniform(self) -> bool:
        """Whether all lanes have one value."""
        return self.offsets is not None and not any(self.offsets)

    @property
    def stride(self) -> int | None:
        """The distance between neighbouring lanes; None if distances differ or are unknown."""
        if self.offsets is None:
            return None
        step = self.offsets[1] if len(self.offsets) > 1 else 1
        return step if all(o == k * step for k, o in enumerate(self.offsets)) else None


def lanes_of(expression: Expr, depth: int, extents: Sequence[int]) -> Lanes:
    """Split an expression into a part common to all lanes of the vector scope at `depth`, and one offset per lane."""
    extent = extents[depth]
    if not expression.uses(depth):
        return Lanes(expression, (0,) * extent)
    expression = along(expression, depth, extents)
    shared = Expr(expression.constant, tuple(t for t in expression.terms if not _atom_uses(t[0], depth)))
    varying = expression - shared
    is_known = all(isinstance(found.table, Table) for found in lookups_in([varying]))
    if is_known and varying.variables() == frozenset((depth,)):
        values = [0] * (depth + 1)
        offsets: list[int] = []
        for lane in range(extent):
            values[depth] = lane
            offsets.append(varying.evaluate(values))
        first = offsets[0]
        return Lanes(shared + first, tuple(o - first for o in offsets))
    return Lanes(expression, None)


def _atom_uses(atom: Atom, depth: int) -> bool:
    return depth in atom_variables(atom)


def entries_along(table: Table | IndexArray) -> tuple[Expr, ...]:
    """The number of entries in each dimension."""
    return (const(len(table.entries)),) if isinstance(table, Table) else table.extents


def within_table(lookup: Lookup, extents: Sequence[int]) -> bool:
    """Whether a lookup finds an entry in every iteration of the box.

    Where it does not, guards keep the statement from running; code that computes its place earlier must stay inside.
    """
    counts = entries_along(lookup.table)
    return all(is_within(e, count, extents) for e, count in zip(lookup.operands, counts, strict=True))


def is_within(index: Expr, extent: Expr, extents: Sequence[int]) -> bool:
    """Whether an index is certainly within a dimension in every iteration of the box."""
    return index.bounds(extents)[0] >= 0 and (index - extent).bounds(extents)[1] < 0


def spell(access: Access, chain: Sequence[Scope]) -> str:
    """The access in the notation, for messages: `x[{0},{1}*16+{2}]`."""
    index = ",".join(e.render(lambda d: f"{{{d}}}") for e in access.index)
    return f"{access.array.name}[{index}]"


def refuse_strides(nest: Nest, backend: str) -> None:
    """Raise LoweringError for a kernel with strided arrays, for backends that take dense ones only."""
    if strided := [buffer for buffer in nest.buffers if buffer.strides]:
        raise LoweringError(f"{backend} takes dense arrays only, and '{strided[0].names[0]}' is strided")


def refuse_indices(nest: Nest, backend: str) -> None:
    """Raise LoweringError for a kernel with indices that callers give, for backends that take tables only."""
    if nest.index_arrays:
        name = next(iter(nest.index_arrays))
        raise LoweringError(f"{backend} takes tables only, and the indices '{name}' are known at run time")
