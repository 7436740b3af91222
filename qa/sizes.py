"""Kernels at small sizes, for walks that execute every statement instance."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from random import Random
from typing import TypeAlias, cast

from xdsl.dialects.builtin import IndexType, IntegerAttr, MemRefType
from xdsl.ir import Attribute
from xdsl.rewriter import Rewriter

from pdojo.dialect.affine import Expr
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.semantics.oracle.instances import count_instances
from pdojo.dialect.view.build import nest_of
from pdojo.dialect.view.nest import Buffer, Nest, Scope
from pdojo.errors import NotationError, UsageError
from pdojo.kernels import Workload, workload

SIZES = (2, 3, 4, 5, 6, 7, 8, 12)
"""Sizes: some are multiples of the machine `toy`'s vectors, some are not."""

INSTANCES = 600
"""Greatest number of statement instances of a walk's first program."""

Extent: TypeAlias = Scope | tuple[Buffer, int]
"""An extent's owner: a scope, or a dimension of a buffer."""


def size_classes(nest: Nest) -> list[list[Extent]]:
    """Groups of scopes and dimensions with equal extents, because a scope's variable indexes the dimension.

    Raises UsageError for a kernel with guards, or with an index that is neither 0 nor the variable of a scope over the
    whole dimension: at other sizes it would be another program.
    """
    leader: dict[Extent, Extent] = {scope: scope for scope in nest.scopes}
    leader |= {(b, d): (b, d) for b in nest.buffers for d in range(len(b.shape))}

    def find(extent: Extent) -> Extent:
        while leader[extent] != extent:
            extent = leader[extent]
        return extent

    if any(scope.guard for scope in nest.scopes):
        raise UsageError(f"kernel '{nest.name}' has guards, so its sizes cannot be changed")
    for leaf in nest.leaves:
        for access in leaf.accesses:
            for dimension, expression in enumerate(access.index):
                match expression:
                    case Expr(0, ()):
                        pass
                    case Expr(0, ((int() as depth, 1),)) if leaf.chain[depth].extent == access.array.shape[dimension]:
                        leader[find((access.array.buffer, dimension))] = find(leaf.chain[depth])
                    case _:
                        raise UsageError(
                            f"kernel '{nest.name}' indexes '{access.array.name}' by more than the variables of scopes, "
                            "so its sizes cannot be changed"
                        )
    classes: dict[Extent, list[Extent]] = {}
    for extent in leader:
        classes.setdefault(find(extent), []).append(extent)
    return list(classes.values())


def with_random_sizes(kernel: KernelOp, random: Random) -> KernelOp:
    """A copy of the kernel with an extent of `SIZES` for each group, small enough for exact execution.

    Raises UsageError if the sizes cannot change: guards, folded dimensions, indices that are no plain variables.
    """
    nest = nest_of(kernel)
    if any(slots > 1 for buffer in nest.buffers for slots in buffer.reuse):
        raise UsageError(f"kernel '{nest.name}' has folded dimensions, so its sizes cannot be changed")
    classes = size_classes(nest)
    chosen: dict[Extent, int] = {}
    for attempt in range(1000):
        # Sizes decrease with the attempts, so that the loop ends.
        allowed = SIZES[: max(2, len(SIZES) - attempt // 20)]
        chosen = {extent: size for members in classes for size in [random.choice(allowed)] for extent in members}
        if sum(prod(chosen[scope] for scope in leaf.chain) for leaf in nest.leaves) <= INSTANCES:
            return _resized(kernel, nest, chosen)
    raise UsageError(f"kernel '{nest.name}' has too many nested scopes to be executed exactly")


def small_kernel(name: str, random: Random) -> KernelOp:
    """A library kernel at random sizes, strides and paddings, small enough for exact execution."""
    own = workload(name).sizes
    for attempt in range(1000):
        # Sizes decrease with the attempts, so that the loop ends. Small defaults (a stride, a padding) may stay.
        most = max(2, 8 - attempt // 20)
        given = {n: random.randint(min(default, 1), max(2, min(most, default))) for n, default in own.items()}
        try:
            kernel = Workload(name, tuple(given.items())).instantiate()
        except NotationError:
            # No program exists at these sizes: a window larger than its image, half of an odd size.
            continue
        if count_instances(nest_of(kernel)) <= INSTANCES:
            return kernel
    raise UsageError(f"kernel '{name}' has too many nested scopes to be executed exactly")


def _resized(kernel: KernelOp, nest: Nest, chosen: Mapping[Extent, int]) -> KernelOp:
    small = kernel.clone()
    view = nest_of(small)
    for old, scope in zip(nest.scopes, view.scopes, strict=True):
        scope.op.properties["extent"] = IntegerAttr(chosen[old], IndexType())
    for name, array in view.arrays.items():
        buffer = nest.arrays[name].buffer
        kind = cast(MemRefType[Attribute], array.value.type)
        shape = [chosen[buffer, dimension] for dimension in range(len(buffer.shape))]
        Rewriter.replace_value_with_new_type(array.value, MemRefType(kind.element_type, shape, kind.layout))
    return small
