"""Representatives: a few iterations of each scope that stand for all, in questions about one buffer's values.

A violation involves at most three instances: a write, the read of its element, and a write to the same cell between
them. If every violation has an image among some instances that is a violation too, these instances answer for all.
Two kinds of scopes have such images:

- **Repeated**: no element, cell or guard inside uses the variable. All iterations touch the same places, so a value
  from an earlier iteration comes from the previous one, and a value that leaves the scope comes from the last one.
  The first two iterations and the last one stand for all.
- **Digits**: some dimensions of the array together tell the iterations of some scopes apart, and nothing else uses
  the variables. Every change of these digits that keeps their order also keeps the order and elements of instances.
  A violation involves two values of a digit, the element's and that of the write between, which are equal if cells
  have the digit too. Dimensions may be `{i} + c`, with one c for each scope, or constants: then two values (or one)
  from each interval in which no range ends stand for all. Or all uses mix several variables in one way.

An image of one kind keeps the variables of other scopes, so images are taken one after the other.

Images keep the writes that reach a read, too, if each element has a cell. So representatives also tell which writes
reach a read, whether all its values are written, and who reads a write.

Sizes may only be extents of such scopes: of repeated ones that always run, and of digits that are the same for all
uses. Then instances at some sizes are instances at the greatest ones. They keep their values there, because the others
have other elements (digits) or run between equal ones (repeated). So the answer for the greatest sizes is that for all.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from math import prod

from pdojo.dialect.affine import Div, Expr, Size, const, var
from pdojo.dialect.flow.uses import Use
from pdojo.dialect.lookups import sizes_in
from pdojo.dialect.view.nest import Scope
from pdojo.dialect.view.nodes import run_time_extent

MOST_DIGITS = 1 << 16
"""Most combinations of several digits that are enumerated to check that they are distinct."""


@dataclass(frozen=True, slots=True)
class Representatives:
    """Iterations that stand for all; scopes and dimensions without an entry need all of theirs."""

    scopes: Mapping[Scope, tuple[int, ...]]
    dimensions: Mapping[int, tuple[int, ...]]
    """Per dimension, the indices of the caller's elements."""

    def of(self, scope: Scope) -> Sequence[int]:
        """The representative iterations of a scope."""
        return self.scopes.get(scope, range(scope.extent))

    def along(self, dimension: int, extent: int) -> Sequence[int]:
        """The representative indices of the caller's elements in a dimension."""
        return self.dimensions.get(dimension, range(extent))


def representatives(uses: Sequence[Use], shape: Sequence[Expr] | None) -> Representatives | None:
    """Representatives of the instances at the greatest sizes of some uses of one buffer, and of the caller's elements.

    None if all instances are needed, or for all sizes. `shape` is the caller's array's, each element of which has a
    cell; None if there is no caller.
    """
    ranks = {len(use.access.index) for use in uses}
    if shape is not None:
        ranks.add(len(shape))
    repeated = _repeated(uses)
    scopes: dict[Scope, tuple[int, ...]] = {s: (0, 1, s.extent - 1) for s in repeated if s.extent > 3}
    dimensions: dict[int, tuple[int, ...]] = {}
    if len(ranks) == 1 and len({len(use.cell) for use in uses}) == 1:
        for group in _groups(uses, ranks.pop()):
            found = _line(uses, group[0], shape) if len(group) == 1 else None
            if found is None and shape is None:
                found = _mixed(uses, group)
            if found is not None:
                scopes.update(found.scopes)
                dimensions.update(found.dimensions)
    if not _are_known(uses, {*repeated, *scopes}) or any(
        e.terms for k, e in enumerate(shape or ()) if k not in dimensions
    ):
        return None
    return Representatives(scopes, dimensions) if scopes or dimensions else None


def _are_known(uses: Sequence[Use], scopes: Container[Scope]) -> bool:
    """Whether scopes and guards have sizes as nothing but extents of some scopes, or in guards of these alone.

    Sizes in elements and cells have no numbers, so that instances have no answer.
    """
    for use in uses:
        for scope in use.leaf.chain:
            extent, guard = _extent(scope)
            if extent.terms and scope not in scopes:
                return False
            for constraint in guard:
                around = [use.leaf.chain[depth] for depth in constraint.variables()]
                if sizes_in([constraint]) and not (around and all(s in scopes for s in around)):
                    return False
    return True


