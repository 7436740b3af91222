"""Kernels for parts of the ranges of their sizes."""

from __future__ import annotations

from collections.abc import Mapping

from pdojo.dialect.canonical import canonicalize
from pdojo.dialect.notation.parser import parse_notation
from pdojo.dialect.notation.printer import print_notation
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.view.build import assign_ids, ids_of, nest_of


def narrowed(kernel: KernelOp, ranges: Mapping[str, range]) -> KernelOp:
    """The kernel in canonical form for parts of the ranges of some sizes, without scopes that have no iterations.

    Statements and scopes keep their identifiers. A size of one value is a constant that callers still give. Raises
    UsageError for a part that is not in the range.
    """
    (found,) = parse_notation(print_notation(kernel), f"kernel '{kernel.sym_name.data}'", ranges)
    assign_ids(found, ids_of(kernel))
    canonicalize(found)
    nest = nest_of(found)
    idle = {leaf for s in nest.scopes if any(g.bounds(s.extents)[1] < 0 for g in s.guard) for leaf in s.leaves}
    for scope in nest.scopes:
        around = scope.parent
        if idle.issuperset(scope.leaves) and (around is None or not idle.issuperset(around.leaves)):
            scope.op.detach()
            scope.op.erase()
    return found


def version_of(kernel: KernelOp, version: KernelOp) -> KernelOp:
    """A kernel for the ranges of one of its versions, and with the version's name."""
    ranges = {s.name: s.values for s in version.known_sizes().values()}
    found = narrowed(kernel, ranges)
    found.sym_name = version.sym_name
    return found
