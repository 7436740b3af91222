"""A program that records its questions: the evidence for or against a move, from the very checks that decide."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import ClassVar, TypeAlias, TypeVar, cast

from pdojo.dialect.attributes import Mapping as ScopeMapping
from pdojo.dialect.flow.collision import Collisions, Order, Query, Relation, Witness
from pdojo.dialect.flow.origins import Origins, ValueQuestion
from pdojo.dialect.flow.program import AnalysisCache, Conflict, Program
from pdojo.dialect.flow.storage_check import StorageChecks, UseKey
from pdojo.dialect.flow.uses import Use
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.reason import Reason
from pdojo.dialect.view.messages import describe_access
from pdojo.dialect.view.nest import Array, Buffer, Nest, Node, Scope

AnswerT = TypeVar("AnswerT")


@dataclass(frozen=True, slots=True)
class Question:
    """One question of a legality check, its answer, and the method that found it."""

    kind: str
    """`cell`: do two accesses meet? `storage`: does memory keep every value? `value`: which write does it come from?"""
    about: str
    relation: str
    """For `cell`, the order of the two accesses' iterations, scope by scope."""
    answer: str
    how: str
    """`digits`, `guess`, `instances`, `integer sets`, or `commute` if accumulations needed no question."""


@dataclass
class Record:
    """All questions, in order."""

    questions: list[Question] = field(default_factory=list[Question])
    machine: dict[str, str] = field(default_factory=dict[str, str])
    """The machine's facts that were read."""

    def add(self, question: Question) -> None:
        """Record a question, once."""
        if question not in self.questions:
            self.questions.append(question)

    def clear(self) -> None:
        """Drop all questions and facts."""
        self.questions.clear()
        self.machine.clear()


class RecordingProgram(Program):
    """A program that records its questions and passes the record on to its successors."""

    has_excerpts: ClassVar = False
    """False, because recorded questions use the names of this program."""

    def __init__(
        self,
        kernel: KernelOp,
        machine: Machine,
        record: Record,
        known: AnalysisCache | None = None,
        nest: Nest | None = None,
    ) -> None:
        known = known or AnalysisCache(_Collisions(), StorageChecks(), _Origins(record))
        super().__init__(kernel, _watched(machine, record), known, nest)
        self.record = record

    def successor(self, kernel: KernelOp, nest: Nest | None = None, touched: Container[Node] | None = None) -> Program:
        """The program for another kernel, with the same record and a view of its own."""
        del touched
        return RecordingProgram(kernel, self.machine, self.record, self.known, nest)

    def _collide(self, one: Use, other: Use, relation: Relation, *, racing: bool) -> Witness | None:
        collisions = cast(_Collisions, self.collisions)
        collisions.last = None
        witness = super()._collide(one, other, relation, racing=racing)
        how = "commute" if collisions.last is None else collisions.how[collisions.last]
        accesses = Conflict(one.leaf, one.access, other.leaf, other.access, Witness((), ()), one.writes, other.writes)
        if witness is None:
            answer = "accumulations of one element commute" if how == "commute" else "no shared cell"
        else:
            answer = f"shared at iterations {_tuple(witness.first)} and {_tuple(witness.second)}"
        spelled = ", ".join(_ORDERS[order] for order in relation)
        self.record.add(Question("cell", str(accesses), f"({spelled})", answer, how))
        return witness

    def storage_violation(
        self,
        array: str,
        reuse: Sequence[int],
        mappings: Mapping[Scope, ScopeMapping] | None = None,
        within: int | None = None,
    ) -> Reason | None:
        """The answer of the program, recorded."""
        before = _counts(self.storage)
        violation = super().storage_violation(array, reuse, mappings, within)
        slots = ", ".join(str(k) if k else "all" for k in reuse)
        self._add_storage(f"'{array}' with slots [{slots}]", violation, before)
        return violation

    def sharing_violation(self, guest: Buffer, host: Buffer) -> Reason | None:
        """The answer of the program, recorded."""
        before = _counts(self.storage)
        violation = super().sharing_violation(guest, host)
        self._add_storage(f"'{guest.names[0]}' in the memory of '{host.names[0]}'", violation, before)
        return violation

    def merging_violation(self, guest: Array, host: Array) -> Reason | None:
        """The answer of the program, recorded."""
        before = _counts(self.storage)
        violation = super().merging_violation(guest, host)
        self._add_storage(f"'{guest.name}' in the elements of '{host.name}'", violation, before)
        return violation

    def _add_storage(self, about: str, violation: Reason | None, before: tuple[int, int]) -> None:
        answer = "every value is kept" if violation is None else f"{violation.text}: {violation.witness}"
        self.record.add(Question("storage", about, "", answer, _settled(self.storage, before)))


def _counts(answers: StorageChecks | Origins) -> tuple[int, int]:
    """The number of questions settled by integer sets, and by enumeration."""
    return answers.exact_queries, answers.enumerated


def _settled(answers: StorageChecks | Origins, before: tuple[int, int]) -> str:
    """The method that settled the latest question."""
    exact, enumerated = _counts(answers)
    return "integer sets" if exact > before[0] else "instances" if enumerated > before[1] else "digits"


_ORDERS = {Order.EQUAL: "=", Order.BEFORE: "<", Order.AFTER: ">", Order.ANY: "any"}


def _tuple(iteration: Sequence[int]) -> str:
    return f"({', '.join(map(str, iteration))})"


