"""Does a program keep the rules of its special mappings (`g b w f s m`)? Part of the `conditions` of every state.

Rules about the values that a statement sees hold on every machine; the other rules depend on the program's machine.
"""

from __future__ import annotations

from collections.abc import Iterator

from pdojo.dialect.attributes import Mapping, Memory
from pdojo.dialect.flow.program import Program
from pdojo.dialect.reason import Reason
from pdojo.dialect.rules.async_copies import async_problems
from pdojo.dialect.rules.atomics import atomics_problems, lost_updates
from pdojo.dialect.rules.hardware_loops import snitch_limits
from pdojo.dialect.rules.hints import hint_problems, is_hinted
from pdojo.dialect.rules.streams import stream_conflicts
from pdojo.dialect.rules.threads import gpu_limits, visibility_problems
from pdojo.dialect.view.nest import Scope, fact
from pdojo.errors import InvalidKernel

_SPECIAL = frozenset(mapping for mapping in Mapping if mapping.is_special)


def is_special(program: Program) -> bool:
    """Whether some scope or buffer has a mapping, a memory or a hint that only CPUs have, or that CPUs lack."""
    return program.memoised("special", lambda: _is_special(program))


def _is_special(program: Program) -> bool:
    nest = program.nest
    shared = fact(nest.of_declarations, "shared", lambda: any(b.memory is Memory.SHARED for b in nest.buffers))
    special = shared or not _SPECIAL.isdisjoint(nest.traits)
    return special or is_hinted(program) or any(_parallel_problems(program))


def meaning_problems(program: Program) -> Iterator[Reason]:
    """Accesses that would not see the program's value, or whose value would be lost."""
    yield from visibility_problems(program)
    yield from lost_updates(program)
    yield from stream_conflicts(program)


def machine_problems(program: Program) -> Iterator[Reason]:
    """Uses of special mappings that the machine cannot run."""
    yield from gpu_limits(program)
    yield from atomics_problems(program)
    yield from async_problems(program)
    yield from snitch_limits(program)
    yield from hint_problems(program)
    yield from _tensor_problems(program)
    yield from _parallel_problems(program)


def parallel_problem(program: Program, scope: Scope) -> Reason | None:
    """The reason why the machine has no code for a parallel scope; None if it has, or if the scope is not parallel."""
    machine = program.machine
    if scope.mapping is not Mapping.PARALLEL or machine.has_parallel_scopes:
        return None
    instead = "; map_grid and map_block give iterations to its threads" if machine.gpu else ""
    return Reason(f"{machine.name} has no parallel scopes (:p){instead}", about="parallel scopes")


def _parallel_problems(program: Program) -> Iterator[Reason]:
    if Mapping.PARALLEL not in program.nest.traits:
        return iter(())
    problems = (parallel_problem(program, scope) for scope in program.nest.scopes)
    return (problem for problem in problems if problem is not None)


def _tensor_problems(program: Program) -> Iterator[Reason]:
    if "intrinsic" in program.nest.traits:
        # Few programs have such scopes, and the import takes time.
        from pdojo.dialect.rules.tensor import tensor_problems

        yield from tensor_problems(program)


def check_tensor_scopes(program: Program) -> None:
    """Raise InvalidKernel if a scope mapped to a tensor unit differs from its instruction's meaning."""
    for problem in _tensor_problems(program):
        raise InvalidKernel(f"kernel '{program.nest.name}': {problem.text}")
