"""Recurrences: what an iteration passes to the next one stays in registers, not in memory."""

from __future__ import annotations

from pdojo.dialect.attributes import Mapping
from pdojo.dialect.functions import byte_width
from pdojo.dialect.rules.streams import WORD
from pdojo.dialect.view.nest import Scope
from pdojo.passes.common.builder import PassBuilder
from pdojo.passes.common.loops import tile
from pdojo.passes.snitch.interleaving import COPIES
from pdojo.passes.snitch.packing import contract, is_streamable
from pdojo.passes.snitch.registers import is_innermost

WHY = "the next iteration finds the value in a register"


def carry_values(builder: PassBuilder) -> None:
    """Keep the values that loops carry in scalars; a product and a sum of them become one instruction."""
    for identifier in [s.id for s in builder.nest.scopes if s.mapping is Mapping.SEQUENTIAL]:
        scope = builder.scope(identifier)
        read = {access.array.name for leaf in scope.leaves for access in leaf.reads}
        for name in dict.fromkeys(leaf.output.array.name for leaf in scope.leaves):
            if name in read and (_is_used_beside(scope, name) or not _fits_slot(builder, name)):
                builder.transact(lambda i=identifier, name=name: _carry(builder, i, name))


def forward_copies(builder: PassBuilder) -> None:
    """Compute results that are copied to a stream once more in place of the copy, which the next iteration waits for.

    `y = c` waits for `c = c * a + x`, and the next step behind it; `y = c * a + x` does not.
    """
    for leaf in list(builder.nest.leaves):
        if leaf.output.array.buffer.op is None and is_streamable(leaf.output, leaf):
            builder.attempt("forward_sum", f"%{leaf.id}", "the next iteration does not wait for a copy")


def _carry(builder: PassBuilder, identifier: str, name: str) -> None:
    """Carry a value in an innermost loop; those that no hardware loop repeats are unrolled in part."""
    while isinstance(builder.scope(identifier).children[0], Scope):
        if not builder.attempt("swap_scopes", f"%{identifier}", WHY):
            break
    builder.make("carry_value", f"%{identifier}", WHY, array=name, location="stack")
    contract(builder)
    scope, array = builder.scope(identifier), builder.nest.arrays[name]
    is_read = any(access.array is array for leaf in scope.leaves for access in leaf.reads)
    is_straight = is_read or byte_width(array.dtype) != WORD
    if is_straight and scope.depth == 0 and scope.extent > COPIES and is_innermost(scope):
        why = "fewer iterations to count"
        if scope.extent % COPIES:
            builder.make("peel_scope", scope, why, after=scope.extent // COPIES * COPIES)
        builder.make("unroll", f"%{tile(builder, identifier, COPIES, why).inner}", why)


def _is_used_beside(scope: Scope, name: str) -> bool:
    """True if a loop reads what it has written in the same iteration: the array is needed beside the carried value."""
    written = {leaf.output.key for leaf in scope.leaves if leaf.output.array.name == name}
    return any(access.key in written for leaf in scope.leaves for access in leaf.reads)


def _fits_slot(builder: PassBuilder, name: str) -> bool:
    """True for a temporary of whose elements one at a time is needed: a register holds it as it is."""
    buffer = builder.nest.arrays[name].buffer
    found: list[bool] = []

    def tried(dimension: int) -> bool:
        found.append(builder.attempt("reuse_dims", f"{name}:{dimension}", WHY))
        return False

    for dimension in range(len(buffer.shape) if buffer.op is not None else 0):
        builder.transact(lambda d=dimension: tried(d))
    return any(found)
