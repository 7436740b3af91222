"""Origins of values that the text shows, or that running through few instances shows."""

from __future__ import annotations

from collections.abc import Container, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from pdojo.dialect.affine import Expr, atom_variables, const, var
from pdojo.dialect.flow.collision import Query
from pdojo.dialect.flow.coverage import common_depth, cover_together, covers, reaches
from pdojo.dialect.flow.flows import Uninitialised
from pdojo.dialect.flow.integer_sets import bounded
from pdojo.dialect.flow.origins import ValueQuestion, another
from pdojo.dialect.flow.shortcut import Answer
from pdojo.dialect.flow.uses import Use
from pdojo.dialect.shortcuts.digits import excluded, impossible
from pdojo.dialect.shortcuts.representatives import representatives
from pdojo.dialect.view.nest import Leaf
from pdojo.dialect.view.paths import node_path
from pdojo.errors import Undecided, UnknownSize

if TYPE_CHECKING:
    from pdojo.dialect.shortcuts.enumeration import Values

LATEST = 32
"""Number of latest contents whose values are kept."""


def obvious(question: ValueQuestion[Any]) -> Answer[Any] | None:
    """The answer that the order of statements and their index expressions show."""
    uses, first = question.uses, cast(int, question.parameters[0])
    match question.kind:
        case "writers":
            found = latest_write(uses, first)
            return None if found is None else Answer(((found,), True))
        case "reader":
            found = next((k for k in range(len(uses)) if feeds(uses, first, k)), None)
            others = (u for u in uses if u.reads and u.leaf is not uses[first].leaf)
            is_read = found is not None or not all(_are_apart(uses[first], other) for other in others)
            return Answer(found) if found is not None or not is_read else None
        case "carried":
            # All reads get values of their own iteration.
            return Answer(None) if are_covered(uses, uses) else None
        case "unwritten":
            return Answer(None) if are_covered(uses, [uses[first]]) else None
        case "stray":
            return Answer(None) if comes_from(uses, *question.parameters) else None
        case "change":
            return Answer(None) if stays(uses, *question.parameters) else None
        case _:
            return None


def enumerated(question: ValueQuestion[Any]) -> Answer[Any] | None:
    """The answer by all instances, if they are few."""
    if question.kind not in ("writers", "stray", "change", "partial", "reader"):
        return None
    values = _values(question)
    if values is None and question.kind in ("writers", "reader"):
        values = _values(question, few=True)
    if values is None:
        return _writers(question.uses, *question.parameters) if question.kind == "writers" else None
    uses, parameters = question.uses, question.parameters
    match question.kind:
        case "partial":
            found: object = values.partial(uses, *parameters)
        case "reader":
            found = another(values.readers(*parameters), uses, *parameters)
        case kind:
            found = getattr(values, kind)(*parameters)
    return Answer(found, "instances")


def _writers(uses: Sequence[Use], read: int) -> Answer[Any] | None:
    """The writers of a read, by instances of it and of all writes that stand for all; other reads do not matter."""
    from pdojo.dialect.shortcuts.enumeration import values_of  # NumPy takes long to start

    kept = [number for number, use in enumerate(uses) if use.writes or number == read]
    some = [uses[number] for number in kept]
    only = representatives(some, None)
    values = None if only is None else values_of(some, only)
    if values is None:
        return None
    writers, is_complete = values.writers(kept.index(read))
    return Answer((tuple([kept[number] for number in writers]), is_complete), "instances")


def _values(question: ValueQuestion[Any], *, few: bool = False) -> Values | None:
    """The values of the elements, or of `few` that stand for all; None if there are too many.

    They are kept for further questions about the same content.
    """
    latest = question.instances
    key = few, *question.content
    if key not in latest:
        from pdojo.dialect.shortcuts.enumeration import values_of  # NumPy takes long to start

        only = representatives(question.uses, None) if few else None
        latest[key] = None if few and only is None else values_of(question.uses, only)
        if len(latest) > LATEST:
            latest.popitem(last=False)
    return cast("Values | None", latest[key])


