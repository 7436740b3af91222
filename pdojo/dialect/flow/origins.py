"""Origins of values: the writes that a read gets its value from, and the reads that need a write.

Questions are about elements with all scopes in order, the meaning of a program. The *origin* of a read is the last
instance before it that writes the element; a read without one gets the caller's value. Answers are exact, by
enumeration of few instances or by integer relations, and cached by the content of the question.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar, cast

from pdojo.dialect.affine import Expr
from pdojo.dialect.flow.flows import Caller, Instance, flow, gathered, last_writes, sampled
from pdojo.dialect.flow.integer_sets import (
    Answers,
    bounded,
    coordinates,
    domain_constraints,
    read_set,
    spell,
    variables,
    within_sizes,
)
from pdojo.dialect.flow.shortcut import answered
from pdojo.dialect.flow.storage_check import UseKey, content_of
from pdojo.dialect.flow.uses import Use, domain_of
from pdojo.dialect.view.nest import Access, Array, Leaf, Nest
from pdojo.dialect.view.storage import accesses_of

if TYPE_CHECKING:
    import islpy as isl

Iteration: TypeAlias = tuple[int, ...]

Instances: TypeAlias = str
"""Some instances of a statement: a set of iterations in the syntax of isl, without a name."""

AnswerT = TypeVar("AnswerT")


@dataclass(frozen=True)
class ValueQuestion(Generic[AnswerT]):
    """A question about the values of one array's elements."""

    kind: str
    """The method of `Origins` that asks it."""
    parameters: tuple[Any, ...]
    uses: Sequence[Use]
    relations: Callable[[], AnswerT]
    """Finds the answer by integer relations."""
    instances: OrderedDict[UseKey, object]
    """The latest contents whose instances were run through, for the shortcut that does."""

    def exact(self) -> AnswerT:
        """The answer by integer relations."""
        return self.relations()

    @property
    def key(self) -> UseKey:
        """All data that the answer depends on."""
        return self.kind, *self.parameters, *self.content

    @cached_property
    def content(self) -> UseKey:
        """All data of the uses that the answer depends on."""
        return content_of(self.uses)


