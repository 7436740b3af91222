"""Common checks of moves that change the order of statement instances.

Such a move is legal if no pair of instances whose order changes conflicts. On cells, this condition is too strong: a
temporary that every iteration refills has one cell, and no value crosses iterations. So if cells conflict in buffers
with several elements per cell, the question is asked about elements, and the program after the move must keep every
value in storage (docs/legality.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from collections.abc import Mapping as MappingABC
from typing import Any, TypeAlias

from pdojo.transforms.api import (
    EQUAL,
    Answer,
    Buffer,
    Conflict,
    Leaf,
    Mapping,
    Node,
    Numerics,
    Program,
    Reason,
    Relation,
    Scope,
    Site,
    StorageQuestion,
    Transformation,
    Use,
    answered,
    describe_scope,
    find_race,
    foresee,
    private_scope,
    uses_of,
)

Uses: TypeAlias = MappingABC[Leaf, tuple[Use, ...]] | None
"""Accesses to examine; None for the program's accesses to cells."""

Move: TypeAlias = Transformation[Any]


def same_iteration(node: Node) -> Relation:
    """The relation of two instances in the same iteration of all scopes around the node."""
    return (EQUAL,) * (node.depth if isinstance(node, Scope) else len(node.chain))


def private_buffers(program: Program, scope: Scope) -> list[Buffer]:
    """The buffers with a private copy for each iteration of a threaded scope."""
    if not scope.mapping.is_threaded:
        return []
    return [b for b in program.nest.buffers if any(b.reuse) and private_scope(program.nest, b) is scope]


def reassociates(happens: bool) -> Numerics:
    """The numerics class of a move that may change the order of accumulations (`happens`), or of one that does not."""
    return Numerics.REASSOCIATES if happens else Numerics.EXACT


def carried(text: str, conflict: Conflict) -> Reason:
    """A reason whose witness is a conflict."""
    return Reason(text, str(conflict))


def rewritten(program: Program, move: Move, site: Site) -> Program:
    """The program after a transformation at a site; legality is not checked."""
    return foresee(move, program, site)


def folded_buffers(leaves: Iterable[Leaf]) -> list[Buffer]:
    """The buffers that the statements access and whose cells may hold several elements."""
    used = dict.fromkeys(a.array.buffer for leaf in leaves for a in leaf.accesses)
    return [b for b in used if any(b.reuse) or len(b.names) > 1]


def shared_buffers(first: Iterable[Leaf], second: Iterable[Leaf]) -> list[Buffer]:
    """The buffers that both groups of statements access and whose cells may hold several elements."""
    others = set(folded_buffers(second))
    return [b for b in folded_buffers(first) if b in others]


def displaced_buffers(leaves: Iterable[Leaf], depth: int) -> list[Buffer]:
    """The buffers with an element whose cell changes if iterations of the scope at `depth` are renumbered.

    Slots depend on elements only, with two exceptions: lanes keep the constants added to them, and copies of threads
    inside the scope belong to one iteration of it.
    """
    found: dict[Buffer, None] = {}
    for leaf in leaves:
        for access in leaf.accesses:
            for slots, expression in zip(access.array.buffer.reuse, access.index, strict=True):
                used = [leaf.chain[v] for v in expression.variables()] if slots else []
                threads = any(s.mapping.is_threaded and s.depth > depth for s in used)
                lanes = any(s.mapping is Mapping.VECTOR for s in used)
                # The variable of a scope of one iteration is 0 and does not appear.
                moved = expression.uses(depth) or leaf.chain[depth].extent == 1
                if threads or (lanes and moved):
                    found[access.array.buffer] = None
    return list(found)


def storage_after(
    program: Program, move: Move, site: Scope | Leaf, folded: Sequence[Buffer], whole: Scope | None = None
) -> Reason | None:
    """The reason why the buffers would lose or share values after the transformation; None if they would not. Exact.

    Iterations of the scope `whole` stay as they are, in another order.
    """
    moved = [buffer for buffer in folded if whole is None or not _lives_in(program, buffer, whole)]
    if not moved:
        return None
    after = rewritten(program, move, site)
    for buffer in moved:
        violation = after.storage_violation(buffer.names[0], buffer.reuse)
        if violation is not None:
            return violation
        race = find_race(after, only={after.nest.arrays[buffer.names[0]].buffer})
        if race is not None:
            return Reason(f"iterations of {describe_scope(race.scope)} would share a slot", str(race.conflict))
    return None


def _lives_in(program: Program, buffer: Buffer, scope: Scope) -> bool:
    """Whether each value of a temporary is certainly written and read in one iteration of a scope, all in order.

    Then no order of the iterations loses a value, because no other one comes between, nor brings in another value.
    """
    uses = uses_of(program.nest, buffer.names[0], buffer.reuse)
    inside = all(scope in use.chain for use in uses)
    in_order = all(s.mapping in (Mapping.SEQUENTIAL, Mapping.UNROLL) for use in uses for s in use.chain)
    question = StorageQuestion(uses, buffer.reuse, scope.depth, None)
    kept = inside and in_order and buffer.op is not None
    return kept and answered("storage at first sight", question) == Answer(None)


def reordered(
    program: Program,
    move: Move,
    site: Scope | Leaf,
    folded: Sequence[Buffer],
    ask: Callable[[Uses], Conflict | None],
    whole: Scope | None = None,
) -> Conflict | Reason | None:
    """The reason why a transformation may not reorder the instances; None if it may.

    `ask` finds a conflict between instances whose order the transformation reverses. `folded` are the buffers whose
    cells may hold several elements and whose order of uses changes; `whole` is that of `storage_after`.
    """
    conflict = ask(None)
    if conflict is None:
        return None
    if conflict.first_access.array.buffer in folded:
        conflict = ask(program.element_uses)
    return storage_after(program, move, site, folded, whole) if conflict is None else conflict
