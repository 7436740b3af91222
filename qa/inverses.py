"""Does the inverse of a move lead back? Up to what it makes anew: names, memory and indices of arrays, identifiers.

Guards and index expressions with divisions may have another form afterwards, and may hide from the inverse what they
are made of; without them, the inverse is legal and gives the program before.
"""

from __future__ import annotations

import re

from pdojo.dialect.analysis.program import Program
from pdojo.dialect.nest import Index
from pdojo.errors import PdojoError
from pdojo.transforms.apply import apply
from pdojo.transforms.move import Move

_DECLARATION = re.compile(r"(\w+) (.*?)(?: -> (.*))?")


def lost_on_the_way_back(before: Program, after: Program, inverse: Move) -> str | None:
    """Why the inverse of the move from one program to the other does not lead back; None if it does."""
    plain = _is_plain(before) and _is_plain(after)
    gone = before.nest.arrays.keys() - after.nest.arrays.keys()
    try:
        back = apply(after, inverse).program
    except PdojoError as error:
        # An array that is declared anew may not fit where the one before did.
        return f"{inverse} does not apply: {error}" if plain and not gone else None
    anew = gone, back.nest.arrays.keys() - after.nest.arrays.keys()
    same = not plain or _form(before, anew[0]) == _form(back, anew[1])
    return None if same else f"{inverse} gives another program:\n{back.text}"


def _is_plain(program: Program) -> bool:
    """Whether no statement has a guard, or a division in an index."""
    for leaf in program.nest.leaves:
        values = (value.expression for value in leaf.inputs if isinstance(value, Index))
        indices = (e for access in leaf.accesses for e in access.index)
        if leaf.guards or not all(e.is_linear for e in (*values, *indices)):
            return False
    return True


def _form(program: Program, anew: set[str]) -> tuple[list[str], str]:
    """The text, in which the order of declarations does not count, nor what is said of arrays that are made anew."""
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