def initialised(question: Uninitialised) -> Answer[tuple[Use, tuple[int, ...]] | None] | None:
    """No unwritten read if writes of the same iteration cover each; the first read if nothing comes before it.

    Integer sets of single iterations tell whether several writes together cover a read.
    """
    uses = question.uses
    writes = [(use.leaf, use.access) for use in uses if use.writes]
    left = [u for u in uses if u.reads and not any(covers(*write, u.leaf, u.access) for write in writes)]
    if not left:
        return Answer(None)
    first = min(uses, key=lambda u: u.leaf.order).leaf
    start = (0,) * first.depth
    found = next((use for use in uses if use.leaf is first and use.reads), None)
    # A read that nothing precedes at the greatest sizes is one; entries have no values.
    with suppress(UnknownSize):
        if found is not None and all(g.evaluate(start, {}) >= 0 for g in first.guards):
            return Answer((found, start))
    with suppress(Undecided), bounded(question.operations):
        if all(cover_together(writes, use.leaf, use.access) for use in left):
            return Answer(None, "integer sets")
    return None


def are_covered(uses: Sequence[Use], reads: Sequence[Use]) -> bool:
    """Whether every read gets a value of its own iteration of the scopes that it shares with the write."""
    writes = [use for use in uses if use.writes]
    return all(any(covers(w.leaf, w.access, r.leaf, r.access) for w in writes) for r in reads if r.reads)


def latest_write(uses: Sequence[Use], read: int) -> int | None:
    """The use that certainly writes last before every instance of a read; None if that is not obvious.

    It is the last write before the read in the text, and no other write stands with the read or between the two, but
    for one by the reading statement to the same element, which tells the iteration. Writes of other elements do not
    count.
    """
    found = _latest(uses, read)
    if found is None and uses[read].leaf.guards:
        kept = [k for k, u in enumerate(uses) if k == read or not (u.writes and _are_apart(u, uses[read]))]
        some = _latest([uses[k] for k in kept], kept.index(read)) if len(kept) < len(uses) else None
        found = None if some is None else kept[some]
    return found


def _are_apart(one: Use, other: Use) -> bool:
    """Whether two uses of an array certainly touch different elements."""
    query = Query(one.domain, other.domain, tuple(zip(one.access.index, other.access.index, strict=True)), ())
    return impossible(query) or excluded(query) is not None


def _latest(uses: Sequence[Use], read: int) -> int | None:
    """`latest_write` if all other writes count."""
    reader = uses[read].leaf
    before = [k for k, u in enumerate(uses) if u.writes and u.leaf.order < reader.order]
    found = max(before, key=lambda k: uses[k].leaf.order, default=None)
    if found is None or not _stays_until(uses, found, read):
        return None
    depth = common_depth((uses[found].leaf, reader))
    # A statement writes after it has read.
    again = [u for u in uses if u.leaf is reader and u.access.index == uses[read].access.index and _tells(u, depth)]
    others = (u.leaf for u in uses if u.writes and u not in again and (u.leaf is not reader or reader.depth > depth))
    return None if any(_place(leaf, reader, depth) == 0 for leaf in others) else found


def comes_from(uses: Sequence[Use], read: int, write: int, at: Sequence[Expr]) -> bool:
    """Whether every instance of a read certainly gets the value of a write's iteration `at`.

    The write is the latest one, in the same iteration of the common scopes, and each other variable of it stands alone
    in some dimension, so that the element tells the iteration.
    """
    writer, reader = uses[write], uses[read].leaf
    if not _touches(writer, at, uses[read]) or latest_write(uses, read) != write:
        return False
    shared = common_depth((writer.leaf, reader))
    single = (d for d in range(shared, writer.leaf.depth) if writer.leaf.extents[d] == 1)
    return _tells(writer, shared) and all(at[d] == const(0) for d in single)


def _tells(use: Use, shared: int) -> bool:
    """Whether the element tells the iteration, among those in one iteration of the `shared` outermost scopes.

    It does if each other variable stands alone in some dimension.
    """
    own = [{v for v in e.variables() if v >= shared} for e in use.access.index]
    told = {max(some) for some, e in zip(own, use.access.index, strict=True) if len(some) == 1 and _is_outside(e, some)}
    return all(d in told or use.leaf.extents[d] == 1 for d in range(shared, use.leaf.depth))


