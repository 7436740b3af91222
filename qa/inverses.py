"""Checks the inverse that a move names: it is legal and gives the program before, but for what it makes anew.

A move may say that none leads back. Guards and divisions in indices may hide the original from the inverse, a deleted
array may not fit in its place any more, a condition that the program before broke is not broken again, and no move
gives a mapping that the machine lacks. In all other programs, a move has an inverse.
"""

from __future__ import annotations

from pdojo.dialect.attributes import Mapping
from pdojo.dialect.flow.program import Program
from pdojo.dialect.functions import byte_width
from pdojo.dialect.rules.conditions import conditions_of
from pdojo.dialect.view.nest import Index, Scope
from pdojo.errors import PdojoError
from pdojo.transforms.apply import apply
from pdojo.transforms.inverses import lead_back
from pdojo.transforms.move import Move


def lost_on_the_way_back(before: Program, after: Program, inverse: Move | None) -> str | None:
    """The reason why `inverse` does not lead from `after` back to `before`; None if it does, or if none has to."""
    if inverse is None:
        gone = before.nest.arrays.keys() - after.nest.arrays.keys()
        plain = _is_plain(before) and _is_plain(after)
        mended = conditions_of(after).broken(conditions_of(before)) is not None
        return "no move leads back" if plain and not gone and not mended and not _was_foreign(before, after) else None
    try:
        back = apply(after, inverse).program
    except PdojoError as error:
        return f"{inverse} does not apply: {error}"
    return None if lead_back(before, after, back) else f"{inverse} gives another program:\n{back.text}"


def _was_foreign(before: Program, after: Program) -> bool:
    """Whether a scope has lost a mapping that the machine lacks: other lanes than its vectors', or threads."""
    machine = before.machine
    for scope in before.nest.scopes:
        here = after.nest.by_id.get(scope.id)
        if isinstance(here, Scope) and here.mapping is not scope.mapping:
            dtypes = (access.array.dtype for leaf in scope.leaves for access in leaf.accesses)
            lanes = machine.vector_lanes(max(dtypes, key=byte_width))
            if scope.mapping is Mapping.VECTOR and scope.extent not in lanes:
                return True
            if scope.mapping is Mapping.PARALLEL and (machine.gpu or machine.snitch):
                return True
    return False


def _is_plain(program: Program) -> bool:
    """True if no statement has a guard or a division in an index."""
    for leaf in program.nest.leaves:
        values = (value.expression for value in leaf.inputs if isinstance(value, Index))
        indices = (e for access in leaf.accesses for e in access.index)
        if leaf.guards or not all(e.is_linear for e in (*values, *indices)):
            return False
    return True
