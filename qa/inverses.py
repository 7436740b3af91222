"""Checks if a move's inverse leads back, up to new names, memory and indices of arrays, and identifiers.

Guards and divisions in indices may change their form, which may hide the original from the inverse. Programs without
them must be restored by a legal inverse, unless the move repaired a condition that they broke.
"""

from __future__ import annotations

import re

from pdojo.dialect.flow.program import Program
from pdojo.dialect.rules.conditions import conditions_of
from pdojo.dialect.view.nest import Index
from pdojo.errors import PdojoError
from pdojo.transforms.apply import apply
from pdojo.transforms.move import Move

_DECLARATION = re.compile(r"(\w+) (.*?)(?: -> (.*))?")


def lost_on_the_way_back(before: Program, after: Program, inverse: Move) -> str | None:
    """The reason why `inverse` does not lead from `after` back to `before`; None if it does."""
    plain = _is_plain(before) and _is_plain(after)
    gone = before.nest.arrays.keys() - after.nest.arrays.keys()
    try:
        back = apply(after, inverse).program
    except PdojoError as error:
        # A redeclared array may not fit in the original's place. A condition that the program before broke, perhaps of
        # another machine, is not broken again.
        mended = conditions_of(after).broken(conditions_of(before)) is not None
        return f"{inverse} does not apply: {error}" if plain and not gone and not mended else None
    anew = gone, back.nest.arrays.keys() - after.nest.arrays.keys()
    same = not plain or _form(before, anew[0]) == _form(back, anew[1])
    return None if same else f"{inverse} gives another program:\n{back.text}"


def _is_plain(program: Program) -> bool:
    """True if no statement has a guard or a division in an index."""
    for leaf in program.nest.leaves:
        values = (value.expression for value in leaf.inputs if isinstance(value, Index))
        indices = (e for access in leaf.accesses for e in access.index)
        if leaf.guards or not all(e.is_linear for e in (*values, *indices)):
            return False
    return True


def _form(program: Program, anew: set[str]) -> tuple[list[str], str]:
    """The text without the order of declarations and the facts about the arrays `anew`."""
    header, _, tree = program.text.partition("\n\n")
    declarations: list[str] = []
    for line in header.splitlines()[1:]:
        found = _DECLARATION.fullmatch(line)
        assert found is not None
        names = sorted((found[3] or found[1]).split(", "))
        if not anew.intersection(names):
            declarations.append(f"{names} {found[2]}")
    numbers: dict[str, int] = {}
    for name in re.findall(r"\b\w+(?=\[)", tree):
        if name in anew:
            tree = re.sub(rf"\b{name}\[[^\]]*\]", f"anew.{numbers.setdefault(name, len(numbers))}", tree)
    return sorted(declarations), tree
