"""Proofs: the conditions after a move that its check proves, by the promises of the move at the site."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, TypeVar

from pdojo.dialect.flow.program import Program
from pdojo.dialect.flow.shortcut import is_used
from pdojo.dialect.rules.capacity import is_full, is_long
from pdojo.dialect.rules.special_mappings import is_special
from pdojo.dialect.view.nest import Leaf, Node, Scope
from pdojo.transforms.base import Transformation
from pdojo.transforms.site import Site, is_near_binding

PromiseT = TypeVar("PromiseT", bound=int)


class Proof(Enum):
    """The part of the conditions after a move that its check proves."""

    ALL = "all"
    ALL_BUT_ROOM = "all but the room for buffers"
    NOTHING = "nothing"


def proof_of(move: Transformation[Any], program: Program, site: Site) -> Proof:
    """The part of the conditions that a check proves by accepting the move, if the check is right."""
    promises = move.promises
    if promises.conditions is False or not is_used("promises") or is_special(program) or is_long(program):
        return Proof.NOTHING
    if is_near_binding(program, site) or not _promised(promises.conditions, move, program, site):
        return Proof.NOTHING
    if promises.grows is False or not is_full(program, _promised(promises.adds, move, program, site)):
        return Proof.ALL
    return Proof.ALL_BUT_ROOM if _promised(promises.grows, move, program, site) else Proof.ALL


def examined(move: Transformation[Any], program: Program, site: Scope | Leaf) -> tuple[Node, ...]:
    """The nodes whose nests a local move at a node examines."""
    if not _promised(move.promises.takes_next, move, program, site):
        return (site,)
    following = program.nest.next_sibling(site)
    return (site,) if following is None else (site, following)


def _promised(
    promise: PromiseT | Callable[[Any, Program, Any], PromiseT], move: Transformation[Any], program: Program, site: Site
) -> PromiseT:
    return promise(move, program, site) if callable(promise) else promise
