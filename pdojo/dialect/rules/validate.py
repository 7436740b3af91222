"""Validation of a kernel, at entry and in tests: does it have a meaning?

Every element of every output is written; no element is read before it is written; concurrent iterations do not race;
slots and shared buffers keep every value; no hint stands where no machine can use it. After a move, `conditions` checks
races, storage and hints again; the two rules about written elements follow from the meaning.
"""

from __future__ import annotations

from collections.abc import Sequence

from pdojo.dialect.attributes import Intent
from pdojo.dialect.flow.coverage import fills
from pdojo.dialect.flow.flows import uninitialised
from pdojo.dialect.flow.integer_sets import (
    bounded,
    coordinates,
    domain_constraints,
    place_constraints,
    read_set,
    spell,
    variables,
    within_sizes,
)
from pdojo.dialect.flow.program import Program
from pdojo.dialect.flow.shortcut import is_used
from pdojo.dialect.flow.uses import describe_use, uses_of
from pdojo.dialect.lookups import unknown_places
from pdojo.dialect.rules.hints import unusable_hints
from pdojo.dialect.rules.races import find_race
from pdojo.dialect.rules.special_mappings import meaning_problems
from pdojo.dialect.view.messages import describe_scope
from pdojo.dialect.view.nest import Array, Leaf
from pdojo.errors import InvalidKernel, Undecided

OPERATIONS = 50_000_000
"""isl's operation budget for a question about whole arrays; programs are checked once, before the first move."""


def validate(program: Program) -> None:
    """Raise InvalidKernel with one message, which names the kernel, if the program is invalid."""
    try:
        _check(program)
    except InvalidKernel as error:
        raise InvalidKernel(f"kernel '{program.nest.name}': {error}") from None
    except Undecided as error:
        raise InvalidKernel(f"kernel '{program.nest.name}' cannot be checked: {error}") from None


def _check(program: Program) -> None:
    nest = program.nest
    for array in nest.arrays.values():
        if array.intent is Intent.OUT:
            _check_written(array, nest.writers[array.name])
        if array.intent not in (Intent.IN, Intent.INOUT):
            _check_initialised(program, array)
    for buffer in nest.buffers:
        violation = program.storage_violation(buffer.names[0], buffer.reuse)
        if violation is not None:
            raise InvalidKernel(f"{violation.text} ({violation.witness})")
    _check_races(program)
    for problem in (*meaning_problems(program), *unusable_hints(program)):
        raise InvalidKernel(f"{problem.text}{problem.witness and f' ({problem.witness})'}")


def _check_written(array: Array, writers: Sequence[Leaf]) -> None:
    """Check that every element of an output is written."""
    if not is_used("whole writes") or not any(fills(leaf, leaf.output) for leaf in writers):
        _check_every_element(array, writers)


@bounded(OPERATIONS)
def _check_every_element(array: Array, writers: Sequence[Leaf]) -> None:
    import islpy as isl

    names = variables("d", len(array.shape))
    places = " and ".join(place_constraints(array.buffer.extents, names)) or "true"
    box = read_set(isl.Set, f"{{ [{', '.join(names)}] : {places} }}")
    for leaf in writers:
        if unknown_places(leaf.output.index):
            continue
        ivs = variables("i", leaf.depth)
        domain = " and ".join(domain_constraints(leaf.extents, leaf.guards, ivs)) or "true"
        index = ", ".join(spell(e, ivs) for e in leaf.output.index)
        box = box.subtract(read_set(isl.Map, f"{{ [{', '.join(ivs)}] -> [{index}] : {domain} }}").range())
    box = within_sizes(box)
    if not box.is_empty():
        at = map(str, coordinates(box.sample_point()))
        is_certain = not any(unknown_places(leaf.output.index) for leaf in writers)
        said = "is never written at" if is_certain else "is not written for all indices at"
        raise InvalidKernel(f"output '{array.name}' {said} [{', '.join(at)}]")


def _check_initialised(program: Program, array: Array) -> None:
    """Check that no element is read before it is written (an accumulation reads)."""
    uses = [u for u in uses_of(program.nest, array.name, array.buffer.reuse) if u.access.array is array]
    missing = uninitialised(uses, operations=OPERATIONS)
    if missing is not None:
        use, iteration = missing
        hint = "; initialise it before accumulating" if use.writes else ""
        raise InvalidKernel(
            f"{describe_use(use, iteration)} gets an element of '{array.name}' that nothing has written{hint}"
        )


def _check_races(program: Program) -> None:
    race = find_race(program)
    if race is not None:
        raise InvalidKernel(f"iterations of {describe_scope(race.scope)} race: {race.conflict}")
