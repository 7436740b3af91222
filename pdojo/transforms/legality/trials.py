"""Trials: the program after a move whose legality is not asked, made on a copy or in place."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from xdsl.pattern_rewriter import PatternRewriter

from pdojo.dialect.flow.program import Program
from pdojo.dialect.shortcuts.excerpts import nodes_touched, users_touched
from pdojo.dialect.view.nest import Array, Leaf, Node, Scope
from pdojo.transforms.base import Transformation
from pdojo.transforms.legality.proofs import examined
from pdojo.transforms.site import Dimension, Site, identify


def rehearse(move: Transformation[Any], program: Program, site: Site) -> Program:
    """The program after the rewrite, made on a copy.

    If the move's check has just made that program, it is returned.
    """
    return program.take_rehearsed((move, identify(site))) or _copied(move, program, site)


def foresee(move: Transformation[Any], program: Program, site: Site) -> Program:
    """`rehearse` for checks: the program is kept until another move is foreseen, or the move is made."""
    return program.rehearsed((move, identify(site)), lambda: _copied(move, program, site))


def _copied(move: Transformation[Any], program: Program, site: Site) -> Program:
    copied = program.copy()
    return perform(move, copied, move.resolve(copied, identify(site)))


def perform(move: Transformation[Any], program: Program, site: Site, *, releases: bool = True) -> Program:
    """The program after the rewrite, which changes the kernel in place; invalidates `program`.

    Unless it `releases` them, rewritten nodes of the previous view keep their extents and accesses. Nodes that remain
    get their new children and places.
    """
    kernel, touched = program.kernel, _touched(move, program, site)
    move.rewrite(program, site, PatternRewriter(next(iter(kernel.body.block.ops))))
    after = program.successor(kernel, touched=touched)
    program.retire(after if releases else None)
    return after


def _touched(move: Transformation[Any], program: Program, site: Site) -> Container[Node] | None:
    """The nodes that the rewrite may change, with the scopes around them; None for all."""
    named = move.touched(program, site)
    if named is not None or not move.promises.is_local:
        return named
    match site:
        case Scope() | Leaf():
            return nodes_touched(program, *examined(move, program, site))
        case Array():
            return users_touched(program, site.buffer)
        case Dimension():
            return users_touched(program, site.array.buffer)
