"""The walk over a nest that all backends share: scopes, guards, unrolled code. Backends define the printed code."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import ClassVar

from pdojo.backends.common.addresses import bind
from pdojo.dialect.affine import Expr, floordiv, var
from pdojo.dialect.attributes import Mapping
from pdojo.dialect.lookups import sizes_in
from pdojo.dialect.view.nest import Leaf, Node, Scope
from pdojo.errors import LoweringError


class NestWalk(ABC):
    """Visits the nodes of a nest in order.

    The walk evaluates guards that are constant. It visits every iteration of an unrolled scope, with the value of its
    variable in `known`.
    """

    hardware: ClassVar[str] = "a CPU"
    """The target's name in messages."""
    dissolved: ClassVar[frozenset[Mapping]] = frozenset((Mapping.SEQUENTIAL, Mapping.UNROLL, Mapping.VECTOR))
    """Mappings whose scopes emit no loop if their extent is 1."""

    skips: ClassVar[bool] = True
    """Whether a scope is skipped if none of its statements runs for the sizes of a call."""

    def __init__(self, known: dict[int, int], extents: list[int]) -> None:
        self.known = known
        """Values of the induction variables that are constant at this point, keyed by depth."""
        self.extents = extents
        """Extents of the open scopes, keyed by depth."""
        self._bounds: dict[Scope, LoopBounds] = {}
        self._holding: list[Expr] = []
        """The constraints that hold where code is appended, because branches around it check them."""

    # Methods that a backend implements

    @abstractmethod
    def statement(self, leaf: Leaf) -> None:
        """Append the code of a statement."""

    @abstractmethod
    def branch(self, constraints: Sequence[Expr]) -> AbstractContextManager[object]:
        """A context in which appended code runs only if `e >= 0` holds for all constraints, none of them constant."""

    @abstractmethod
    def loop(self, scope: Scope, bounds: LoopBounds) -> None:
        """Append a loop around `body`."""

    @abstractmethod
    def vector(self, scope: Scope, leaf: Leaf, bounds: LoopBounds) -> None:
        """Append a statement for all lanes of a scope."""

    def unroll(self, scope: Scope, bounds: LoopBounds) -> None:
        """Append the code of a scope with mapping `u`."""
        self.unrolled(scope, bounds)

    def other(self, scope: Scope, bounds: LoopBounds) -> None:
        """Append the code of a scope with another mapping. Raises LoweringError if the hardware lacks it."""
        raise LoweringError(
            f"{describe(scope)} is mapped to '{scope.mapping.value}', which {self.hardware} does not have; "
            f"take the mapping back (unmap)"
        )

    def iteration(self, scope: Scope, value: int) -> None:
        """Begin an iteration of unrolled code."""
        self.known[scope.depth] = value

    def bounds(self, scope: Scope) -> LoopBounds:
        """The guard of a scope, sorted by the place where each constraint is checked."""
        found = loop_bounds(scope, self.extents)
        needed = _needed_sizes(scope) if self.skips else []
        return replace(found, outer=tuple(dict.fromkeys((*needed, *found.outer))))

    # The walk

    def nodes(self, nodes: Sequence[Node]) -> None:
        """Append the code of nodes, in order."""
        for node in nodes:
            if isinstance(node, Leaf):
                self.statement(node)
            else:
                with self.inside(node) as bounds, self.guarded(bounds.outer) as possible:
                    if possible:
                        self._mapped(node, bounds)

    @contextmanager
    def inside(self, scope: Scope) -> Generator[LoopBounds]:
        """A context in which the scope is open; yields its bounds."""
        self.extents.append(scope.extent)
        if scope not in self._bounds:
            self._bounds[scope] = self.bounds(scope)
        yield self._bounds[scope]
        self.extents.pop()

    def body(self, scope: Scope, bounds: LoopBounds) -> None:
        """Append the code of one loop iteration."""
        with self.guarded(bounds.inner) as possible:
            if possible:
                self.nodes(scope.children)

    def unrolled(self, scope: Scope, bounds: LoopBounds) -> None:
        """Append the code of every iteration."""
        for value in range(scope.extent):
            self.iteration(scope, value)
            with self.guarded(bounds.own) as possible:
                if possible:
                    self.nodes(scope.children)
        del self.known[scope.depth]

    @contextmanager
    def guarded(self, constraints: Sequence[Expr]) -> Generator[bool]:
        """A context in which appended code runs only if `e >= 0` holds for all constraints; yields False if never."""
        bound = [bind(c, self.known, self.extents) for c in constraints]
        outcomes = [c in self._holding or decided(c, self.extents) for c in bound]
        undecided = [c for c, outcome in zip(bound, outcomes, strict=True) if outcome is None]
        if False in outcomes or not undecided:
            yield False not in outcomes
            return
        self._holding += undecided
        with self.restricted(undecided):
            yield True
        del self._holding[-len(undecided) :]

    def restricted(self, constraints: Sequence[Expr]) -> AbstractContextManager[object]:
        """A context in which appended code runs only if all constraints, which are not constant, hold."""
        return self.branch(constraints)

    def _mapped(self, scope: Scope, bounds: LoopBounds) -> None:
        match scope.mapping:
            case mapping if scope.extent == 1 and mapping in self.dissolved:
                self.unrolled(scope, bounds)
            case Mapping.SEQUENTIAL:
                self.loop(scope, bounds)
            case Mapping.UNROLL:
                self.unroll(scope, bounds)
            case Mapping.VECTOR:
                (leaf,) = scope.children
                assert isinstance(leaf, Leaf), "a vector scope wraps one statement; kernels are verified"
                self.vector(scope, leaf, bounds)
            case _:
                self.other(scope, bounds)


