"""Memory cells of array elements, under slots and private copies.

An *element* is an array and an index: the program's meaning. A *cell* is a place in memory: the program's storage. They
differ only in dimensions with fewer slots than indices. A *reused* dimension (the paper's `:N`) takes one slot, or one
slot per lane if a vector scope indexes it. A *folded* dimension (`:N4`) is a circular buffer: index i takes slot i mod
4. If a threaded scope (`p g b w`) indexes such a dimension, the buffer is *private*: each iteration of that scope has
its own copy, which lives on the stack of the thread. Within a copy, the slot of an access is its index with some
variables set to zero: in a reused dimension the variables of all scopes except vector scopes, in a folded dimension
the variables of threaded scopes. A *swizzle* changes neither elements nor cells, only the addresses of the cells.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import gcd, prod
from typing import TypeAlias

from pdojo.dialect.affine import Expr, Size, const, floordiv, modulo, var
from pdojo.dialect.ops import Swizzle
from pdojo.dialect.strides import LARGEST
from pdojo.dialect.view.nest import Access, Buffer, Leaf, Nest, Scope

_ZERO = const(0)


def slot_index(index: Expr, slots: int, chain: Sequence[Scope]) -> Expr:
    """The slot of an index in one thread's copy, in a dimension of `slots` slots (0: one per index)."""
    if slots == 0:
        return index
    if slots == 1:
        lanes = any(_is_lane(chain[v]) for v in index.variables())
        return _lanes(index, chain) if lanes else _ZERO
    return modulo(_without(index, chain, lambda s: s.mapping.is_threaded), slots, [s.extent for s in chain])


def _is_lane(scope: Scope) -> bool:
    return scope.mapping.is_concurrent and not scope.mapping.is_threaded


def _lanes(index: Expr, chain: Sequence[Scope]) -> Expr:
    """The part of an index that tells lanes apart, shifted so that no slot is negative."""
    slot = _without(index, chain, lambda s: not _is_lane(s))
    return slot - min(0, slot.bounds([s.extent for s in chain])[0])


def _without(index: Expr, chain: Sequence[Scope], dropped: Callable[[Scope], bool]) -> Expr:
    zeros = {v: const(0) for v in index.variables() if dropped(chain[v])}
    return index.substitute(zeros, [s.extent for s in chain]) if zeros else index


def stride_symbol(buffer: Buffer, dimension: int) -> Size:
    """The stride of an interface array's dimension that each call gives, in elements; its name is no kernel's size."""
    return Size(f"{buffer.names[0]}.stride{dimension}", 0, LARGEST)


def numbers_of(nest: Nest) -> list[str]:
    """The names of the numbers that code takes after the arrays: sizes, then the strides that each call gives.

    Strides are in the order of the interface arrays and their dimensions.
    """
    rows = ((b, d, stride) for b in nest.buffers if b.op is None for d, stride in enumerate(b.strides))
    return [*nest.sizes, *(stride_symbol(b, d).name for b, d, stride in rows if stride is None)]


def has_open_strides(buffer: Buffer) -> bool:
    """Whether strides depend on sizes, or are none of a dense array's: only interface arrays have such ones."""
    return buffer.op is None and bool(buffer.sized or buffer.strides)


def open_strides(buffer: Buffer) -> int:
    """How many outer dimensions have strides that depend on sizes, or that are none of a dense array's."""
    if buffer.strides:
        return len(buffer.strides)
    sized = buffer.sized if buffer.op is None else ()
    return max((d for d, extent in enumerate(sized) if not extent.is_constant), default=0)


def stride_divisors(buffer: Buffer) -> list[int]:
    """Numbers that divide the strides, in elements, of the outer dimensions whose strides depend on sizes."""
    if buffer.strides:
        return [1 if stride is None else stride for stride in buffer.strides]
    return [prod(map(divisor_of, buffer.sized[d + 1 :])) for d in range(open_strides(buffer))]


