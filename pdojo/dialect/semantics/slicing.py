"""Large temporaries of which the interpreter stores one slice at a time.

The meaning of a kernel is its result on unfolded arrays. Let every access to a temporary be inside one scope, and let
one dimension be indexed by the variable of that scope in all of them. Then two iterations of the scope share no
element, and successive iterations can use the same memory, which is poisoned before each.
"""

from __future__ import annotations

from collections import abc
from dataclasses import dataclass
from math import prod

from pdojo.dialect.affine import var
from pdojo.dialect.attributes import Mapping
from pdojo.dialect.view.nest import Array, Nest, Scope
from pdojo.dialect.view.storage import accesses_of

LARGE = 1 << 24
"""Number of elements above which only a slice of a temporary is kept."""
SMALL = 1 << 16
"""Number of elements per iteration below which a loop would take longer than whole memory."""


@dataclass(frozen=True)
class Slices:
    """The scopes whose iterations share memory, outermost first, and the dimensions that they index."""

    scopes: tuple[Scope, ...]
    dimensions: frozenset[int]


def slices_of(nest: Nest) -> abc.Mapping[Array, Slices]:
    """Slices of the large temporaries that can be sliced."""
    found: dict[Array, Slices] = {}
    for array in nest.arrays.values():
        if array.intent is None and prod(array.shape) > LARGE:
            slices = _slices(nest, array)
            if slices.scopes:
                found[array] = slices
    return found


def _slices(nest: Nest, array: Array) -> Slices:
    accesses = [(leaf, access) for leaf, access in accesses_of(nest, array.buffer) if access.array is array]
    scopes: list[Scope] = []
    dimensions: set[int] = set()
    left = prod(array.shape)
    for together in zip(*(leaf.chain for leaf, _ in accesses), strict=False):
        scope = together[0]
        variable = var(scope.depth)
        shared = [d for d in range(len(array.shape)) if all(access.index[d] == variable for _, access in accesses)]
        left //= scope.extent
        lockstep = scope.mapping is Mapping.VECTOR
        if left < SMALL or lockstep or any(other is not scope for other in together) or not shared:
            break
        scopes.append(scope)
        dimensions.add(shared[0])
        if left <= LARGE:
            break
    return Slices(tuple(scopes), frozenset(dimensions))
