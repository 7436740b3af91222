"""Would taking a move back restore the program to the letter? Decided by trying, where that is not plain to see."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass

from pdojo.dialect.analysis.program import Program
from pdojo.dialect.nest import Leaf, Scope
from pdojo.dialect.notation.printer import print_nest
from pdojo.transforms.base import Reason, SiteT, Transformation
from pdojo.transforms.digits import expressions_of
from pdojo.transforms.ordering import rewritten


@dataclass(frozen=True)
class Shaped(Transformation[SiteT]):
    """A transformation whose condition has two parts: the shape that its rewrite needs, and what it may reorder."""

    @abstractmethod
    def shape(self, program: Program, site: SiteT) -> Reason | None:
        """Why the rewrite cannot be made at the site, whatever it would do to the meaning."""


def irreversible(program: Program, move: Shaped[Scope], site: Scope, leaves: Iterable[Leaf]) -> Reason | None:
    """Refuse a move that its inverse would not take back to the letter; guards and divisions can be the reason."""
    if all(e.is_linear for leaf in leaves for e in expressions_of(leaf)) and not any(leaf.guards for leaf in leaves):
        return None
    return None if _comes_back(program, move, site) else _IRREVERSIBLE


_IRREVERSIBLE = Reason("a guard or an index with divisions would not come back in normal form when the move is undone")


def _comes_back(program: Program, move: Shaped[Scope], site: Scope) -> bool:
    from pdojo.transforms.registry import instantiate

    undo = move.inverse(program, site)
    after = rewritten(program, move, site)
    inverse = instantiate(undo)
    there = inverse.resolve(after, undo.at)
    if isinstance(inverse, Shaped) and inverse.shape(after, there) is not None:
        return False
    back = rewritten(after, inverse, there)
    return _letters(back) == _letters(program)


def _letters(program: Program) -> tuple[str, list[str]]:
    nest = program.nest
    return print_nest(nest), [node.id for node in (*nest.scopes, *nest.leaves)]
