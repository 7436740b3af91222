"""Faults: the reasons why the program after a move is invalid, though the move's check accepts it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from xdsl.ir import Attribute
from xdsl.utils.exceptions import VerifyException

from pdojo.dialect.flow.program import Program
from pdojo.dialect.reason import Reason
from pdojo.dialect.rules.conditions import Conditions, conditions_of, room_problems
from pdojo.dialect.verification.verify import verify_nest
from pdojo.errors import Undecided
from pdojo.transforms.base import Transformation


def fault(move: Transformation[Any], before: Conditions, after: Program, *, proved: bool = False) -> Reason | None:
    """The reason why the program after the move is invalid; None if it is valid.

    A program that already violates some rules (because it was written for another machine) must not violate others.
    If the check has `proved` the rules, a rule that integer sets do not settle is no fault.
    """
    return malformed(after) or breach(move, before, after, proved=proved)


def malformed(program: Program) -> Reason | None:
    """The reason why the program after a move is malformed; None if it is not. Nodes accepted before are skipped."""
    try:
        verify_nest(program.nest)
    except VerifyException as error:
        return Reason(str(error))
    return None


def breach(move: Transformation[Any], before: Conditions, after: Program, *, proved: bool = False) -> Reason | None:
    """`fault` for a well-formed program after the move."""
    try:
        present = conditions_of(after)
    except Undecided as undecided:
        return Reason(str(undecided))
    if move.keeps_hints and (changed := _other_hints(before.hints, present.hints)) is not None:
        return changed
    if (broken := before.broken(present, proved=proved)) is not None:
        return broken
    useless = next((text for text in before.useless if text not in present.useless), None)
    if move.keeps_hints and useless is not None:
        return Reason(f"a hint without effect would take effect: {useless}; clear it first")
    return None


def _other_hints(before: Mapping[str, Attribute], after: Mapping[str, Attribute]) -> Reason | None:
    """The reason why hints change: a move would lose them, or duplicate them, which undo could not revert; or None."""
    for owner, hints in before.items():
        if after.get(owner) != hints:
            return Reason(f"the hints of {owner} would be lost; clear them first")
    if after.keys() - before.keys():
        return Reason(f"the hints of {min(before, default='a scope')} would be there twice; clear them first")
    return None


def shortage(before: Conditions, after: Program) -> Reason | None:
    """The memory that the program after the move lacks; None if there is room for all buffers."""
    return next((p for p in room_problems(after) if p.about not in before.problems), None)