def divisor_of(expression: Expr) -> int:
    """A number that divides the values of an expression."""
    return gcd(expression.constant, *(coefficient for _, coefficient in expression.terms))


Placed: TypeAlias = tuple[Access, Sequence[Scope]]
"""An access and the scopes around it, with the mappings to assume."""


def copy_depths(accesses: Iterable[Placed], reuse: Sequence[int]) -> tuple[int, ...]:
    """Depths of the threaded scopes whose iterations each have their own copy of a buffer; () if all share one.

    `accesses` are all accesses to the buffer. The owner of the copies is the innermost threaded scope that indexes a
    reused dimension; the threaded scopes around it have copies too.
    """
    owner: tuple[Scope, ...] = ()
    for access, chain in accesses:
        for expression, reused in zip(access.index, reuse, strict=True):
            for depth in expression.variables() if reused else ():
                if depth >= len(owner) and chain[depth].mapping.is_threaded:
                    owner = tuple(chain[: depth + 1])
    return tuple(s.depth for s in owner if s.mapping.is_threaded)


def cell_of(access: Access, chain: Sequence[Scope], reuse: Sequence[int], copies: Sequence[int]) -> tuple[Expr, ...]:
    """The cell of an access: its index within a copy of the buffer, and the copy's iterations.

    Equal cells are the same memory. `copies` are the depths that `copy_depths` gives; -1 stands for no copy.
    """
    if not any(reuse):
        return access.index
    within = (slot_index(e, slots, chain) for e, slots in zip(access.index, reuse, strict=True))
    inside = (var(d) if d < len(chain) and chain[d].mapping.is_threaded else const(-1) for d in copies)
    return (*within, *inside)


def physical_index(access: Access, chain: Sequence[Scope]) -> tuple[Expr, ...]:
    """The index of an access into one thread's memory, in slots."""
    reuse = access.array.buffer.reuse
    if not any(reuse):
        return access.index
    return tuple(slot_index(e, slots, chain) for e, slots in zip(access.index, reuse, strict=True))


def granule_numbers(
    index: Sequence[Expr], shape: Sequence[int], dimension: int, swizzle: Swizzle, extents: Sequence[int]
) -> tuple[Expr, Expr]:
    """Two numbers whose exclusive or is the number of an index's granule in a swizzled dimension."""
    granules = shape[dimension] // swizzle.granule
    return floordiv(index[dimension], swizzle.granule, extents), modulo(index[swizzle.by], granules, extents)


def accesses_of(nest: Nest, buffer: Buffer) -> list[tuple[Leaf, Access]]:
    """Every access to an array of the buffer, with its statement, in textual order; the list must not be changed."""
    return nest.accesses.get(buffer, [])


def physical_shape(nest: Nest, buffer: Buffer) -> tuple[int, ...]:
    """The extents of the buffer in memory; of one thread's copy if the buffer is private."""
    if not any(buffer.reuse):
        return buffer.shape
    return nest.about_uses(buffer, "physical shape", lambda: _physical_shape(nest, buffer))


def _physical_shape(nest: Nest, buffer: Buffer) -> tuple[int, ...]:
    shape = [slots or extent for extent, slots in zip(buffer.shape, buffer.reuse, strict=True)]
    for leaf, access in accesses_of(nest, buffer):
        for dimension, expression in enumerate(physical_index(access, leaf.chain)):
            if buffer.reuse[dimension] == 1:
                shape[dimension] = max(shape[dimension], expression.bounds(leaf.extents)[1] + 1)
    return tuple(shape)


def private_scope(nest: Nest, buffer: Buffer) -> Scope | None:
    """The innermost threaded scope whose iterations each have a copy of the buffer; None if all share one."""
    found: Scope | None = None
    for leaf, access in accesses_of(nest, buffer):
        for expression, reused in zip(access.index, buffer.reuse, strict=True):
            for depth in expression.variables() if reused else ():
                scope = leaf.chain[depth]
                if scope.mapping.is_threaded and (found is None or scope.depth > found.depth):
                    found = scope
    return found
