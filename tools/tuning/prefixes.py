"""Costs after each move of a trace (the paper's Figure 10): all programs of the trace, measured in turns."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf

from pdojo.backends.llvm.worker import CpuWorker
from pdojo.backends.measure import (
    Assembled,
    MeasuredProgram,
    Ok,
    Options,
    Outcome,
    PhaseLimits,
    Timeout,
    Worker,
    cost_of,
)
from pdojo.backends.registry import backend_of
from pdojo.transforms.game import Game, fingerprint_of

SLOW = 0.5
"""Seconds of a call above which a program is timed once, instead of in turns with the others."""
LONGEST = 5.0
"""Seconds after which a call is stopped."""
TOGETHER = 20.0
"""Limit of seconds for all programs."""
TRYING = 0.6
"""The fraction of `TOGETHER` for compiling and trying; the rest is for the turns."""
LEFT_OUT = f"left out: the programs of the trace have {TOGETHER:.0f} s together"
AT_ONCE = 8
"""Number of programs simulated between two looks at the clock."""
TRIAL = Options(samples=1, budget=0, check=False)
IN_TURNS = Options(samples=11, check=False, even=True)
ALIKE = 0.03
"""Greatest relative difference of two costs that count as equal."""


@dataclass(frozen=True)
class Prefix:
    """The program after some moves of a trace."""

    moves: int
    """Number of moves."""
    move: str
    """The last move; empty for the plain program."""
    cost: float
    """The cost; infinite if there is none."""
    note: str = ""
    """The reason for a missing cost, or a remark on the cost."""
    foreign_load: float | None = None
    """Number of processors kept busy by other programs during the timing; None if unknown."""


@dataclass(frozen=True)
class PrefixGroup:
    """Consecutive moves of which only the first one changes the cost."""

    prefixes: tuple[Prefix, ...]

    @property
    def cost(self) -> float:
        """The cost after the last move."""
        return self.prefixes[-1].cost


def grouped(prefixes: Sequence[Prefix]) -> list[PrefixGroup]:
    """Groups of successive, equally fast programs; a program without a cost forms its own group."""
    groups: list[list[Prefix]] = []
    for prefix in prefixes:
        first = groups[-1][0] if groups else None
        # The plain program has no move: it forms its own group.
        joins = first is not None and first.moves > 0 and _are_alike(first, prefix)
        if joins:
            groups[-1].append(prefix)
        else:
            groups.append([prefix])
    return [PrefixGroup(tuple(group)) for group in groups]


def _are_alike(one: Prefix, other: Prefix) -> bool:
    if inf in (one.cost, other.cost):
        return one.cost == other.cost and one.note == other.note
    return abs(one.cost - other.cost) <= ALIKE * one.cost


def prefixes_of(game: Game, seed: int, tell: Callable[[str], None], *, measure: bool) -> tuple[list[Prefix], str]:
    """All programs of the trace and the unit of their costs: measured or simulated, else estimated."""
    backend = backend_of(game.machine)
    if backend.is_simulated:
        return (simulate_prefixes(game, seed, tell) if measure else []), backend.unit
    return (time_prefixes(game, seed, tell), backend.unit) if measure else (estimate_prefixes(game), "cycles")


def simulate_prefixes(game: Game, seed: int, tell: Callable[[str], None]) -> list[Prefix]:
    """All programs of the trace with their cycles; equal programs are simulated once.

    When the time is up, some programs, spread over the trace, are left out.
    """
    machine = game.machine
    programs = [MeasuredProgram.of(program.kernel, machine) for program in game.programs]
    distinct = {program.text: program for program in programs}
    texts = list(distinct)
    order = [distinct[texts[k]] for k in spread(len(texts))]
    options = replace(IN_TURNS, threads=machine.threads, seed=seed)
    known: dict[str, Outcome] = {}
    end = time.monotonic() + TOGETHER
    with backend_of(machine).runs() as runs:
        for k in range(0, len(order), AT_ONCE):
            if time.monotonic() > end:
                break
            tell(f"simulating program {k + 1} of {len(order)}")
            batch = order[k : k + AT_ONCE]
            outcomes = runs.compare(batch, options)
            known.update({program.text: outcome for program, outcome in zip(batch, outcomes, strict=True)})
    return [
        Prefix(k, move, *(_simulated(known[program.text]) if program.text in known else (inf, LEFT_OUT)))
        for k, (move, program) in enumerate(zip(_moves(game), programs, strict=True))
    ]


def estimate_prefixes(game: Game) -> list[Prefix]:
    """All programs of the trace with the model's costs."""
    from pdojo.search.contract.evaluation import Candidate
    from pdojo.search.evaluators.analytical import Analytical

    machine = game.machine
    texts = [MeasuredProgram.of(program.kernel, machine) for program in game.programs]
    found = Analytical(machine).evaluate([Candidate(program, fingerprint_of(program.text)) for program in texts])
    return [
        Prefix(k, move, evaluation.cost, evaluation.detail.get("message", "") if evaluation.failure else "")
        for k, (move, evaluation) in enumerate(zip(_moves(game), found, strict=True))
    ]


