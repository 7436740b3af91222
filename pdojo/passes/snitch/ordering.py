"""The order of independent statements, so that fewer streams deliver what they access."""

from __future__ import annotations

from itertools import pairwise

from pdojo.dialect.rules.streams import streams_of
from pdojo.dialect.view.nest import Scope, leaves_of
from pdojo.passes.common.builder import PassBuilder

WHY = "one stream delivers what several statements access in turn"


def order_statements(builder: PassBuilder, identifier: str) -> None:
    """Exchange statements of the innermost loop of a nest until fewer streams suffice, if there are too few."""
    most = builder.game.machine.snitch.stream_registers
    if _streams(builder, identifier) <= most:
        return
    builder.transact(lambda: _ordered(builder, identifier))


def _ordered(builder: PassBuilder, identifier: str) -> bool:
    """Order statements by levels, then exchange neighbours while that saves streams; False if it saves none."""
    before = _streams(builder, identifier)
    loop = builder.scope(identifier)
    while len(loop.children) == 1 and isinstance(loop.children[0], Scope):
        loop = loop.children[0]
    _by_levels(builder, loop.id)
    children = [child.id for child in builder.scope(loop.id).children]
    while any(builder.transact(lambda child=child: _saves(builder, identifier, child)) for child in children[:-1]):
        children = [child.id for child in builder.scope(loop.id).children]
    return _streams(builder, identifier) < before


def _streams(builder: PassBuilder, identifier: str) -> int:
    return len(streams_of(builder.nest, builder.scope(identifier), builder.game.machine))


def _saves(builder: PassBuilder, identifier: str, child: str) -> bool:
    """Exchange a node with the next one; False if that saves no stream."""
    before = _streams(builder, identifier)
    return builder.attempt("swap_nodes", f"%{child}", WHY) and _streams(builder, identifier) < before


def _by_levels(builder: PassBuilder, identifier: str) -> None:
    """Let statements come before those that need the results of more statements."""
    levels = _levels(builder.scope(identifier))

    def exchanged() -> bool:
        children = [child.id for child in builder.scope(identifier).children]
        late = (one for one, other in pairwise(children) if levels[one] > levels[other])
        return any(builder.attempt("swap_nodes", f"%{one}", WHY) for one in late)

    while exchanged():
        pass


def _levels(loop: Scope) -> dict[str, int]:
    """The number of statements of a loop, one after the other, that compute the operands of each of its nodes."""
    written: dict[str, int] = {}
    found: dict[str, int] = {}
    for child in loop.children:
        read = {access.array.name for leaf in leaves_of(child) for access in leaf.reads}
        found[child.id] = max((written[name] for name in read if name in written), default=0)
        for leaf in leaves_of(child):
            written[leaf.output.array.name] = found[child.id] + 1
    return found
