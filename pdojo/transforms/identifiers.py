"""Identifiers that people may give to the nodes that a move makes; inverses give them to restore the old ones."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from pdojo.dialect.analysis.program import Program
from pdojo.transforms.base import Reason

_IDENTIFIER = re.compile(r"[^\s,{}\"#@%]+")


def identifiers_reason(program: Program, wanted: Sequence[str], freed: Iterable[str] = ()) -> Reason | None:
    """Why new nodes cannot have these identifiers; '' asks for a fresh one. `freed` are those of nodes that go."""
    given = [identifier for identifier in wanted if identifier]
    taken = program.nest.by_id.keys() - set(freed)
    for position, identifier in enumerate(given):
        if not _IDENTIFIER.fullmatch(identifier):
            return Reason(f"'{identifier}' is no identifier")
        if identifier in taken or identifier in given[:position]:
            return Reason(f"identifier '{identifier}' is taken")
    return None
