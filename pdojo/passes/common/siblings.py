"""Fusion of scopes that are siblings, but not neighbours."""

from __future__ import annotations

from pdojo.dialect.view.nest import Node, Scope
from pdojo.passes.common.builder import PassBuilder
from pdojo.transforms.structure.siblings import are_tied


def fuse_siblings(builder: PassBuilder, first: str, second: str, why: str) -> bool:
    """Bring two siblings together and fuse them, or change nothing."""
    one, other = builder.find_scope(first), builder.find_scope(second)
    if one is not None and other is not None and builder.nest.next_sibling(one) is other:
        return builder.attempt("join_scopes", one, why)
    if one is None or other is None or not _may_meet(builder, one, other):
        return False
    return builder.transact(
        lambda: _bring_together(builder, first, second) and builder.attempt("join_scopes", f"%{first}", why)
    )


def _may_meet(builder: PassBuilder, first: Scope, second: Scope) -> bool:
    """False if `_bring_together` certainly fails, because a node is tied to the second loop and to one before it."""
    program = builder.game.program
    nodes = builder.nest.siblings(first)[first.position : second.position]
    return not any(
        are_tied(program, node, second) and any(are_tied(program, before, node) for before in nodes[:number])
        for number, node in enumerate(nodes)
    )


def _bring_together(builder: PassBuilder, first: str, second: str) -> bool:
    """Move `second` up to `first`, and its dependences above `first` if legal."""
    while True:
        one, other = builder.find_scope(first), builder.find_scope(second)
        if one is None or other is None or other.position <= one.position:
            return False
        if other.position == one.position + 1:
            return True
        between = builder.nest.siblings(other)[other.position - 1]
        if builder.attempt("swap_nodes", between, "out of the way of a fusion"):
            continue
        if not _move_above(builder, between, one.position):
            return False


def _move_above(builder: PassBuilder, node: Node, position: int) -> bool:
    identifier = node.id
    while (current := builder.nest.by_id[identifier]).position > position:
        before = builder.nest.siblings(current)[current.position - 1]
        if not builder.attempt("swap_nodes", before, "out of the way of a fusion"):
            return False
    return True
