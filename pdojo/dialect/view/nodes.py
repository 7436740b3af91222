"""Questions about the nodes of a view."""

from __future__ import annotations

from collections.abc import Iterator

from pdojo.dialect.affine import Expr, IndexArray, Size, const, modulo, var
from pdojo.dialect.attributes import Mapping
from pdojo.dialect.lookups import lookups_in
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.view.nest import Buffer, Node, Scope, fact, leaves_of


def named_around(node: Node) -> dict[str, Size | IndexArray]:
    """The sizes and arrays of indices of the kernel around a node, by name."""
    op = node.op.parent_op()
    while op is not None and not isinstance(op, KernelOp):
        op = op.parent_op()
    return {} if op is None else {**op.known_sizes(), **op.index_arrays()}


def bound_of(constraint: Expr, depth: int) -> Expr | None:
    """The number below which a constraint keeps the variable at a depth, if that depends on sizes only; else None."""
    bound = constraint + var(depth) + 1
    return None if bound.variables() or lookups_in([bound]) else bound


def extent_and_guard(scope: Scope) -> tuple[Expr, tuple[Expr, ...]]:
    """The number of iterations as an expression of sizes, and the other constraints of the guard.

    A scope whose extent E depends on sizes, and is at least 1, has the greatest value of E as `extent`, and the
    constraint that its variable stays below E.
    """
    for extent, constraint in _stated_extents(scope):
        if extent.bounds(())[0] >= 1:
            position = scope.guard.index(constraint)
            return extent, (*scope.guard[:position], *scope.guard[position + 1 :])
    return const(scope.extent), scope.guard


def run_time_extent(scope: Scope) -> tuple[Expr, Expr] | None:
    """The number of iterations as an expression of sizes, and the constraint that states it; None if it is constant."""
    return next(_stated_extents(scope), None)


def _stated_extents(scope: Scope) -> Iterator[tuple[Expr, Expr]]:
    """The expressions of sizes that a guard states as the number of iterations, with their constraints."""
    for constraint in scope.guard:
        extent = bound_of(constraint, scope.depth)
        if extent is not None and extent.terms:
            low, high = extent.bounds(())
            if low >= 0 and high == scope.extent:
                yield extent, constraint


def extent_of(scope: Scope) -> Expr:
    """The number of iterations, as an expression of sizes."""
    found = run_time_extent(scope)
    return const(scope.extent) if found is None else found[0]


def is_plain(scope: Scope) -> bool:
    """True if all iterations of a sequential scope run: no guard but the one that states an extent of sizes."""
    found = run_time_extent(scope)
    is_full = not scope.guard or (found is not None and scope.guard == (found[1],))
    return scope.mapping is Mapping.SEQUENTIAL and is_full


def is_whole(scope: Scope, size: int) -> bool:
    """True if the iterations of a scope are whole tiles of `size` iterations, for all sizes of the kernel."""
    return modulo(extent_of(scope), size, ()) == const(0)


def buffers_of(root: Node) -> frozenset[Buffer]:
    """The buffers that a top-level node uses."""

    def used() -> frozenset[Buffer]:
        return frozenset(access.array.buffer for leaf in leaves_of(root) for access in leaf.accesses)

    return fact(root.facts, "buffers", used)


def nodes_of(node: Node) -> Iterator[Node]:
    """A node and all nodes inside, parents first, in textual order."""
    yield node
    for child in node.children if isinstance(node, Scope) else ():
        yield from nodes_of(child)