def time_prefixes(game: Game, seed: int, tell: Callable[[str], None]) -> list[Prefix]:
    """All programs of the trace with their median times; equal programs are timed once."""
    machine = game.machine
    programs = [MeasuredProgram.of(program.kernel, machine) for program in game.programs]
    distinct = {program.text: program for program in programs}
    with CpuWorker(limits=replace(PhaseLimits(), run=LONGEST)) as worker:
        found = _timed(worker, list(distinct.values()), machine.threads, seed, tell)
    known = dict(zip(distinct, found, strict=True))
    return [
        Prefix(k, move, *known[program.text])
        for k, (move, program) in enumerate(zip(_moves(game), programs, strict=True))
    ]


def _moves(game: Game) -> list[str]:
    return ["", *(str(move) for move in game.trace.moves)]


def spread(count: int) -> list[int]:
    """The numbers below `count` in the order first, last, then always the middle of the longest gap."""
    order = list(dict.fromkeys((0, count - 1)))
    gaps = [(0, count - 1)]
    while gaps:
        low, high = gaps.pop(0)
        if high - low > 1:
            middle = (low + high) // 2
            order.append(middle)
            gaps += [(low, middle), (middle, high)]
    return order


def _timed(
    worker: Worker, programs: Sequence[MeasuredProgram], threads: int, seed: int, tell: Callable[[str], None]
) -> list[tuple[float, str, float | None]]:
    """Cost, note and foreign load of each program: each is first timed alone, then in turns unless it is slow.

    When the time is up, some programs, spread over the trace, are left out, but never the last one. The time begins
    after the trial of the first program, which starts the worker.
    """
    found: dict[int, tuple[float, str, float | None]] = {}
    quick: dict[int, Assembled] = {}
    start = time.monotonic()
    trial = replace(TRIAL, threads=threads, seed=seed)
    for number, k in enumerate(spread(len(programs))):
        if number > 1 and time.monotonic() - start > TOGETHER * TRYING:
            break
        tell(f"trying program {number + 1} of {len(programs)}")
        assembled = worker.assemble(programs[k])
        outcome = assembled if isinstance(assembled, Outcome) else worker.compare([assembled], trial)[0]
        found[k] = (*_judged(outcome), None)
        if found[k][0] <= SLOW and isinstance(assembled, Assembled):
            quick[k] = assembled
        if number == 0:
            start = time.monotonic()
    tell(f"timing {len(quick)} programs in turns")
    left = max(TOGETHER * (1 - TRYING), TOGETHER - (time.monotonic() - start))
    options = replace(IN_TURNS, threads=threads, seed=seed, total=left)
    for k, outcome in zip(quick, worker.compare(list(quick.values()), options) if quick else [], strict=True):
        if isinstance(outcome, Ok):
            found[k] = outcome.median, "", outcome.foreign_load
        elif isinstance(outcome, Timeout):
            found[k] = found[k][0], "timed once, not in turns: the time was up", None
        else:
            found[k] = inf, outcome.summary, None
    return [found.get(k, (inf, LEFT_OUT, None)) for k in range(len(programs))]


def _simulated(outcome: Outcome) -> tuple[float, str]:
    cost = cost_of(outcome)
    return cost, "" if cost < inf else outcome.summary.splitlines()[0]


def _judged(outcome: Outcome) -> tuple[float, str]:
    """Cost and note of a trial."""
    if isinstance(outcome, Timeout) and outcome.phase != "compile":
        return inf, f"left out: a call takes more than {LONGEST:g} s"
    if not isinstance(outcome, Ok):
        return inf, outcome.summary.splitlines()[0]
    return (
        outcome.minimum,
        f"timed once, not in turns: a call takes more than {SLOW:g} s" if outcome.minimum > SLOW else "",
    )