class _Collisions(Collisions):
    """Records how each answer was found, and the last question."""

    def __init__(self) -> None:
        super().__init__()
        self.how: dict[Query, str] = {}
        self.last: Query | None = None

    def find(self, query: Query) -> Witness | None:
        self.last = query
        if query not in self.how:
            before = self.exact_queries
            witness = super().find(query)
            settled = "guess" if witness is not None else "digits"
            self.how[query] = "integer sets" if self.exact_queries > before else settled
            return witness
        return super().find(query)


class _Origins(Origins):
    """Records questions about values."""

    def __init__(self, record: Record) -> None:
        super().__init__()
        self.record = record
        self.how: dict[UseKey, str] = {}

    def ask(self, question: ValueQuestion[AnswerT]) -> AnswerT:
        before = _counts(self)
        result = super().ask(question)
        how = self.how.setdefault(question.key, _settled(self, before))
        named = question.kind, *question.parameters
        text, said = _VALUES[question.kind](question.uses, cast(int, question.parameters[0]), named, result)
        self.record.add(Question("value", text, "", said, how))
        return result


def _said_writers(uses: Sequence[Use], number: int, _: tuple[object, ...], result: object) -> tuple[str, str]:
    writers, complete = cast(tuple[tuple[int, ...], bool], result)
    named = ", ".join(describe_access(uses[w].access) for w in writers) or "none"
    rest = "" if complete else "; some elements were not written before"
    return f"which writes reach the read of {describe_access(uses[number].access)}?", f"{named}{rest}"


def _said_stray(uses: Sequence[Use], number: int, question: tuple[object, ...], result: object) -> tuple[str, str]:
    write = describe_access(uses[cast(int, question[2])].access)
    text = (
        f"is the read of {describe_access(uses[number].access)} always of one known iteration of the write of {write}?"
    )
    return text, "yes" if result is None else f"no: iteration {_tuple(cast(tuple[int, ...], result))}"


def _said_change(uses: Sequence[Use], number: int, question: tuple[object, ...], result: object) -> tuple[str, str]:
    there = describe_access(uses[cast(int, question[2])].access)
    text = f"has {there} the value that the read of {describe_access(uses[number].access)} got?"
    return text, "yes" if result is None else f"no: iteration {_tuple(cast(tuple[int, ...], result))}"


def _said_reader(uses: Sequence[Use], number: int, _: tuple[object, ...], result: object) -> tuple[str, str]:
    text = f"which op reads the values that the write of {describe_access(uses[number].access)} leaves?"
    return text, "no other op" if result is None else describe_access(uses[cast(int, result)].leaf.output)


def _said_remains(uses: Sequence[Use], number: int, _: tuple[object, ...], result: object) -> tuple[str, str]:
    return f"does {describe_access(uses[number].access)} keep the written values?", "yes" if result else "no"


def _said_carried(uses: Sequence[Use], depth: int, _: tuple[object, ...], result: object) -> tuple[str, str]:
    text = f"does a value of '{uses[0].access.array.name}' cross iterations of scope {{{depth}}}?"
    return text, "no" if result is None else "yes"


def _said_partial(uses: Sequence[Use], number: int, question: tuple[object, ...], result: object) -> tuple[str, str]:
    parts = cast(tuple[tuple[int, object], ...], question[2])
    named = " and ".join(describe_access(uses[write].access) for write, _ in parts)
    text = f"is the read of {describe_access(uses[number].access)} always made of known iterations of {named}?"
    return text, "yes" if result is None else f"no: iteration {_tuple(cast(tuple[int, ...], result))}"


def _said_unwritten(uses: Sequence[Use], number: int, _: tuple[object, ...], result: object) -> tuple[str, str]:
    text = f"are all further elements of {describe_access(uses[number].access)} written before it reads them?"
    return text, "yes" if result is None else f"no: iteration {_tuple(cast(tuple[int, ...], result))}"


def _said_sources(uses: Sequence[Use], number: int, _: tuple[object, ...], result: object) -> tuple[str, str]:
    writes, complete = cast(tuple[tuple[tuple[int, str], ...], bool], result)
    named = ", ".join(describe_access(uses[w].access) for w, _ in writes) or "none"
    rest = "" if complete else "; some elements were not written before"
    text = f"which writes reach the further elements that {describe_access(uses[number].access)} would read?"
    return text, f"{named}{rest}"


def _said_needed(uses: Sequence[Use], number: int, _: tuple[object, ...], result: object) -> tuple[str, str]:
    text = f"would a further write of {describe_access(uses[number].access)} overwrite a value that is still read?"
    if result is None:
        return text, "no"
    (_write, written), (reader, reading) = cast(tuple[str, tuple[_Instance, _Instance]], result)[1]
    who = describe_access(uses[reader].access) if reader < len(uses) else "the caller's"
    return text, f"yes: iteration {_tuple(written)}, of {who} {_tuple(reading)}"


_Instance: TypeAlias = tuple[int, tuple[int, ...]]

_VALUES = {
    "unwritten": _said_unwritten,
    "sources": _said_sources,
    "needed": _said_needed,
    "writers": _said_writers,
    "stray": _said_stray,
    "change": _said_change,
    "reader": _said_reader,
    "remains": _said_remains,
    "carried": _said_carried,
    "partial": _said_partial,
}


class _WatchedMachine(Machine):
    """A machine description that records reads of its facts."""

    def __getattribute__(self, name: str) -> object:
        value = super().__getattribute__(name)
        if name in _FACTS:
            cast(Record, super().__getattribute__("_record")).machine[name] = str(value)
        return value


_FACTS = {f.name for f in fields(Machine)} - {"name"}


def _watched(machine: Machine, record: Record) -> Machine:
    if isinstance(machine, _WatchedMachine):
        return machine
    watched = object.__new__(_WatchedMachine)
    watched.__dict__.update(machine.__dict__, _record=record)
    return watched
