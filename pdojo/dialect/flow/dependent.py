"""Dependent iteration, which the dialect excludes (the paper's Table 2): a statement that depends on itself.

A statement writes element W(i) in iteration i and reads element R(i) of the same array. It is dependent iff

    exists i, j in its domain: W(i) = R(j) and W(j) != R(j)

An iteration may read the very element that it writes, even if others write it too (`s[0] = s[0] * x[{0}]`), and
elements that no iteration writes. The condition is about elements and instances, so moves that keep both keep it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import gcd
from typing import NamedTuple

from pdojo.dialect.affine import Expr
from pdojo.dialect.flow.collision import ANY, Collisions, Domain, Query, Witness
from pdojo.dialect.view.messages import describe_access
from pdojo.dialect.view.nest import Leaf


class Dependence(NamedTuple):
    """A read of an element that another iteration of the statement writes."""

    access: int
    """The position of the read among the statement's accesses; 0 is the output."""
    written: tuple[int, ...]
    """The iteration that writes the element."""
    read: tuple[int, ...]
    """The iteration that reads it."""


def describe_dependence(leaf: Leaf, found: Dependence) -> str:
    """`write of z[{0}+1] at iteration (0) and read of z[{0}] at iteration (1)` for messages."""
    written, read = (f"({', '.join(map(str, values))})" for values in (found.written, found.read))
    access = describe_access(leaf.accesses[found.access])
    return f"write of {describe_access(leaf.output)} at iteration {written} and read of {access} at iteration {read}"


def dependent_iteration(leaf: Leaf) -> Dependence | None:
    """The first dependence of the statement on itself; None if there is none. Exact."""
    output = leaf.output
    for number, access in enumerate(leaf.reads, 1):
        if access.array is not output.array or access.index == output.index:
            continue
        witness = _meet(output.index, access.index, Domain(leaf.extents, leaf.guards))
        if witness is not None:
            return Dependence(number, witness.first, witness.second)
    return None


@lru_cache(maxsize=4096)
def _meet(written: tuple[Expr, ...], read: tuple[Expr, ...], domain: Domain) -> Witness | None:
    """The iterations i, j of the condition; cached by content, because a move changes few statements."""
    if _surely_apart(written, read, domain.extents):
        return None
    itself = tuple(zip(written, written, strict=True))
    met = tuple(zip(written, read, strict=True))
    return Collisions().find(Query(domain, domain, met, (ANY,) * len(domain.extents), itself))


def _surely_apart(written: Sequence[Expr], read: Sequence[Expr], extents: Sequence[int]) -> bool:
    """Whether the ranges are disjoint in some dimension, or no integers solve written(i) = read(j)."""
    for left, right in zip(written, read, strict=True):
        low, high = left.bounds(extents)
        first, last = right.bounds(extents)
        if high < first or last < low:
            return True
        divisor = gcd(*(c for _, c in (*left.terms, *right.terms)))
        if divisor and (left.constant - right.constant) % divisor:
            return True
    return False
