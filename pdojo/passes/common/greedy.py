"""The naive pass, and the greedy pass for CPUs: naive, then every hardware move that is legal (paper section 4.1)."""

from __future__ import annotations

from pdojo.dialect.attributes import Mapping, Memory
from pdojo.dialect.view.nest import Scope
from pdojo.passes.common.builder import PassBuilder


def naive(builder: PassBuilder) -> None:
    """Join scopes and reuse dimensions until nothing more is legal."""
    builder.exhaust(builder.scopes, "join_scopes", "fused loops keep values in cache")
    builder.exhaust(builder.dimensions, "reuse_dims", "the dimension is dead after each iteration: less memory")


def greedy(builder: PassBuilder) -> None:
    """The naive pass, then threads, vectors, unrolling and faster memory wherever they are legal."""
    naive(builder)
    parallelize_outermost(builder)
    for leaf in list(builder.nest.leaves):
        _vectorize_innermost(builder, leaf.id)
    _unroll_small(builder)
    place_buffers(builder)


def parallelize_outermost(builder: PassBuilder) -> None:
    """Parallelise the outermost scope of every nest that allows it."""
    for node in list(builder.nest.children):
        if isinstance(node, Scope):
            _parallelize(builder, node.id)


def _parallelize(builder: PassBuilder, identifier: str) -> None:
    scope = builder.find_scope(identifier)
    if scope is None or builder.attempt("parallelize", scope, "outermost independent iterations go to threads"):
        return
    for child in scope.children:
        if isinstance(child, Scope):
            _parallelize(builder, child.id)


def _vectorize_innermost(builder: PassBuilder, leaf_id: str) -> None:
    leaf = builder.leaf(leaf_id)
    scope = leaf.parent
    if scope is None or scope.mapping is not Mapping.SEQUENTIAL or len(scope.children) != 1:
        return
    lanes = builder.lanes(leaf)
    if lanes < 2 or scope.extent < lanes:
        return
    why = f"vectors of {lanes} lanes"
    if scope.extent == lanes:
        builder.attempt("vectorize", scope, why)
        return

    def in_tiles() -> bool:
        tiled = builder.attempt("tile_scope", scope, f"tiles of {lanes} for vectors", size=lanes)
        inner = builder.leaf(leaf_id).parent
        return tiled and inner is not None and builder.attempt("vectorize", inner, why)

    builder.transact(in_tiles)


def _unroll_small(builder: PassBuilder) -> None:
    for scope in list(builder.scopes()):
        if scope.mapping is Mapping.SEQUENTIAL and scope.extent <= 8:
            builder.attempt("unroll", scope, "short loops are unrolled")


def place_buffers(builder: PassBuilder) -> None:
    """Put buffers with only constant indices into registers, and other small ones on the stack."""
    for name in list(builder.temporaries()):
        if builder.nest.arrays[name].buffer.memory is Memory.REGISTER:
            continue
        if not builder.attempt("set_location", name, "only constants index it: registers", location="register"):
            builder.attempt("set_location", name, "small enough for the stack", location="stack")