def _extent(scope: Scope) -> tuple[Expr, tuple[Expr, ...]]:
    """The extent, an expression that grows with every size, and the other constraints of the guard."""
    found = run_time_extent(scope)
    if found is None or not _grows(found[0]):
        return const(scope.extent), scope.guard
    return found[0], tuple(g for g in scope.guard if g != found[1])


def _grows(expression: Expr) -> bool:
    """Whether an expression of variables and sizes certainly has its greatest value at the greatest sizes."""
    return all(
        isinstance(atom, int)
        or (factor > 0 and (isinstance(atom, Size) or (isinstance(atom, Div) and _grows(atom.numerator))))
        for atom, factor in expression.terms
    )


def _guards(use: Use) -> list[Expr]:
    """The guards of a use but for those that state extents."""
    return [constraint for scope in use.leaf.chain for constraint in _extent(scope)[1]]


def _repeated(uses: Sequence[Use]) -> list[Scope]:
    """The scopes that always run, and whose variable is in no element, cell or guard of any use inside."""
    used: dict[Scope, bool] = {}
    for use in uses:
        variables = _variables((*use.access.index, *use.cell, *_guards(use)))
        for scope in use.leaf.chain:
            used[scope] = used.get(scope, _extent(scope)[0].bounds(())[0] < 1) or scope.depth in variables
    return [scope for scope, is_used in used.items() if not is_used]


def _variables(expressions: Iterable[Expr]) -> frozenset[int]:
    return frozenset[int]().union(*(e.variables() for e in expressions))


def _groups(uses: Sequence[Use], rank: int) -> list[list[int]]:
    """The dimensions of elements in groups: two are in one group if some use has a variable in both."""
    groups = [{dimension} for dimension in range(rank)]
    for use in uses:
        for one in range(rank):
            for other in range(one):
                if use.access.index[one].variables() & use.access.index[other].variables():
                    mine, theirs = (next(g for g in groups if k in g) for k in (one, other))
                    if mine is not theirs:
                        groups.remove(theirs)
                        mine |= theirs
    return [sorted(group) for group in groups]


def _line(uses: Sequence[Use], dimension: int, shape: Sequence[Expr] | None) -> Representatives | None:
    """Representatives if the dimension is `{i} + c` or a constant in all uses; else None."""
    offsets: dict[Scope, int] = {}
    constants: set[int] = set()
    variables: list[tuple[int, ...]] = []
    for use in uses:
        index = use.access.index[dimension]
        if index.is_constant:
            constants.add(index.constant)
            variables.append(())
            continue
        depth = next(iter(index.variables()), None)
        if depth is None or index.terms != ((depth, 1),):
            return None
        if offsets.setdefault(use.leaf.chain[depth], index.constant) != index.constant:
            return None
        variables.append((depth,))
    if not all(_has_own(use, offsets, own) for use, own in zip(uses, variables, strict=True)):
        return None
    columns = [k for k in range(len(uses[0].cell)) if all(u.cell[k] == u.access.index[dimension] for u in uses)]
    kept = [dimension] if dimension in columns else columns[:1]
    if not all(_is_free(use, own, (dimension,), kept) for use, own in zip(uses, variables, strict=True)):
        return None
    if shape is not None and kept != [dimension]:
        return None
    ends = {(c, _extent(scope)[0]) for scope, c in offsets.items()} | {(c, const(1)) for c in constants}
    if shape is not None:
        ends.add((0, shape[dimension]))
    if len(ends) > 1 and any(extent.terms for _, extent in ends):
        return None
    ranges = [(c, c + extent.bounds(())[1]) for c, extent in ends]
    bounds = sorted({bound for ends in ranges for bound in ends})
    chosen = [v for low, high in pairwise(bounds) for v in ((low,) if kept else (low, low + 1)) if v < high]
    scopes = {s: tuple(v - c for v in chosen if c <= v < c + s.extent) for s, c in offsets.items()}
    last = 0 if shape is None else shape[dimension].bounds(())[1]
    given = {} if shape is None else {dimension: tuple(v for v in chosen if 0 <= v < last)}
    return Representatives(scopes, given)


