"""Foresight: the fault of the program after a move that is not made, from the part of the program that it rewrites.

Rules are about nests and the buffers that bind them. So if the program violates no rule, a local move violates one iff
the excerpt after the move does. Exceptions are the rules of special mappings, of constants, and memory capacity.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from pdojo.dialect.flow.program import Program
from pdojo.dialect.flow.shortcut import is_used
from pdojo.dialect.reason import Reason
from pdojo.dialect.rules.capacity import Growth, growth_of
from pdojo.dialect.rules.conditions import conditions_of, rules_of_buffers
from pdojo.dialect.rules.special_mappings import is_special
from pdojo.dialect.shortcuts.excerpts import Excerpt, excerpt_of, excerpt_of_buffer, has_room
from pdojo.dialect.shortcuts.layout import Footprint, accesses_alone, footprint_of, has_patterns, has_room_for
from pdojo.dialect.view.nest import Array, Buffer, Leaf, Scope
from pdojo.transforms.base import Transformation
from pdojo.transforms.legality.faults import fault, shortage
from pdojo.transforms.legality.proofs import Proof, examined
from pdojo.transforms.legality.trials import foresee, rehearse
from pdojo.transforms.site import Dimension, Site, identify, is_near_binding


def foreseen_fault(move: Transformation[Any], program: Program, site: Site, proof: Proof) -> Reason | None:
    """`fault` of the program after the move, without the conditions that its check proves."""
    if conditions_of(program).problems or not move.promises.is_local:
        return _rehearsed(move, program, site, proof)
    if isinstance(site, Array | Dimension):
        effect = _of_layout(move, program, site)
        if effect.is_known:
            return effect.fault
    is_exception = is_special(program) or is_near_binding(program, site)
    excerpt = None if is_exception else _rewritten(move, program, site)
    if excerpt is None:
        return _rehearsed(move, program, site, proof)
    only_room = proof is Proof.ALL_BUT_ROOM
    question = "after", move, identify(site), only_room
    if question not in excerpt.verdicts:
        excerpt.verdicts[question] = _on_excerpt(move, excerpt.program, identify(site), only_room=only_room)
    effect = cast(LocalEffect | None, excerpt.verdicts[question])
    if effect is None or not has_room(program, excerpt, effect.growth):
        return _rehearsed(move, program, site, proof)
    return effect.fault


def _rehearsed(move: Transformation[Any], program: Program, site: Site, proof: Proof) -> Reason | None:
    after = foresee(move, program, site)
    if proof is Proof.ALL_BUT_ROOM:
        return shortage(conditions_of(program), after)
    return fault(move, conditions_of(program), after)


def excerpt_at(move: Transformation[Any], program: Program, site: Scope | Leaf) -> Excerpt:
    """The excerpt that the check of a local move at a node examines."""
    return excerpt_of(program, *examined(move, program, site))


def _rewritten(move: Transformation[Any], program: Program, site: Site) -> Excerpt | None:
    """The excerpt that contains all nodes that a local move rewrites; None if that may be the whole program."""
    match site:
        case Scope() | Leaf():
            return excerpt_at(move, program, site) if site.id else None
        case _:
            return excerpt_of_buffer(program, buffer_at(site))


def buffer_at(site: Array | Dimension) -> Buffer:
    """The buffer at a site."""
    return site.buffer if isinstance(site, Array) else site.array.buffer


@dataclass(frozen=True, slots=True)
class LocalEffect:
    """The effect of a local move; it holds in every valid program that contains the excerpt."""

    fault: Reason | None
    """The violated rule other than memory capacity; None if there is none."""
    growth: Growth


def _on_excerpt(move: Transformation[Any], part: Program, at: str, *, only_room: bool) -> LocalEffect | None:
    """The effect of the move on an excerpt; None if special mappings result, with rules about the whole program."""
    after = rehearse(move, part, move.resolve(part, at))
    found = None if only_room else fault(move, conditions_of(part), after)
    return None if is_special(after) else LocalEffect(found, growth_of(part, after))


@dataclass(frozen=True, slots=True)
class LayoutEffect:
    """The effect of a layout move."""

    fault: Reason | None = None
    """The rule that the program after the move violates; None if there is none."""
    is_known: bool = False
    """False if the accesses to the buffer do not determine the effect."""


def _of_layout(move: Transformation[Any], program: Program, site: Array | Dimension) -> LayoutEffect:
    """The effect of the move, from the accesses to its buffer alone (`shortcuts.layout`)."""
    if not (program.has_excerpts and is_used("layout")) or has_patterns(program):
        return LayoutEffect()
    buffer = buffer_at(site)
    part, verdicts = accesses_alone(program, buffer)
    question = "after", move, identify(site)
    if question not in verdicts:
        verdicts[question] = _on_accesses(move, part, buffer.names[0], identify(site))
    effect, footprints = cast("tuple[LayoutEffect, tuple[Footprint, Footprint] | None]", verdicts[question])
    return effect if footprints is None or has_room_for(program, *footprints) else LayoutEffect()


def _on_accesses(
    move: Transformation[Any], part: Program, array: str, at: str
) -> tuple[LayoutEffect, tuple[Footprint, Footprint] | None]:
    """The effect of the move in a program with one buffer only, and the buffer's footprints before and after."""
    before, conditions = footprint_of(part, part.nest.arrays[array].buffer), conditions_of(part)
    after = rehearse(move, part, move.resolve(part, at))
    found = fault(move, conditions, after)
    if found is not None:
        # A lack of memory is reported for the whole program.
        return LayoutEffect(found, is_known=found in tuple(rules_of_buffers(after))), None
    return LayoutEffect(is_known=True), (before, footprint_of(after, after.nest.arrays[array].buffer))