def _is_outside(expression: Expr, depths: Container[int]) -> bool:
    """Whether no division, and no lookup, is of the variables of some scopes."""
    return all(isinstance(a, int) or not any(d in depths for d in atom_variables(a)) for a, _ in expression.terms)


def stays(uses: Sequence[Use], first: int, second: int, at: Sequence[Expr]) -> bool:
    """Whether a read certainly has the origin of the read `first` in iteration `at`.

    Both read one element, in one iteration of the common scopes, and no write stands with one of them or between them.
    """
    one, other = uses[first].leaf, uses[second].leaf
    if not (_touches(uses[first], at, uses[second]) and _runs(one, at, other)):
        return False
    depth = common_depth((one, other))
    places = ((_place(use.leaf, one, depth), _place(use.leaf, other, depth)) for use in uses if use.writes)
    return all(mine is None or theirs is None or mine * theirs > 0 for mine, theirs in places)


def _touches(use: Use, at: Sequence[Expr], other: Use) -> bool:
    """Whether a use in iteration `at` touches the element of another, in one iteration of their common scopes."""
    around, shared = other.leaf.extents, common_depth((use.leaf, other.leaf))
    same = all(at[d] == (var(d) if extent > 1 else const(0)) for d, extent in enumerate(around[:shared]))
    element = (e.substitute(dict(enumerate(at)), around) for e in use.access.index)
    return same and all(e == wanted for e, wanted in zip(element, other.access.index, strict=True))


def _runs(leaf: Leaf, at: Sequence[Expr], other: Leaf) -> bool:
    """Whether the iteration `at` certainly exists whenever the other statement runs."""
    ranges = [expression.bounds(other.extents) for expression in at]
    if any(low < 0 or high >= extent for (low, high), extent in zip(ranges, leaf.extents, strict=True)):
        return False
    guards = (guard.substitute(dict(enumerate(at)), other.extents) for guard in leaf.guards)
    return all(guard in other.guards or guard.bounds(other.extents)[0] >= 0 for guard in guards)


def feeds(uses: Sequence[Use], write: int, read: int) -> bool:
    """Whether the first instance of a read certainly gets a value of a write by another statement (not complete).

    At the greatest sizes: a value that a read gets at some sizes is read.

    Later statements in the read's subtree have not run by then.
    """
    writer, reader = uses[write].leaf, uses[read].leaf
    if not uses[read].reads or reader.order <= writer.order or not _stays_until(uses, write, read):
        return False
    depth = common_depth((writer, reader))
    runs = all(g.evaluate((0,) * reader.depth, {}) >= 0 for g in reader.guards)
    others = (u.leaf for u in uses if u.writes and u.leaf.order < reader.order)
    return runs and not any(_place(leaf, reader, depth) == 0 for leaf in others)


def _stays_until(uses: Sequence[Use], write: int, read: int) -> bool:
    """Whether every element of a later read holds the value of a write, in each iteration of their common scopes.

    Other writes may share the write's subtree if it writes the same elements after them; none may stand between write
    and read.
    """
    use, reader = uses[write], uses[read].leaf
    if not reaches(use.leaf, use.access, reader, uses[read].access):
        return False
    depth = common_depth((use.leaf, reader))
    for other in uses:
        if not other.writes or other.leaf is use.leaf:
            continue
        if _place(other.leaf, use.leaf, depth) == 0:
            if other.leaf.order > use.leaf.order or not reaches(use.leaf, use.access, other.leaf, other.access):
                return False
        elif (_place(other.leaf, use.leaf, depth) or 0) > 0 > (_place(other.leaf, reader, depth) or 0):
            return False
    return True


def _place(leaf: Leaf, other: Leaf, depth: int) -> int | None:
    """Position of a statement relative to another among the children of their scope at `depth` - 1.

    Negative (before), 0 (same child) or positive (after); None if the statement is not in that scope.
    """
    if common_depth((leaf, other)) < depth:
        return None
    return node_path(leaf)[depth] - node_path(other)[depth]