class Origins:
    """Memo of questions about values and their answers; all states of a game share one object.

    All methods take the uses of one array (`element_uses`) and name uses by their number among these.
    """

    def __init__(self) -> None:
        self._answers = Answers[UseKey, object]()
        self._flows = Answers[UseKey, "isl.UnionMap"]()
        self._gathered = Answers[UseKey, "isl.UnionMap"]()
        self._lasts = Answers[UseKey, "isl.UnionSet"]()
        self._instances = OrderedDict[UseKey, object]()
        self.exact_queries = 0
        """Number of questions that needed integer relations."""
        self.enumerated = 0
        """Number of questions that enumeration settled."""

    def writers(self, uses: Sequence[Use], read: int) -> tuple[tuple[int, ...], bool]:
        """The uses whose writes reach the read, and whether every instance of it gets a written value."""
        if not any(u.writes for u in uses):
            return (), False
        return self._ask("writers", (read,), uses, lambda: _writers(self._flow(uses), uses, read))

    def stray(self, uses: Sequence[Use], read: int, write: int, at: Sequence[Expr]) -> Iteration | None:
        """An iteration of the read that does not get the value of `write`'s iteration `at`; None if all do.

        `at` gives the iteration of the write in terms of the read's.
        """
        parameters = read, write, tuple(at)
        return self._ask("stray", parameters, uses, lambda: _stray(self._flow(uses), uses, read, write, at))

    def change(self, uses: Sequence[Use], first: int, second: int, at: Sequence[Expr]) -> Iteration | None:
        """An iteration of the read `second` whose origin is not that of `first` in iteration `at`; None if none."""
        if not any(u.writes for u in uses):
            return None
        parameters = first, second, tuple(at)
        return self._ask("change", parameters, uses, lambda: _change(self._flow(uses), uses, first, second, at))

    def partial(
        self, uses: Sequence[Use], read: int, parts: Sequence[tuple[int, Sequence[Expr | None]]]
    ) -> Iteration | None:
        """An iteration of the read whose value is not made of exactly `parts`; None if all values are.

        A part is a write and its iterations, as expressions over the read's iteration; None means every iteration of a
        scope. The value of a read is the last plain write of the element before it, and all accumulations since.
        """
        named = tuple((write, tuple(at)) for write, at in parts)
        return self._ask("partial", (read, named), uses, lambda: _partial(uses, read, named))

    def reader(self, uses: Sequence[Use], write: int) -> int | None:
        """A use, by another statement, that reads values of `write`; None if there is none."""
        if not any(u.reads and u.leaf is not uses[write].leaf for u in uses):
            return None
        return self._ask("reader", (write,), uses, lambda: _reader(self._flow(uses), uses, write))

    def remains(self, uses: Sequence[Use], write: int) -> bool:
        """Whether `write` is the last to write some element."""
        return self._ask("remains", (write,), uses, lambda: _remains(self._last_writes(uses), uses, write))

    def carried(self, uses: Sequence[Use], depth: int) -> tuple[Instance, Instance] | None:
        """A write and a read that gets its value in a later iteration of the scope at `depth`; None if there is none.

        The uses are all in that scope; both instances are in one iteration of the scopes around it.
        """
        return self._ask("carried", (depth,), uses, lambda: _carried(self._flow(uses), uses, depth))

    def unwritten(self, uses: Sequence[Use], read: int, among: Instances) -> Iteration | None:
        """An instance of the read, among `among`, that gets an unwritten element; None if there is none."""
        return self._ask("unwritten", (read, among), uses, lambda: _unwritten(self._flow(uses), read, among))

    def sources(
        self, uses: Sequence[Use], read: int, among: Instances
    ) -> tuple[tuple[tuple[int, Instances], ...], bool]:
        """The writes, with their instances, that some instances of a read get values from.

        The flag tells whether each of these instances gets a written value.
        """
        if not any(u.writes for u in uses):
            return (), False
        return self._ask("sources", (read, among), uses, lambda: _sources(self._flow(uses), read, among))

    def needed(
        self,
        uses: Sequence[Use],
        write: int,
        among: Instances,
        unneeded: Sequence[tuple[int, Instances]],
        caller: Caller | None,
    ) -> tuple[Instances, tuple[Instance, Instance]] | None:
        """The instances of a write whose values are read, with one (write, read) pair as an example.

        None if there are none. Reads by `unneeded` instances of uses do not count. The caller of the kernel reads all
        elements of an output at the end; its use has the number after the last one.
        """
        others = tuple(unneeded)
        return self._ask(
            "needed",
            (write, among, others, caller),
            uses,
            lambda: _needed(self._parts(uses, caller), len(uses), write, among, others),
        )

    def _ask(
        self, kind: str, parameters: tuple[Any, ...], uses: Sequence[Use], relations: Callable[[], AnswerT]
    ) -> AnswerT:
        return self.ask(ValueQuestion(kind, parameters, uses, relations, self._instances))

    def ask(self, question: ValueQuestion[AnswerT]) -> AnswerT:
        """The answer to a question; a new one only if it is not obvious."""
        found = answered("value at first sight", question)
        if found is not None:
            return found.value
        return cast(AnswerT, self._answers.of(question.key, lambda: self._decide(question)))

    def _decide(self, question: ValueQuestion[AnswerT]) -> AnswerT:
        found = answered("value", question)
        if found is not None:
            self.enumerated += 1
            return found.value
        self.exact_queries += 1
        return question.exact()

    def _flow(self, uses: Sequence[Use]) -> isl.UnionMap:
        """Pairs of a write instance and a read instance that gets its value; computed once per content."""
        return self._flows.of(content_of(uses), lambda: flow(uses, [u.access.index for u in uses]))

    def _parts(self, uses: Sequence[Use], caller: Caller | None) -> isl.UnionMap:
        """Pairs of a read instance and a write instance that is part of its value; computed once per content."""
        places = [(0, *u.access.index) for u in uses]
        return self._gathered.of((caller, *content_of(uses)), lambda: gathered(uses, places, caller))

    def _last_writes(self, uses: Sequence[Use]) -> isl.UnionSet:
        """The write instances that no write overwrites; computed once per content."""
        return self._lasts.of(content_of(uses), lambda: last_writes(uses, [u.access.index for u in uses]))


