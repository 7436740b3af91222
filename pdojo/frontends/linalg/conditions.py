"""Conditions on indices in bodies: the iterations fall into pieces in each of which all of them are decided."""

from __future__ import annotations

from itertools import pairwise, product

from xdsl.dialects import arith, scf
from xdsl.ir import Block, SSAValue

from pdojo.frontends.linalg.elements import Iterations
from pdojo.frontends.linalg.refusal import refused
from pdojo.frontends.linalg.scalars import HOLDS, Scalars, StatementNeeded, Surroundings, root
from pdojo.frontends.linalg.structured import Structured


def pieces(structured: Structured, outside: Surroundings) -> list[list[range]]:
    """The iterations of each dimension, keyed by piece, such that all iterations of a piece take the same branches.

    No pieces if the body has no branches. Raises ConversionError for a condition that is no comparison of an iteration
    with a number.
    """
    branches = [op for op in structured.body.walk() if isinstance(op, scf.IfOp)]
    if not branches:
        return []
    at = Iterations(Block())
    cuts = [{0, extent} for extent in structured.extents]
    # Scopes of single iterations are left out: a depth is no dimension.
    iterations = [at.enter(extent) for extent in structured.extents]
    dimensions = [d for d, extent in enumerate(structured.extents) if extent > 1]
    scalars = Scalars(None, at, outside, structured.op, iterations)
    for branch in branches:
        for comparison in _comparisons(branch, branch.cond):
            for depth, place in _changes(branch, comparison, scalars):
                cuts[dimensions[depth]].add(place)
    segments = [[range(*pair) for pair in pairwise(sorted(each))] for each in cuts]
    return [list(piece) for piece in product(*segments)]


def _comparisons(branch: scf.IfOp, condition: SSAValue) -> list[arith.CmpiOp]:
    match root(condition).owner:
        case arith.CmpiOp() as op:
            return [op]
        case arith.AndIOp() | arith.OrIOp() as op:
            return [each for operand in op.operands for each in _comparisons(branch, operand)]
        case _:
            raise refused(branch, "chooses by a condition that depends on data; kernels have no branches")


def _changes(branch: scf.IfOp, comparison: arith.CmpiOp, scalars: Scalars) -> list[tuple[int, int]]:
    """The depth of a comparison's variable, and the iterations at which its result changes."""
    try:
        difference = scalars.difference(comparison)
    except StatementNeeded:
        difference = None
    if difference is None or not difference.is_linear or len(difference.terms) > 1:
        raise refused(branch, "chooses by a condition that is no comparison of an iteration with a number")
    if difference.is_constant:
        return []
    (depth,) = difference.variables()
    holds = HOLDS[arith.CMPI_COMPARISON_OPERATIONS[comparison.predicate.value.data].lstrip("su")]
    slope, offset = difference.coefficient(depth), difference.constant
    # The truth changes where the difference passes 0 only.
    root = -offset // slope
    near = range(max(root - 1, 0), min(root + 3, scalars.at.extents[depth]))
    return [(depth, i + 1) for i, j in pairwise(near) if holds(slope * i + offset) != holds(slope * j + offset)]
