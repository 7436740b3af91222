"""Whether the program after a rewrite would run what it means: asked of that program itself.

For moves that make new accesses: they decide on elements that the meaning stays, and here whether memory, threads and
instructions follow.
"""

from __future__ import annotations

from collections.abc import Collection

from xdsl.utils.exceptions import VerifyException

from pdojo.dialect.analysis.dependent import dependent_iteration
from pdojo.dialect.analysis.hints import unusable_hints
from pdojo.dialect.analysis.lanes import lane_problem, register_problem
from pdojo.dialect.analysis.program import Program
from pdojo.dialect.analysis.races import find_race
from pdojo.dialect.attributes import Mapping, Memory
from pdojo.dialect.functions import byte_width
from pdojo.dialect.nest import Access, Leaf
from pdojo.dialect.verify import describe_access, describe_dependence, describe_scope
from pdojo.transforms.base import Reason
from pdojo.transforms.storage import capacity


def aftermath(after: Program, arrays: Collection[str], changed: str = "") -> Reason | None:
    """What is wrong with a program in which accesses to these arrays are new, moved or gone; None if nothing is.

    `changed` identifies the statement that is new or has other accesses.
    """
    try:
        after.kernel.verify()
    except VerifyException as error:
        return Reason(f"the program would be malformed: {error}")
    nest = after.nest
    buffers = {nest.arrays[name].buffer for name in arrays if name in nest.arrays}
    for buffer in sorted(buffers, key=nest.buffers.index):
        violation = after.storage_violation(buffer.names[0], buffer.reuse)
        if violation is not None:
            return Reason(violation.reason, violation.detail)
        if buffer.memory is Memory.REGISTER and (problem := register_problem(nest, buffer)) is not None:
            return Reason(problem)
    race = find_race(after, only=buffers)
    if race is not None:
        return Reason(f"iterations of {describe_scope(race.scope)} would race", str(race.conflict))
    if (unusable := next(unusable_hints(after), None)) is not None:
        return Reason(unusable.text)
    for leaf in nest.leaves:
        if leaf.id == changed and (problem := vector_problem(after, leaf)) is not None:
            return Reason(problem)
    return capacity(after, 0, None, Memory.STACK) or capacity(after, 0, None, Memory.REGISTER)


def dependent_after(after: Program) -> Reason | None:
    """What depends on another iteration of itself in a program in which statements have other accesses, or iterations.

    For moves that do not ask for the `aftermath`; what every program must keep is told there.
    """
    for leaf in after.nest.leaves:
        found = dependent_iteration(leaf)
        if found is not None:
            text = f"{describe_access(leaf.output)} would depend on other iterations of the op that writes it"
            return Reason(text, describe_dependence(leaf, found))
    return None


def vector_problem(program: Program, leaf: Leaf) -> str | None:
    """Why the statement cannot be the one that its vector scope wraps; None if it can, or where there is none."""
    lanes = leaf.parent
    if lanes is None or lanes.mapping is not Mapping.VECTOR:
        return None
    values = (leaf.output, *leaf.inputs)
    widest = max((v.array.dtype if isinstance(v, Access) else v.dtype for v in values), key=byte_width)
    if lanes.extent not in program.machine.vector_lanes(widest):
        return f"{describe_scope(lanes)} is no vector of {program.machine.name} for {widest}"
    problems = (lane_problem(a, leaf, lanes, program.machine) for a in leaf.accesses)
    return next((p for p in problems if p is not None), None)
