"""The exact path of every question: integer sets and relations of islpy, in its textual form.

islpy is imported on first use: most questions are settled without it (`collision.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

from pdojo.dialect.affine import Expr

if TYPE_CHECKING:
    import islpy as isl

    from pdojo.dialect.nest import Leaf


@lru_cache(maxsize=1)
def context() -> isl.Context:
    """The isl context that all sets of the process share."""
    import islpy

    return islpy.Context()


def spell(expression: Expr, names: Sequence[str]) -> str:
    """An expression in isl's syntax; variable at depth d is `names[d]`."""
    parts = [str(expression.constant)]
    for atom, coefficient in expression.terms:
        text = names[atom] if isinstance(atom, int) else f"floor(({spell(atom.numerator, names)})/{atom.divisor})"
        parts.append(f"{coefficient}*{text}")
    return " + ".join(parts)


def domain_constraints(extents: Sequence[int], guards: Iterable[Expr], names: Sequence[str]) -> list[str]:
    """Box and guards of an iteration domain, as isl constraints."""
    box = [f"0 <= {name} < {extent}" for name, extent in zip(names, extents, strict=True)]
    return box + [f"{spell(g, names)} >= 0" for g in guards]


def variables(prefix: str, count: int) -> list[str]:
    """`prefix0, prefix1 ...`."""
    return [f"{prefix}{k}" for k in range(count)]


def sample(names: Sequence[str], constraints: Iterable[str]) -> tuple[int, ...] | None:
    """Some integer point that satisfies all constraints, or None if there is none."""
    import islpy as isl

    text = f"{{ [{', '.join(names)}] : {' and '.join(constraints) or 'true'} }}"
    point = isl.Set.read_from_str(context(), text).sample_point()
    if point.is_void():
        return None
    return tuple(point.get_coordinate_val(isl.dim_type.set, k).to_python() for k in range(len(names)))


def bounds_over_domain(expression: Expr, leaf: Leaf, hint: tuple[int, int]) -> tuple[int, int]:
    """Least and greatest value of an index expression over the statement's domain, guards included.

    An empty domain gives `hint`: what never runs is never out of bounds.
    """
    import islpy as isl

    names = variables("i", leaf.depth)
    constraints = domain_constraints(leaf.extents, leaf.guards, names)
    text = f"{{ [{', '.join(names)}] -> [{spell(expression, names)}] : {' and '.join(constraints) or 'true'} }}"
    values = isl.Map.read_from_str(context(), text).range()
    if values.is_empty():
        return hint
    return values.dim_min_val(0).to_python(), values.dim_max_val(0).to_python()


Reach: TypeAlias = tuple[Sequence[int], Sequence[Expr], Sequence[Expr]]
"""Extents and guards of iterations, and what each of them reaches."""


def unreached(first: Iterable[Reach], second: Iterable[Reach]) -> tuple[int, ...] | None:
    """A place that one of `first` reaches and none of `second`; None if there is none. Neither is empty."""
    rest = _reached(first).subtract(_reached(second))
    if rest.is_empty():
        return None
    point = rest.sample_point()
    import islpy as isl

    return tuple(point.get_coordinate_val(isl.dim_type.set, k).to_python() for k in range(rest.dim(isl.dim_type.set)))


def _reached(reaches: Iterable[Reach]) -> isl.Set:
    import islpy as isl

    pieces: list[str] = []
    for extents, guards, place in reaches:
        names = variables("i", len(extents))
        domain = " and ".join(domain_constraints(extents, guards, names)) or "true"
        pieces.append(f"[{', '.join(names)}] -> [{', '.join(spell(e, names) for e in place)}] : {domain}")
    sets = [isl.Map.read_from_str(context(), f"{{ {piece} }}").range() for piece in pieces]
    total = sets[0]
    for other in sets[1:]:
        total = total.union(other)
    return total
