"""The rules of every state of a game, on every machine; checked on the program after a move (docs/legality.md).

A move's check proves, from the program before the move, that its statements keep their meaning. Rules about the program
after it are storage, races, registers, lanes, capacity, unrolled code, hints, and special mappings: does memory keep
the values, do threads race, can the machine run the program? A question about one buffer is answered once per content,
so that a move costs only its changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from xdsl.ir import Attribute

from pdojo.dialect.attributes import Mapping as ScopeMapping
from pdojo.dialect.attributes import Memory
from pdojo.dialect.flow.content import uses_content
from pdojo.dialect.flow.program import Program
from pdojo.dialect.functions import byte_width
from pdojo.dialect.reason import Reason
from pdojo.dialect.rules.capacity import LIMITED, overflow, unrolled
from pdojo.dialect.rules.frames import frame_problem
from pdojo.dialect.rules.hints import hint_problems, owned_hints, unusable_hints
from pdojo.dialect.rules.lanes import register_problem, vector_problem
from pdojo.dialect.rules.races import concurrent_around, find_race
from pdojo.dialect.rules.special_mappings import is_special, machine_problems, meaning_problems
from pdojo.dialect.rules.threads import visibility_problems
from pdojo.dialect.view.grids import is_in_grid
from pdojo.dialect.view.messages import describe_scope
from pdojo.dialect.view.nest import Access, Buffer
from pdojo.dialect.view.storage import accesses_of
from pdojo.errors import Undecided


@dataclass(frozen=True, slots=True)
class Conditions:
    """The rules that a state breaks, for example a kernel written for another machine, and the state's hints.

    A move must not break further rules, nor lose hints.
    """

    problems: Mapping[str, Reason]
    """The broken rules, keyed by key (`Reason.key`)."""
    useless: tuple[str, ...]
    """Hints that have no use at their place."""
    hints: Mapping[str, Attribute]
    """Hints of scopes and buffers, keyed by owner."""

    def broken(self, after: Conditions, *, proved: bool = False) -> Reason | None:
        """A rule that the state after a move breaks and this one keeps; None if there is none.

        A rule that integer sets do not settle counts as broken, unless the move's check has `proved` it.
        """
        new = (p for about, p in after.problems.items() if about not in self.problems)
        return next((p for p in new if not (proved and p.is_open)), None)


def conditions_of(program: Program) -> Conditions:
    """The conditions of a program that is well-formed (`verify_nest`)."""
    return program.memoised("conditions", lambda: _conditions(program))


def _conditions(program: Program) -> Conditions:
    useless = tuple(problem.text for problem in hint_problems(program)) if is_special(program) else ()
    return Conditions({p.key: p for p in _problems(program)}, useless, owned_hints(program))


def _problems(program: Program) -> Iterator[Reason]:
    yield from _all_buffer_problems(program)
    yield from _lane_counts(program)
    yield from unusable_hints(program)
    yield from room_problems(program)
    if (large := unrolled(program.nest)) is not None:
        yield replace(large, about="unrolled code")
    if is_special(program):
        yield from meaning_problems(program)
        yield from machine_problems(program)


def _all_buffer_problems(program: Program) -> Iterator[Reason]:
    for buffer in program.live_ranges:
        question = "conditions", uses_content(program.nest, buffer)
        yield from program.known.remembered.verdict(question, lambda b=buffer: tuple(buffer_problems(program, b)))


def rules_of_buffers(program: Program) -> Iterator[Reason]:
    """The problems that concern one buffer, whatever else is in the program, except those of streams."""
    yield from _all_buffer_problems(program)
    yield from visibility_problems(program)


def room_problems(program: Program) -> Iterator[Reason]:
    """Memories that are too small for their buffers."""
    for memory in LIMITED:
        if (full := overflow(program, memory)) is not None:
            yield replace(full, about=f"room in {memory.value} memory")


def buffer_problems(program: Program, buffer: Buffer) -> Iterator[Reason]:
    """The reasons why a buffer loses values, races, or has an impossible access; at most one of each kind."""
    kinds = ((_storage, "values"), (_race, "race"), (_registers, "registers"), (_frame, "frame"), (_lanes, "lanes"))
    for ask, kind in kinds:
        about = f"{kind} of '{buffer.names[0]}'"
        try:
            found = ask(program, buffer)
        except Undecided as undecided:
            yield Reason(str(undecided), about=f"{about}, undecided", is_open=True)
        else:
            if found is not None:
                yield replace(found, about=about)


def _storage(program: Program, buffer: Buffer) -> Reason | None:
    if not any(buffer.reuse) and len(buffer.names) == 1:
        return None
    return program.storage_violation(buffer.names[0], buffer.reuse)


def _race(program: Program, buffer: Buffer) -> Reason | None:
    scopes = concurrent_around(program, buffer)
    race = find_race(program, only={buffer}, scopes=scopes) if scopes else None
    if race is None:
        return None
    return Reason(f"iterations of {describe_scope(race.scope)} would race", str(race.conflict))


def _registers(program: Program, buffer: Buffer) -> Reason | None:
    return register_problem(program.nest, buffer) if buffer.memory is Memory.REGISTER else None


def _frame(program: Program, buffer: Buffer) -> Reason | None:
    return None if is_in_grid(program.nest, buffer) else frame_problem(program.nest, buffer)


def _lanes(program: Program, buffer: Buffer) -> Reason | None:
    problems = (vector_problem(access, leaf, program.machine) for leaf, access in accesses_of(program.nest, buffer))
    return next((problem for problem in problems if problem is not None), None)


def _lane_counts(program: Program) -> Iterator[Reason]:
    """Vectors whose length the machine lacks for the widest operand."""
    for leaf in program.nest.leaves:
        lanes = leaf.parent
        if lanes is None or lanes.mapping is not ScopeMapping.VECTOR:
            continue
        values = (leaf.output, *leaf.inputs)
        widest = max((v.array.dtype if isinstance(v, Access) else v.dtype for v in values), key=byte_width)
        if lanes.extent not in program.machine.vector_lanes(widest):
            text = f"{describe_scope(lanes)} is no vector of {program.machine.name} for {widest}"
            yield Reason(text, about=f"{lanes.extent} lanes of {widest}")