@dataclass(frozen=True, slots=True)
class LoopBounds:
    """The guard of a scope, keyed by kind of check. The scope runs over `max(lows) <= i < min(highs)`."""

    outer: tuple[Expr, ...]
    """Constraints `e >= 0` without the scope's own variable: checked once, before the scope."""
    lows: tuple[Expr, ...]
    highs: tuple[Expr, ...]
    inner: tuple[Expr, ...]
    """Constraints with the scope's variable inside a division: checked in each iteration."""
    own: tuple[Expr, ...]
    """All constraints with the scope's variable: checked in each iteration of unrolled code."""


def lanes_together(scope: Scope) -> range:
    """The lanes of a vector scope, for code that computes all of them at once: no guard may exclude one.

    The lanes of a guarded scope run one by one, each behind its guard (`NestWalk.unrolled`).
    """
    assert not scope.guard, f"{describe(scope)} has a guard"
    return range(scope.extent)


def loop_bounds(scope: Scope, extents: Sequence[int]) -> LoopBounds:
    """Turn the constraints of a guard that are linear in the scope's variable into bounds of that variable.

    Iterations in which no statement runs, by the guards of the scopes inside, are left out.
    """
    outer: list[Expr] = []
    lows: list[Expr] = []
    highs: list[Expr] = []
    inner: list[Expr] = []
    for constraint in scope.guard:
        factor = constraint.coefficient(scope.depth)
        rest = constraint - var(scope.depth) * factor
        if rest.uses(scope.depth):
            inner.append(constraint)
        elif factor == 0:
            outer.append(constraint)
        elif factor < 0:
            # rest - f * i >= 0  iff  i <= rest floordiv f
            highs.append(floordiv(rest, -factor, extents) + 1)
        else:
            # rest + f * i >= 0  iff  i >= ceil(-rest / f) = -(rest floordiv f)
            lows.append(-floordiv(rest, factor, extents))
    own = tuple(constraint for constraint in scope.guard if constraint.uses(scope.depth))
    for constraint in _needed_inside(scope):
        factor = constraint.coefficient(scope.depth)
        rest = constraint - var(scope.depth) * factor
        if factor < 0 and not rest.uses(scope.depth) and constraint.bounds(extents)[0] < 0:
            highs.append(floordiv(rest, -factor, extents) + 1)
    return LoopBounds(tuple(outer), tuple(lows), tuple(highs), tuple(inner), own)


def sized_bounds(scope: Scope, extents: Sequence[int]) -> LoopBounds:
    """Bounds that check the guard in each iteration, but for upper bounds that depend on sizes."""
    highs = tuple(e for e in loop_bounds(scope, extents).highs if sizes_in([e]))
    inner = tuple(g for g in scope.guard if not (sizes_in([g]) and _is_high(g, scope.depth)))
    return LoopBounds((), (), highs, inner=inner, own=scope.guard)


def _is_high(constraint: Expr, depth: int) -> bool:
    """Whether a constraint is nothing but an upper bound of the variable at a depth."""
    factor = constraint.coefficient(depth)
    return factor < 0 and not (constraint - var(depth) * factor).uses(depth)


def _needed_sizes(scope: Scope) -> list[Expr]:
    """Constraints on sizes that hold if any statement of a scope runs, but for those that end its loop at once."""
    ends = [] if scope.mapping is Mapping.SEQUENTIAL else [*scope.guard]
    found = _around(scope, [*ends, *_needed_inside(scope)])
    return [constraint for constraint in found if sizes_in([constraint]) and not constraint.variables()]


def _needed_inside(scope: Scope) -> list[Expr]:
    """Constraints on a scope's iterations that hold if any statement inside runs (not all of them)."""
    if any(isinstance(child, Leaf) for child in scope.children):
        return []
    first, *others = (_needed_around(child) for child in scope.children)
    return [constraint for constraint in first if all(constraint in other for other in others)]


def _needed_around(child: Node) -> list[Expr]:
    """Constraints on the iterations around a node that hold if any statement inside runs (not all of them)."""
    return [] if isinstance(child, Leaf) else _around(child, [*child.guard, *_needed_inside(child)])


def _around(scope: Scope, constraints: Sequence[Expr]) -> list[Expr]:
    """Constraints on the iterations around a scope, of those on its own: the best one meets them if any does."""
    rows = [(c, c.coefficient(scope.depth)) for c in constraints]
    rests = [(c - var(scope.depth) * factor, factor) for c, factor in rows]
    return [rest + max(0, factor) * (scope.extent - 1) for rest, factor in rests if not rest.uses(scope.depth)]


def decided(constraint: Expr, extents: Sequence[int]) -> bool | None:
    """Whether `constraint >= 0` holds for all iterations (True), for none (False), or for some (None)."""
    low, high = constraint.bounds(extents)
    return True if low >= 0 else False if high < 0 else None


def describe(scope: Scope) -> str:
    """A scope's description in messages: the arrays that it writes, its depth, extent and mapping."""
    written = ", ".join(dict.fromkeys(leaf.output.array.name for leaf in scope.leaves)) or "nothing"
    suffix = "" if scope.mapping.value == "seq" else f":{scope.mapping.value}"
    return f"the scope '{scope.extent}{suffix}' at depth {scope.depth} around the writes of {written}"