def _mixed(uses: Sequence[Use], group: Sequence[int]) -> Representatives | None:
    """Representatives if all uses mix equally many scopes' variables in a group's dimensions in one way; or None."""
    scopes: set[Scope] = set()
    ways: set[object] = set()
    digits = [sorted(_variables(use.access.index[k] for k in group)) for use in uses]
    for use, own in zip(uses, digits, strict=True):
        number = {depth: var(position) for position, depth in enumerate(own)}
        extents = tuple(use.leaf.extents[depth] for depth in own)
        mixed = tuple(use.access.index[k].substitute(number, extents) for k in group)
        columns = tuple(k for k, e in enumerate(use.cell) if e.variables() & set(own))
        if not _variables(use.cell[k] for k in columns) <= set(own):
            return None
        cell = tuple(use.cell[k].substitute(number, extents) for k in columns)
        lengths = tuple(_extent(use.leaf.chain[depth])[0] for depth in own)
        guards = frozenset(g.substitute(number, extents) for g in _guards(use) if _is_about(g, own))
        ways.add((extents, mixed, columns, cell, lengths, guards))
        scopes |= {use.leaf.chain[depth] for depth in own}
    if len(ways) > 1 or not digits[0]:
        return None
    if not all(_has_own(use, scopes, own) for use, own in zip(uses, digits, strict=True)):
        return None
    columns = [k for k, e in enumerate(uses[0].cell) if e.variables() & set(digits[0])]
    if not all(_is_free(use, own, group, columns) for use, own in zip(uses, digits, strict=True)):
        return None
    some = uses[0]
    if not _tells_apart([some.access.index[k] for k in group], digits[0], some.leaf.extents):
        return None
    if columns and not _tells_apart([some.cell[k] for k in columns], digits[0], some.leaf.extents):
        return None
    found = {scope: tuple(range(min(scope.extent, 1 if columns else 2))) for scope in scopes}
    return Representatives(found, {}) if _all_run(some, digits[0], found) else None


def _is_about(guard: Expr, depths: Sequence[int]) -> bool:
    """Whether a guard uses the variables of some scopes and no other ones."""
    return bool(guard.variables()) and guard.variables() <= set(depths)


def _all_run(use: Use, depths: Sequence[int], chosen: Mapping[Scope, Sequence[int]]) -> bool:
    """Whether some iterations of scopes meet all guards about these at the greatest sizes, where most of them run."""
    guards = [guard for guard in _guards(use) if _is_about(guard, depths)]
    values = [chosen.get(scope, (0,)) for scope in use.leaf.chain]
    return all(map(_grows, guards)) and all(
        guard.evaluate(point, {}) >= 0 for guard in guards for point in product(*values)
    )


def _has_own(use: Use, scopes: Iterable[Scope], depths: Sequence[int]) -> bool:
    """Whether the scopes around a use that are in `scopes` are exactly the scopes at `depths`."""
    wanted = set(scopes)
    return [scope.depth for scope in use.leaf.chain if scope in wanted] == list(depths)


def _is_free(use: Use, depths: Sequence[int], group: Sequence[int], columns: Sequence[int]) -> bool:
    """Whether the variables at `depths` occur only in dimensions `group` of the element and `columns` of the cell."""
    elsewhere = (
        *(e for k, e in enumerate(use.access.index) if k not in group),
        *(e for k, e in enumerate(use.cell) if k not in columns),
        *(g for g in _guards(use) if not (len(depths) > 1 and _is_about(g, depths))),
    )
    return not _variables(elsewhere) & set(depths)


def _tells_apart(expressions: Sequence[Expr], depths: Sequence[int], extents: Sequence[int]) -> bool:
    """Whether all iterations of some scopes have different values."""
    import numpy as np  # it takes long to start

    from pdojo.dialect.flow.points import evaluate

    count = prod(extents[depth] for depth in depths)
    if count > MOST_DIGITS:
        return False
    rows = np.zeros((len(extents), count), dtype=np.int64)
    rows[list(depths)] = np.indices([extents[depth] for depth in depths]).reshape(len(depths), count)
    values = np.array([evaluate(expression, rows) for expression in expressions])
    return np.unique(values, axis=1).shape[1] == count