def element_uses(nest: Nest, array: Array, extra: Sequence[tuple[Leaf, Access]] = ()) -> list[Use]:
    """All accesses to the array, as accesses to its elements, followed by the hypothetical reads `extra`."""
    present = [(leaf, a) for leaf, a in accesses_of(nest, array.buffer) if a.array is array]
    return [Use(leaf, a, leaf.chain, domain_of(leaf), a.index, array) for leaf, a in (*present, *extra)]


def number_of(uses: Sequence[Use], leaf: Leaf, access: Access) -> int:
    """The number of a statement's access among the uses."""
    return next(k for k, u in enumerate(uses) if u.leaf is leaf and u.access is access)


def _instances(kind: str, number: int, use: Use) -> isl.UnionSet:
    import islpy as isl

    names = variables("i", use.leaf.depth)
    domain = " and ".join(domain_constraints(use.leaf.extents, use.leaf.guards, names)) or "true"
    return read_set(isl.UnionSet, f"{{ {kind}{number}[{', '.join(names)}] : {domain} }}")


def _origin(values: isl.UnionMap, uses: Sequence[Use], read: int) -> isl.UnionMap:
    """From the instances of a read to the write instances that their values come from."""
    return values.intersect_range(_instances("R", read, uses[read])).reverse()


def _related(uses: Sequence[Use], read: int, target: str, at: Sequence[Expr]) -> isl.UnionMap:
    """From every instance of a read to the instance `at` of `target`."""
    import islpy as isl

    leaf = uses[read].leaf
    names = variables("i", leaf.depth)
    domain = " and ".join(domain_constraints(leaf.extents, leaf.guards, names)) or "true"
    there = ", ".join(spell(e, names) for e in at)
    return read_set(isl.UnionMap, f"{{ R{read}[{', '.join(names)}] -> {target}[{there}] : {domain} }}")


@bounded()
def _writers(values: isl.UnionMap, uses: Sequence[Use], read: int) -> tuple[tuple[int, ...], bool]:
    origin = _origin(values, uses, read)
    found: list[int] = []
    origin.range().foreach_set(lambda piece: found.append(int(piece.get_tuple_name()[1:])))
    complete = within_sizes(_instances("R", read, uses[read]).subtract(origin.domain())).is_empty()
    return tuple(sorted(set(found))), complete


@bounded()
def _stray(values: isl.UnionMap, uses: Sequence[Use], read: int, write: int, at: Sequence[Expr]) -> Iteration | None:
    return _first_difference(_origin(values, uses, read), _related(uses, read, f"W{write}", at))


@bounded()
def _change(values: isl.UnionMap, uses: Sequence[Use], first: int, second: int, at: Sequence[Expr]) -> Iteration | None:
    expected = _related(uses, second, f"R{first}", at).apply_range(_origin(values, uses, first))
    return _first_difference(_origin(values, uses, second), expected)


def _first_difference(one: isl.UnionMap, other: isl.UnionMap) -> Iteration | None:
    """An instance of the read at which two relations differ; None if they are equal."""
    wrong = within_sizes(one.subtract(other).union(other.subtract(one)).domain())
    return None if wrong.is_empty() else coordinates(wrong.sample_point())


@bounded()
def _partial(uses: Sequence[Use], read: int, parts: Sequence[tuple[int, Sequence[Expr | None]]]) -> Iteration | None:
    import islpy as isl

    leaf = uses[read].leaf
    names = variables("i", leaf.depth)
    wanted: list[str] = []
    for write, at in parts:
        producer = uses[write].leaf
        there = variables("a", producer.depth)
        conditions = [
            *domain_constraints(leaf.extents, leaf.guards, names),
            *domain_constraints(producer.extents, producer.guards, there),
            *(f"{name} = {spell(e, names)}" for name, e in zip(there, at, strict=True) if e is not None),
        ]
        domain = " and ".join(conditions) or "true"
        wanted.append(f"R{read}[{', '.join(names)}] -> W{write}[{', '.join(there)}] : {domain}")
    expected = read_set(isl.UnionMap, f"{{ {'; '.join(wanted)} }}")
    made = gathered(uses, [u.access.index for u in uses]).intersect_domain(_instances("R", read, uses[read]))
    return _first_difference(made, expected)


