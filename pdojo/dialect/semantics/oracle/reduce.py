"""Smaller sizes for a program, so that the exact oracle can enumerate a big kernel."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import cast

from xdsl.dialects.builtin import IndexType, IntegerAttr, MemRefType
from xdsl.ir import Attribute, SSAValue
from xdsl.rewriter import Rewriter

from pdojo.dialect.affine import Expr
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.view.build import nest_of
from pdojo.dialect.view.nest import Nest

MOST_TRIED = 1 << 16
"""Limit of the search for divisors of an extent."""


def reduce_sizes(kernel: KernelOp, limit: int) -> KernelOp | None:
    """A copy with smaller extents and at most `limit` statement instances; None if it would be another program.

    Equal extents stay equal, and different ones different. An extent becomes one of its divisors if it has any, so that
    tile sizes still divide it. The copy is the same program only if `is_resizable`; in practice, before any tiling.
    """
    nest = nest_of(kernel)
    sizes = _shrink(nest, limit) if is_resizable(nest) else None
    return None if sizes is None else resized(kernel, sizes)


def is_resizable(nest: Nest) -> bool:
    """Whether the program can have other extents and stay the same program.

    It can if every index is 0 or the variable of a scope with the extent of the dimension, no scope has a guard and no
    dimension is folded.
    """
    folded = any(slots > 1 for buffer in nest.buffers for slots in buffer.reuse)
    return not folded and not any(scope.guard for scope in nest.scopes) and _is_plain(nest)


def resized(kernel: KernelOp, sizes: Mapping[int, int]) -> KernelOp:
    """A copy with every extent replaced by its entry in `sizes`."""
    small = kernel.clone()
    view = nest_of(small)
    for scope in view.scopes:
        scope.op.properties["extent"] = IntegerAttr(sizes[scope.extent], IndexType())
    for array in view.arrays.values():
        _resize(array.value, sizes)
    return small


def _is_plain(nest: Nest) -> bool:
    for leaf in nest.leaves:
        for access in leaf.accesses:
            for expression, extent in zip(access.index, access.array.shape, strict=True):
                match expression:
                    case Expr(0, ()):
                        pass
                    case Expr(0, ((int() as depth, 1),)) if leaf.chain[depth].extent == extent:
                        pass
                    case _:
                        return False
    return True


def _shrink(nest: Nest, limit: int) -> dict[int, int] | None:
    """A smaller size for each extent; the largest is lowered until all instances together are few enough."""
    extents = {scope.extent for scope in nest.scopes} | {n for a in nest.arrays.values() for n in a.shape}
    sizes = {extent: extent for extent in extents}
    candidates = {extent: _candidates(extent) for extent in extents}
    while sum(prod(sizes[n] for n in leaf.extents) for leaf in nest.leaves) > limit:
        for extent in sorted(extents, key=lambda n: (-sizes[n], n)):
            smaller = [n for n in candidates[extent] if n < sizes[extent] and n not in sizes.values()]
            if smaller:
                sizes[extent] = max(smaller)
                break
        else:
            return None
    return sizes


def _candidates(extent: int) -> list[int]:
    """Sizes to replace an extent: its divisors except 1, or small primes if it has no small divisor.

    Divisors beyond `MOST_TRIED` are not sought, because nobody would enumerate so many instances.
    """
    divisors = [n for n in range(2, min(extent, MOST_TRIED)) if extent % n == 0]
    return divisors if divisors and divisors[0] <= 7 else divisors + [n for n in (3, 5, 7) if n < extent]


def _resize(array: SSAValue, sizes: Mapping[int, int]) -> None:
    old = cast(MemRefType[Attribute], array.type)
    shape = [sizes[n] for n in old.get_shape()]
    Rewriter.replace_value_with_new_type(array, MemRefType(old.element_type, shape, old.layout))
