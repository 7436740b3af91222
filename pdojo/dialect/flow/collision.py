"""Do two accesses touch the same place, for iterations in a given order? With a witness if they do.

The question is a `Query`; the answer a `Witness` or None, exact in both directions. Shortcuts settle most queries
(`shortcuts.digits`), integer sets the others. Answers are cached by the content of the query, so a new state asks only
about its move's changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from pdojo.dialect.affine import Expr
from pdojo.dialect.flow import integer_sets
from pdojo.dialect.flow.shortcut import answered
from pdojo.dialect.sizes import telling_sizes


class Order(Enum):
    """Order of the iterations of two instances at one depth."""

    EQUAL = "="
    BEFORE = "<"
    AFTER = ">"
    ANY = "*"


Relation: TypeAlias = tuple[Order, ...]
"""One order per depth from the outermost; deeper variables are unrelated."""

EQUAL, BEFORE, AFTER, ANY = Order.EQUAL, Order.BEFORE, Order.AFTER, Order.ANY


@dataclass(frozen=True, slots=True)
class Domain:
    """The instances of a statement: box and guards (`e >= 0`)."""

    extents: tuple[int, ...]
    guards: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Query:
    """The question: is there an instance of `first` and one of `second`, related by `relation`, with equal indices?

    `differs` adds pairs of expressions of which at least one must differ (used to tell elements of one cell apart).
    """

    first: Domain
    second: Domain
    equal: tuple[tuple[Expr, Expr], ...]
    relation: Relation
    differs: tuple[tuple[Expr, Expr], ...] = ()

    def exact(self) -> Witness | None:
        """A witness of the collision by integer sets; None if there is none."""
        return exact(self)


@dataclass(frozen=True, slots=True)
class Witness:
    """Iterations of the two instances, outermost first."""

    first: tuple[int, ...]
    second: tuple[int, ...]


class Collisions:
    """Memo of queries and their answers; all states of a game share one object."""

    def __init__(self) -> None:
        self._answers = integer_sets.Answers[Query, Witness | None]()
        self.exact_queries = 0
        """Number of queries that needed integer sets."""

    def find(self, query: Query) -> Witness | None:
        """A witness of the collision; None if there is none."""
        return self._answers.of(query, lambda: self._decide(query))

    def _decide(self, query: Query) -> Witness | None:
        found = answered("collision", query)
        if found is not None:
            return found.value
        self.exact_queries += 1
        return query.exact()


def holds(query: Query, witness: Witness) -> bool:
    """Whether the iterations are in the domains, are related by the query's relation, and touch the same place.

    Sizes have values at which guards hold: a collision at some sizes is one.
    """
    first, second = witness.first, witness.second
    sizes = telling_sizes(frozenset((*query.first.guards, *query.second.guards)))
    for values, domain in ((first, query.first), (second, query.second)):
        if any(v >= n for v, n in zip(values, domain.extents, strict=True)):
            return False
        if any(g.evaluate(values, sizes) < 0 for g in domain.guards):
            return False
    if any(a.evaluate(first, sizes) != b.evaluate(second, sizes) for a, b in query.equal):
        return False
    return not query.differs or any(a.evaluate(first, sizes) != b.evaluate(second, sizes) for a, b in query.differs)


def exact(query: Query) -> Witness | None:
    """The answer by integer sets."""
    first = integer_sets.variables("a", len(query.first.extents))
    second = integer_sets.variables("b", len(query.second.extents))
    constraints = integer_sets.domain_constraints(query.first.extents, query.first.guards, first)
    constraints += integer_sets.domain_constraints(query.second.extents, query.second.guards, second)
    constraints += [
        f"{first[d]} {order.value} {second[d]}" for d, order in enumerate(query.relation) if order is not ANY
    ]
    constraints += [f"{integer_sets.spell(a, first)} = {integer_sets.spell(b, second)}" for a, b in query.equal]
    if query.differs:
        either = (f"{integer_sets.spell(a, first)} != {integer_sets.spell(b, second)}" for a, b in query.differs)
        constraints.append(f"({' or '.join(either)})")
    point = integer_sets.sample([*first, *second], constraints)
    if point is None:
        return None
    return Witness(point[: len(first)], point[len(first) :])