@bounded()
def _carried(values: isl.UnionMap, uses: Sequence[Use], depth: int) -> tuple[Instance, Instance] | None:
    import islpy as isl

    later: list[str] = []
    for w, writer in enumerate(uses):
        for r, reader in enumerate(uses):
            if writer.writes and reader.reads:
                left, right = variables("a", writer.leaf.depth), variables("b", reader.leaf.depth)
                order = " and ".join([*(f"a{d} = b{d}" for d in range(depth)), f"a{depth} < b{depth}"])
                later.append(f"W{w}[{', '.join(left)}] -> R{r}[{', '.join(right)}] : {order}")
    found = values.intersect(read_set(isl.UnionMap, f"{{ {'; '.join(later)} }}"))
    return None if found.is_empty() else sampled(found)


@bounded()
def _reader(values: isl.UnionMap, uses: Sequence[Use], write: int) -> int | None:
    found: list[int] = []
    reached = values.intersect_domain(_instances("W", write, uses[write])).range()
    reached.foreach_set(lambda piece: found.append(int(piece.get_tuple_name()[1:])))
    return another(sorted(found), uses, write)


def another(readers: Sequence[int], uses: Sequence[Use], write: int) -> int | None:
    """The first of some uses by another statement than the write's; None if there is none."""
    return next((k for k in readers if uses[k].leaf is not uses[write].leaf), None)


def instances_of(leaf: Leaf, violated: Expr) -> Instances:
    """The instances of a statement that violate a constraint, that is, with `violated` >= 0."""
    names = variables("i", leaf.depth)
    domain = domain_constraints(leaf.extents, (*leaf.guards, violated), names)
    return f"{{ [{', '.join(names)}] : {' and '.join(domain)} }}"


@bounded()
def any_of(instances: Instances) -> Iteration | None:
    """One of some instances; None if there is none."""
    import islpy as isl

    return _sampled_point(read_set(isl.Set, instances))


def _sampled_point(some: isl.Set) -> Iteration | None:
    return None if some.is_empty() else coordinates(some.sample_point())


def _named(kind: str, number: int, instances: Instances) -> isl.UnionSet:
    import islpy as isl

    return read_set(isl.Set, instances).set_tuple_name(f"{kind}{number}").to_union_set()


def _pieces(union: isl.UnionSet) -> list[tuple[int, isl.Set]]:
    """The sets of a union, each with the number from its name, and without the name."""
    found: list[tuple[int, isl.Set]] = []
    union.foreach_set(lambda piece: found.append((int(piece.get_tuple_name()[1:]), piece.reset_tuple_id())))
    return sorted(found, key=lambda item: item[0])


@bounded()
def _unwritten(values: isl.UnionMap, read: int, among: Instances) -> Iteration | None:
    orphans = _pieces(within_sizes(_named("R", read, among).subtract(values.range())))
    return _sampled_point(orphans[0][1]) if orphans else None


@bounded()
def _sources(values: isl.UnionMap, read: int, among: Instances) -> tuple[tuple[tuple[int, Instances], ...], bool]:
    reading = _named("R", read, among)
    origin = values.intersect_range(reading)
    found = tuple((number, str(piece.coalesce())) for number, piece in _pieces(origin.domain()))
    return found, within_sizes(reading.subtract(origin.range())).is_empty()


@bounded()
def _needed(
    parts: isl.UnionMap, count: int, write: int, among: Instances, unneeded: Sequence[tuple[int, Instances]]
) -> tuple[Instances, tuple[Instance, Instance]] | None:
    made = parts.intersect_range(_named("W", write, among))
    for number, instances in unneeded:
        made = made.subtract_domain(_named("R", number, instances))
    found = _pieces(made.range())
    if not found:
        return None
    reading, written = sampled(made)
    return str(found[0][1].coalesce()), (written, reading)


@bounded()
def _remains(last: isl.UnionSet, uses: Sequence[Use], write: int) -> bool:
    return not last.intersect(_instances("W", write, uses[write])).is_empty()
