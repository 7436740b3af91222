"""Does a move lead back to a program, except for arrays and identifiers that it creates?"""

from __future__ import annotations

import re
from collections.abc import Collection

from pdojo.transforms.api import Program

_DECLARATION = re.compile(r"(\w+) (.*?)(?: -> (.*))?")


def lead_back(before: Program, after: Program, back: Program) -> bool:
    """Whether a move from `before` to `after`, and another one to `back`, restored the program.

    The second one may give other names, declarations and indices to the arrays that it makes, and the order of all
    declarations is free.
    """
    kept = after.nest.arrays.keys()
    return _form(before, before.nest.arrays.keys() - kept) == _form(back, back.nest.arrays.keys() - kept)


def _form(program: Program, anew: Collection[str]) -> tuple[list[str], str]:
    """The text without the order of declarations and the properties of the arrays `anew`."""
    header, _, tree = program.text.partition("\n\n")
    declarations: list[str] = []
    for line in header.splitlines()[1:]:
        found = _DECLARATION.fullmatch(line)
        assert found is not None
        names = sorted((found[3] or found[1]).split(", "))
        if not set(names).intersection(anew):
            declarations.append(f"{names} {found[2]}")
    numbers: dict[str, int] = {}
    for name in re.findall(r"\b\w+(?=\[)", tree):
        if name in anew:
            tree = re.sub(rf"\b{name}\[[^\]]*\]", f"anew.{numbers.setdefault(name, len(numbers))}", tree)
    return sorted(declarations), tree
