"""Verification that the moves of a game keep the meaning of its kernel."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pdojo.backends.calling.arrays import parameters_of
from pdojo.backends.measure.arrays import random_inputs
from pdojo.dialect.indices import with_indices
from pdojo.dialect.notation.bound import bound
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.semantics.oracle import IntegerSetOracle, Oracle
from pdojo.dialect.semantics.oracle.compare import DEFAULT_SEEDS
from pdojo.dialect.semantics.oracle.instances import INSTANCE_LIMIT, count_instances
from pdojo.dialect.sizes import probes, spelled
from pdojo.dialect.versions import narrowed
from pdojo.dialect.view.build import nest_of, nest_on
from pdojo.dialect.view.nest import Nest
from pdojo.kernels import Workload
from pdojo.passes.scheduled_kernel import ScheduledKernel
from pdojo.passes.verification.shrink import MOST, QUICK, family_of, shrunk
from pdojo.transforms.game import Game
from pdojo.transforms.registry import transformation

FEW_SEEDS = 3
"""Independent seeds per prime for large programs: ordinary, large and small values, each modulo two primes."""
_ALL = ("races", "storage", "instances", "flow")


@dataclass(frozen=True)
class Verification:
    """The result of checking a tuned kernel."""

    said: str
    """The check and its result, in a sentence."""
    fault: str | None = None
    """The fault found; None if there is none."""
    is_exact: bool = False
    """True if the values of all outputs were compared, or the flow of all values at the kernel's own sizes."""
    is_reduced: bool = False
    """True if the comparison used reduced sizes instead of the kernel's own."""
    is_run: bool = False
    """True if the code ran without a measurement, with the results of the plain kernel's code."""
    compared: tuple[Nest, Nest] | None = None
    """The programs before and after the moves that the exact oracle compared; None if it compared none."""


def verify_moves(tuning: ScheduledKernel, source: Workload | str | None = None, limit: int = QUICK) -> Verification:
    """Compare a kernel with the program after a game's moves.

    The exact oracle runs under adversarial schedules: at the kernel's own sizes if it has at most `limit` statement
    instances, else at reduced sizes with the same moves (`pdojo.passes.verification.shrink`). If no such sizes are
    found, integer sets check the kernel's own sizes. If callers give sizes, it runs for some of their values. `source`
    is the workload of the kernel, or its text in the notation with named sizes.
    """
    if tuning.before.known_sizes():
        return _at_sizes(tuning, limit)
    before, after = _nests(tuning.game, tuning.before, tuning.after)
    if _instances(before, after) <= limit:
        return _exact(before, after, "exact oracle")
    family = family_of(tuning.before, source)
    small = None if family is None else shrunk(tuning.game, family)
    if small is not None:
        nests = _nests(tuning.game, small.before, small.after)
        return replace(_exact(*nests, f"exact oracle at reduced sizes ({small})"), is_reduced=True)
    why = "its sizes cannot be changed" if family is None else "the moves fit no small sizes"
    return _by_sets(tuning, why)


def _at_sizes(tuning: ScheduledKernel, limit: int) -> Verification:
    """Compare the programs for some values of the sizes that callers give."""
    compared: list[str] = []
    for values in probes([*tuning.before.known_sizes().values()]):
        # Narrowed first, which leaves out scopes without iterations, such as those of tiles that are larger.
        part = {name: range(value, value + 1) for name, value in values.items()}
        nests = _nests(tuning.game, *(bound(narrowed(each, part), values) for each in (tuning.before, tuning.after)))
        at = spelled(values)
        if _instances(*nests) > limit or at in compared:
            continue
        compared.append(at)
        found = _exact(*nests, f"exact oracle at {at}")
        if found.fault is not None:
            return found
    if not compared:
        return _by_sets(tuning, "the kernel is large for every value of its sizes")
    return Verification(f"exact oracle at {'; '.join(compared)}: the same meaning", is_exact=True, is_reduced=True)


def _instances(*nests: Nest) -> int:
    return max(count_instances(nest) for nest in nests)


def _nests(game: Game, before: KernelOp, after: KernelOp) -> tuple[Nest, Nest]:
    """The programs, which have no sizes; those of callers' indices are random ones."""
    indices = random_inputs([p for p in parameters_of(nest_of(before)) if p.indices is not None], 0)
    first, second = (with_indices(each, indices) for each in (before, after))
    return nest_on(first, game.machine), nest_on(second, game.machine)


def _exact(before: Nest, after: Nest, how: str) -> Verification:
    large = _instances(before, after) > INSTANCE_LIMIT
    oracle = Oracle(before, seeds=FEW_SEEDS if large else DEFAULT_SEEDS, limit=MOST)
    difference = oracle.difference(after)
    if difference is None:
        return Verification(f"{how}: the same meaning", is_exact=True, compared=(before, after))
    return Verification(f"{how}: another meaning", str(difference), is_exact=True)


def _by_sets(tuning: ScheduledKernel, why: str) -> Verification:
    """Check races and storage of the tuned program, and the flow of values if no move changed statements."""
    compare = all(transformation(step.move.name).keeps_statements for step in tuning.game.trace.steps)
    found = IntegerSetOracle(tuning.before).judge(tuning.after, compare=compare)
    checked = ", ".join(found.checked) or "nothing"
    if found.fault is not None:
        return Verification(f"integer sets: a fault in {checked}", found.fault)
    left = [name for name in _ALL if name not in found.checked and not any(o.startswith(name) for o in found.open)]
    unchecked = [*found.open, *left]
    rest = f"; not checked: {', '.join(unchecked)}" if unchecked else ""
    said = f"exact oracle: not applicable, {why}; integer sets find no fault in {checked}{rest}"
    return Verification(said, is_exact=not unchecked)
