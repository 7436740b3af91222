"""Where does the value that a read gets come from, and who needs the value that a write leaves?

Asked over elements with all scopes in order: the meaning of a program. The *origin* of a read is the last instance
before it that writes the element; a read without one gets what the caller wrote. Answers are exact, by integer
relations, and remembered by the content of the question.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from pdojo.dialect.affine import Expr
from pdojo.dialect.analysis.coverage import common_depth, reaches
from pdojo.dialect.analysis.integer_sets import context, domain_constraints, spell, variables
from pdojo.dialect.analysis.storage_check import Use, content_of, flow, last_writes
from pdojo.dialect.nest import Access, Array, Leaf, Nest
from pdojo.dialect.verify import node_path

if TYPE_CHECKING:
    import islpy as isl

Iteration: TypeAlias = tuple[int, ...]

AnswerT = TypeVar("AnswerT")


class Origins:
    """Answers and remembers questions about values; one object is shared by all states of a game.

    All take the uses of one array (`element_uses`) and name uses by their number among these.
    """

    def __init__(self) -> None:
        self._answers: dict[tuple[object, ...], object] = {}
        self._flows: dict[tuple[object, ...], isl.UnionMap] = {}
        self.exact_queries = 0
        """How many questions needed integer relations."""

    def writers(self, uses: Sequence[Use], read: int) -> tuple[tuple[int, ...], bool]:
        """The uses whose writes reach the read, and whether every instance of it gets a written value."""
        if not any(u.writes for u in uses):
            return (), False
        only = latest_write(uses, read)
        quick = None if only is None else ((only,), True)
        return self._ask(("writers", read), uses, lambda flow: _writers(flow, uses, read), quick)

    def stray(self, uses: Sequence[Use], read: int, write: int, at: Sequence[Expr]) -> Iteration | None:
        """An iteration of the read that gets something else than what `write` writes in iteration `at`.

        `at` gives the iteration of the write in terms of that of the read.
        """
        return self._ask(("stray", read, write, tuple(at)), uses, lambda flow: _stray(flow, uses, read, write, at))

    def change(self, uses: Sequence[Use], first: int, second: int, at: Sequence[Expr]) -> Iteration | None:
        """An iteration of the read `second` whose value has another origin than that of `first` in iteration `at`."""
        if not any(u.writes for u in uses):
            return None
        return self._ask(
            ("change", first, second, tuple(at)), uses, lambda flow: _change(flow, uses, first, second, at)
        )

    def reader(self, uses: Sequence[Use], write: int) -> int | None:
        """A use, of another statement, that reads what `write` writes; None if there is none."""
        if not any(u.reads and u.leaf is not uses[write].leaf for u in uses):
            return None
        others = (k for k, u in enumerate(uses) if u.reads and u.leaf is not uses[write].leaf and _runs(u.leaf))
        quick = next((k for k in others if latest_write(uses, k) == write), None)
        return self._ask(("reader", write), uses, lambda flow: _reader(flow, uses, write), quick)

    def remains(self, uses: Sequence[Use], write: int) -> bool:
        """Whether some element is written by `write` last."""
        return self._ask(("remains", write), uses, lambda _: _remains(uses, write))

    def _ask(
        self,
        question: tuple[object, ...],
        uses: Sequence[Use],
        answer: Callable[[isl.UnionMap], AnswerT],
        quick: AnswerT | None = None,
    ) -> AnswerT:
        if quick is not None:
            return quick
        content = content_of(uses)
        key = (*question, *content)
        if key not in self._answers:
            self.exact_queries += 1
            if content not in self._flows:
                self._flows[content] = flow(uses, [u.access.index for u in uses])
            self._answers[key] = answer(self._flows[content])
        return self._answers[key]  # pyright: ignore[reportReturnType]  # what was stored under the key


def element_uses(nest: Nest, array: Array, extra: Sequence[tuple[Leaf, Access]] = ()) -> list[Use]:
    """All accesses to the array as accesses to its elements, then `extra` reads that statements might do."""
    present = [(leaf, a) for leaf in nest.leaves for a in leaf.accesses if a.array is array]
    return [Use(leaf, a, leaf.chain, a.index) for leaf, a in (*present, *extra)]


def number_of(uses: Sequence[Use], leaf: Leaf, access: Access) -> int:
    """The number of the use that this access of this statement is."""
    return next(k for k, u in enumerate(uses) if u.leaf is leaf and u.access is access)


def _runs(leaf: Leaf) -> bool:
    """Whether the first iteration of a statement surely runs, where its scopes have guards."""
    return all(g.evaluate((0,) * leaf.depth) >= 0 for g in leaf.guards)


def latest_write(uses: Sequence[Use], read: int) -> int | None:
    """The use that surely writes last what a read gets, in all its instances; None where that is not plain to see.

    It stands before the read and touches all of its elements in each iteration of their common scopes; there, no other
    write stands in the part with either of them, or between.
    """
    reader = uses[read]
    before = [k for k, u in enumerate(uses) if u.writes and u.leaf.order < reader.leaf.order]
    found = max(before, key=lambda k: uses[k].leaf.order, default=None)
    if found is None or not reaches(uses[found].leaf, uses[found].access, reader.leaf, reader.access):
        return None
    writer = uses[found].leaf
    depth = common_depth((writer, reader.leaf))
    first, last = node_path(writer)[depth], node_path(reader.leaf)[depth]
    for other in uses:
        # A statement writes after it has read.
        itself = other.leaf is writer or (other.leaf is reader.leaf and reader.leaf.depth == depth)
        beside = common_depth((other.leaf, writer, reader.leaf)) == depth
        if other.writes and not itself and beside and first <= node_path(other.leaf)[depth] <= last:
            return None
    return found


def _instances(kind: str, number: int, use: Use) -> isl.UnionSet:
    import islpy as isl

    names = variables("i", use.leaf.depth)
    domain = " and ".join(domain_constraints(use.leaf.extents, use.leaf.guards, names)) or "true"
    return isl.UnionSet.read_from_str(context(), f"{{ {kind}{number}[{', '.join(names)}] : {domain} }}")


def _origin(values: isl.UnionMap, uses: Sequence[Use], read: int) -> isl.UnionMap:
    """From the instances of a read to those of the writes that they get their values from."""
    return values.intersect_range(_instances("R", read, uses[read])).reverse()


def _related(uses: Sequence[Use], read: int, target: str, at: Sequence[Expr]) -> isl.UnionMap:
    """From every instance of a read to the instance `at` of `target`."""
    import islpy as isl

    leaf = uses[read].leaf
    names = variables("i", leaf.depth)
    domain = " and ".join(domain_constraints(leaf.extents, leaf.guards, names)) or "true"
    there = ", ".join(spell(e, names) for e in at)
    return isl.UnionMap.read_from_str(context(), f"{{ R{read}[{', '.join(names)}] -> {target}[{there}] : {domain} }}")


def _writers(values: isl.UnionMap, uses: Sequence[Use], read: int) -> tuple[tuple[int, ...], bool]:
    origin = _origin(values, uses, read)
    found: list[int] = []
    origin.range().foreach_set(lambda piece: found.append(int(piece.get_tuple_name()[1:])))
    complete = _instances("R", read, uses[read]).subtract(origin.domain()).is_empty()
    return tuple(sorted(set(found))), complete


def _stray(values: isl.UnionMap, uses: Sequence[Use], read: int, write: int, at: Sequence[Expr]) -> Iteration | None:
    return _first_difference(_origin(values, uses, read), _related(uses, read, f"W{write}", at), uses[read])


def _change(values: isl.UnionMap, uses: Sequence[Use], first: int, second: int, at: Sequence[Expr]) -> Iteration | None:
    expected = _related(uses, second, f"R{first}", at).apply_range(_origin(values, uses, first))
    return _first_difference(_origin(values, uses, second), expected, uses[second])


def _first_difference(one: isl.UnionMap, other: isl.UnionMap, read: Use) -> Iteration | None:
    """An instance of the read that two relations treat differently."""
    import islpy as isl

    wrong = one.subtract(other).union(other.subtract(one)).domain()
    if wrong.is_empty():
        return None
    point = wrong.sample_point()
    return tuple(point.get_coordinate_val(isl.dim_type.set, k).to_python() for k in range(read.leaf.depth))


def _reader(values: isl.UnionMap, uses: Sequence[Use], write: int) -> int | None:
    found: list[int] = []
    reached = values.intersect_domain(_instances("W", write, uses[write])).range()
    reached.foreach_set(lambda piece: found.append(int(piece.get_tuple_name()[1:])))
    others = [k for k in sorted(found) if uses[k].leaf is not uses[write].leaf]
    return others[0] if others else None


def _remains(uses: Sequence[Use], write: int) -> bool:
    last = last_writes(uses, [u.access.index for u in uses])
    return not last.intersect(_instances("W", write, uses[write])).is_empty()
