"""The time after each move of a trace (the paper's Figure 10): every program on the way, measured in turns."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf

from pdojo.backends.backend import backend_of
from pdojo.backends.measure import (
    Assembled,
    Limits,
    Ok,
    Options,
    Outcome,
    Program,
    Timeout,
    Worker,
    cost_of,
)
from pdojo.search.dojo import fingerprint_of
from pdojo.search.evaluation import Candidate
from pdojo.search.evaluators.analytical import Analytical
from pdojo.transforms.game import Game

SLOW = 0.5
"""Seconds a call above which a program is timed once, and not in turns with the others."""
LONGEST = 5.0
"""Seconds after which a program is stopped."""
TOGETHER = 180.0
"""Seconds for compiling and trying all programs; what is left then is left out."""
TRIAL = Options(samples=1, budget=0, check=False, attempts=1)
IN_TURNS = Options(samples=11, budget=0.25, check=False)
ALIKE = 0.03
"""Part of a cost by which two programs may differ and still count as equally fast."""


@dataclass(frozen=True)
class Prefix:
    """A program on the way."""

    moves: int
    """That were made."""
    move: str
    """The last of them; empty for the plain program."""
    cost: float
    """Infinite where there is none."""
    note: str = ""
    """Why there is no cost, or what is special about it."""
    foreign_load: float | None = None
    """Processors that others kept busy while it was timed; None if nothing was timed, or it is not known."""


@dataclass(frozen=True)
class Group:
    """Moves that follow each other and leave the cost as it is, but for the first of them."""

    prefixes: tuple[Prefix, ...]

    @property
    def cost(self) -> float:
        """After the last of the moves."""
        return self.prefixes[-1].cost


def grouped(prefixes: Sequence[Prefix]) -> list[Group]:
    """Programs that are as fast as the first of their group, in one group; those without a cost join nobody's."""
    groups: list[list[Prefix]] = []
    for prefix in prefixes:
        first = groups[-1][0] if groups else None
        # The plain program has no move: it stands alone.
        joins = first is not None and first.moves > 0 and _are_alike(first, prefix)
        if joins:
            groups[-1].append(prefix)
        else:
            groups.append([prefix])
    return [Group(tuple(group)) for group in groups]


def _are_alike(one: Prefix, other: Prefix) -> bool:
    if inf in (one.cost, other.cost):
        return one.cost == other.cost and one.note == other.note
    return abs(one.cost - other.cost) <= ALIKE * one.cost


def prefixes_of(game: Game, seed: int, tell: Callable[[str], None], *, measure: bool) -> tuple[list[Prefix], str]:
    """Every program on the way, and the unit of costs: measured, or simulated, or where it may not be, estimated."""
    backend = backend_of(game.machine)
    if backend.is_simulated:
        return (simulate_prefixes(game, seed) if measure else []), backend.unit
    return (time_prefixes(game, seed, tell), backend.unit) if measure else (estimate_prefixes(game), "cycles")


def simulate_prefixes(game: Game, seed: int) -> list[Prefix]:
    """Every program on the way with its cycles; equal programs are simulated once."""
    machine = game.machine
    programs = [Program.of(program.kernel, machine) for program in game.programs]
    distinct = {program.text: program for program in programs}
    with backend_of(machine).runs() as runs:
        outcomes = runs.compare(list(distinct.values()), replace(IN_TURNS, threads=machine.threads, seed=seed))
    known = dict(zip(distinct, outcomes, strict=True))
    return [
        Prefix(k, move, *_simulated(known[program.text]))
        for k, (move, program) in enumerate(zip(_moves(game), programs, strict=True))
    ]


def estimate_prefixes(game: Game) -> list[Prefix]:
    """Every program on the way with the model's cost."""
    machine = game.machine
    texts = [Program.of(program.kernel, machine) for program in game.programs]
    found = Analytical(machine).evaluate([Candidate(program, fingerprint_of(program.text)) for program in texts])
    return [
        Prefix(k, move, evaluation.cost, evaluation.detail.get("message", "") if evaluation.failure else "")
        for k, (move, evaluation) in enumerate(zip(_moves(game), found, strict=True))
    ]


def time_prefixes(game: Game, seed: int, tell: Callable[[str], None]) -> list[Prefix]:
    """Every program on the way with the median of its times; equal programs are timed once."""
    machine = game.machine
    programs = [Program.of(program.kernel, machine) for program in game.programs]
    distinct = {program.text: program for program in programs}
    with Worker(limits=replace(Limits(), run=LONGEST)) as worker:
        found = _timed(worker, list(distinct.values()), machine.threads, seed, tell)
    known = dict(zip(distinct, found, strict=True))
    return [
        Prefix(k, move, *known[program.text])
        for k, (move, program) in enumerate(zip(_moves(game), programs, strict=True))
    ]


def _moves(game: Game) -> list[str]:
    return ["", *(str(move) for move in game.trace.moves)]


def _timed(
    worker: Worker, programs: Sequence[Program], threads: int, seed: int, tell: Callable[[str], None]
) -> list[tuple[float, str, float | None]]:
    """Cost, note and foreign load of each: tried alone first, then those that are not slow in turns."""
    found: list[tuple[float, str, float | None]] = []
    quick: dict[int, Assembled] = {}
    end = time.monotonic() + TOGETHER
    trial = replace(TRIAL, threads=threads, seed=seed)
    for k, program in enumerate(programs):
        if time.monotonic() > end:
            found.append((inf, f"left out: those before took {TOGETHER:.0f} s", None))
            continue
        tell(f"trying program {k + 1} of {len(programs)}")
        assembled = worker.assemble(program)
        outcome = assembled if isinstance(assembled, Outcome) else worker.compare([assembled], trial)[0]
        found.append((*_judged(outcome), None))
        if found[-1][0] <= SLOW and isinstance(assembled, Assembled):
            quick[k] = assembled
    tell(f"timing {len(quick)} programs in turns")
    options = replace(IN_TURNS, threads=threads, seed=seed)
    for k, outcome in zip(quick, worker.compare(list(quick.values()), options) if quick else [], strict=True):
        if isinstance(outcome, Ok):
            found[k] = outcome.median, "", outcome.foreign_load
        else:
            found[k] = inf, outcome.summary, None
    return found


def _simulated(outcome: Outcome) -> tuple[float, str]:
    cost = cost_of(outcome)
    return cost, "" if cost < inf else outcome.summary.splitlines()[0]


def _judged(outcome: Outcome) -> tuple[float, str]:
    """What one call says."""
    if isinstance(outcome, Timeout) and outcome.phase != "compile":
        return inf, f"left out: a call takes more than {LONGEST:g} s"
    if not isinstance(outcome, Ok):
        return inf, outcome.summary.splitlines()[0]
    return (
        outcome.minimum,
        f"timed once, not in turns: a call takes more than {SLOW:g} s" if outcome.minimum > SLOW else "",
    )
