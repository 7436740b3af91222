"""Costs by running programs on this machine: compiled together, timed alone, the leaders once more in turns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from math import inf
from time import perf_counter
from typing import Any

from pdojo.backends.measure import Assembled, KernelReference, Limits, Ok, Options, Outcome, Worker
from pdojo.backends.measure.environment import environment
from pdojo.dialect.machine import Machine
from pdojo.dialect.machine_file import machine_to_json
from pdojo.dialect.notation import print_notation
from pdojo.dialect.ops import KernelOp
from pdojo.search.evaluation import JSON, Anchor, Candidate, Evaluation, Listener, seed_of_duel
from pdojo.search.evaluators.workers import Ahead, Job, Workers, results

SCREENING = Options(effort="search", samples=3, budget=0.03, check=False, attempts=2)
"""How every program is timed: the least of few samples, because what disturbs a sample only makes it longer."""
LEADERS = Options(effort="search", samples=9, budget=0.3, check=False, attempts=2)
"""How those that may be the best are timed again, in turns."""
DUEL = Options(effort="search", samples=45, budget=2.0, attempts=3)
"""How a program becomes the best: checked, in turns with the best so far. Few are, and all depends on it."""
PROMISING = 1.1
"""Times the best cost up to which a screened program is timed again."""
PATIENCE = 30.0
"""Times the best cost that one call may take, and times what compiling the best took that compiling may take."""
LEAST_LIMIT, LONGEST_LIMIT = 2.0, 10.0
"""Seconds of a call within which a program is stopped; the paper's limit is 10 s."""
LEAST_COMPILING = 15.0
"""Seconds after which compiling is stopped, at least; it is never stopped later than by `Limits`."""


class Runtime:
    """Seconds per call on this machine.

    `plain` is the kernel whose results are right. Programs of a batch are compiled by `compilers` processes at once
    (one for each processor where left out); then each is timed with nothing beside it, on `processors` (all where
    left out). Not safe for use from several threads at once.
    """

    name = "runtime"
    unit = "s"
    deterministic = False

    def __init__(
        self,
        machine: Machine,
        plain: KernelOp,
        *,
        seed: int = 0,
        compilers: int | None = None,
        processors: Sequence[int] | None = None,
    ) -> None:
        self._machine = machine
        self._reference = KernelReference(print_notation(plain))
        self.seed = seed
        """Of the inputs of duels; those of each are its own, in every process."""
        self.anchor: Anchor | None = None
        """A program that is timed with each batch; costs are as they would have been when its own was measured.

        What takes much longer is stopped.
        """
        self._anchored: tuple[str, Assembled | Outcome] | None = None
        """The last anchor that was timed, and its object code."""
        self._environment: JSON | None = None
        self._compilers = Workers(compilers)
        self.batch = 4 * self._compilers.count
        self._jobs = Ahead(self._begin)
        self._screened: dict[str, Assembled | Outcome] = {}
        """The programs of the last batch."""
        self._timer = Worker(processors=processors)

    @property
    def settings(self) -> JSON:
        """The machine, how it is measured, the processor and the tool chain."""
        if self._environment is None:
            self._environment = dict(environment())
        return settings_of(self._machine, self._environment)

    def expect(self, candidate: Candidate) -> None:
        """Begin to compile the program."""
        self._jobs.expect(candidate)

    def evaluate(self, candidates: Sequence[Candidate], listener: Listener | None = None) -> Iterator[Evaluation]:
        """The least time of few samples for each, by the anchor's where there is one."""
        tell = listener or _ignore
        tell(f"compiling {len(candidates)}")
        assembled = self._assemble(candidates)
        anchor, anchored = self.anchor, self._anchor_code()
        self._screened = {c.fingerprint: p for c, p in zip(candidates, assembled, strict=True)}
        now = self._screen(anchored) if anchored is not None else None
        for number, program in enumerate(assembled):
            tell(f"timing {number + 1} of {len(candidates)}")
            found = self._screen(program)
            if anchor is not None and now is not None:
                found = anchor.scaled(found, now)
            yield found

    def refine(
        self, found: Mapping[str, Evaluation], best: float, listener: Listener | None = None
    ) -> dict[str, Evaluation]:
        """Of more samples, in turns, for those that lead: how they compare with the anchor's, or the least time.

        Nothing for one that leads alone, without an anchor.
        """
        if best == inf:
            best = min((evaluation.cost for evaluation in found.values()), default=inf)
        # Not those near the best of the batch: its cost may be the one that is wrong.
        rivals = {
            fingerprint: program
            for fingerprint, evaluation in found.items()
            if evaluation.cost <= PROMISING * best and isinstance(program := self._screened.get(fingerprint), Assembled)
        }
        anchor, anchored = self.anchor, self._anchor_code()
        beside = [anchored] if isinstance(anchored, Assembled) else []
        if not rivals or len(rivals) + len(beside) < 2:
            return {}
        (listener or _ignore)(f"timing {len(rivals)} leaders again")
        start = perf_counter()
        outcomes = self._timer.compare([*beside, *rivals.values()], self._options(LEADERS))
        spent = (perf_counter() - start) / len(rivals)
        better = {
            fingerprint: _evaluation(outcome, program.seconds, found[fingerprint].seconds["run"] + spent)
            for (fingerprint, program), outcome in zip(rivals.items(), outcomes[len(beside) :], strict=True)
        }
        if anchor is None or not beside:
            return better
        now = _evaluation(outcomes[0], 0.0, 0.0)
        return {fingerprint: anchor.scaled_in_turns(evaluation, now) for fingerprint, evaluation in better.items()}

    def confirm(
        self, candidate: Candidate, best: Candidate | None, listener: Listener | None = None
    ) -> list[Evaluation]:
        """Both in turns, on inputs that no other duel has, checked against the plain kernel."""
        if listener is not None:
            listener("checking a new best")
        rivals = [candidate] if best is None else [candidate, best]
        programs = self._ready(rivals)
        start = perf_counter()
        options = replace(self._options(DUEL), seed=seed_of_duel(self.seed, rivals))
        self._timer.limits = Limits()
        timed = iter(self._timer.compare([p for p in programs if isinstance(p, Assembled)], options, self._reference))
        spent = perf_counter() - start
        return [
            _evaluation(p if isinstance(p, Outcome) else next(timed), _compile_seconds(p), spent, by="median")
            for p in programs
        ]

    def close(self) -> None:
        """End all processes."""
        self._compilers.close()
        self._timer.close()

    def _options(self, options: Options) -> Options:
        return _on(options, self._machine)

    def _begin(self, candidate: Candidate) -> Job[Assembled | Outcome]:
        """Compile what is evaluated: it has failed where that takes much longer than for the best."""
        limits = Limits()
        if self._anchored is not None and isinstance(best := self._anchored[1], Assembled):
            limits = replace(limits, compile=min(max(PATIENCE * best.seconds, LEAST_COMPILING), limits.compile))
        return self._compile(candidate, limits)

    def _compile(self, candidate: Candidate, limits: Limits) -> Job[Assembled | Outcome]:
        def assemble(worker: Worker) -> Assembled | Outcome:
            worker.limits = limits
            return worker.assemble(candidate.program, "search")

        return self._compilers.submit(assemble)

    def _anchor_code(self) -> Assembled | Outcome | None:
        """The object code of the anchor, which is often a program of the last batch, or how it does not compile."""
        if self.anchor is None:
            return None
        candidate = self.anchor.candidate
        if self._anchored is None or self._anchored[0] != candidate.fingerprint:
            (program,) = self._ready([candidate])
            self._anchored = candidate.fingerprint, program
        return self._anchored[1]

    def _ready(self, candidates: Sequence[Candidate]) -> list[Assembled | Outcome]:
        """Object code of programs that were evaluated before, however long that takes."""
        known = dict(self._screened if self._anchored is None else [*self._screened.items(), self._anchored])
        found = {key: program for key, program in known.items() if isinstance(program, Assembled)}
        missing = [candidate for candidate in candidates if candidate.fingerprint not in found]
        made = results([self._compile(candidate, Limits()) for candidate in missing])
        found |= {candidate.fingerprint: program for candidate, program in zip(missing, made, strict=True)}
        return [found[candidate.fingerprint] for candidate in candidates]

    def _assemble(self, candidates: Sequence[Candidate]) -> list[Assembled | Outcome]:
        """Object code of all, by all compilers at once; nothing is compiled any more after it."""
        return results(self._jobs.take(candidates))

    def _screen(self, program: Assembled | Outcome) -> Evaluation:
        if isinstance(program, Outcome):
            return _evaluation(program, 0.0, 0.0)
        start = perf_counter()
        limit = LONGEST_LIMIT
        if self.anchor is not None:
            limit = min(max(PATIENCE * self.anchor.cost, LEAST_LIMIT), limit)
        # A sample makes its calls twice.
        self._timer.limits = replace(Limits(), run=2 * limit)
        (outcome,) = self._timer.compare([program], self._options(SCREENING))
        return _evaluation(outcome, program.seconds, perf_counter() - start)


def settings_of(machine: Machine, environment: JSON) -> JSON:
    """What costs on machines like this one depend on beside the program."""
    described = machine_to_json(machine)
    del described["description"]
    screening = {**asdict(_on(SCREENING, machine)), "anchored": True}
    return {"evaluator": Runtime.name, "machine": described, "options": screening, "environment": environment}


def _on(options: Options, machine: Machine) -> Options:
    return replace(options, threads=machine.threads)


def _ignore(_: str) -> None:
    """Nobody listens."""


def _compile_seconds(program: Assembled | Outcome) -> float:
    return program.seconds if isinstance(program, Assembled) else 0.0


def _evaluation(outcome: Outcome, compiled: float, ran: float, by: str = "minimum") -> Evaluation:
    """An outcome as a cost."""
    seconds = {"compile": compiled, "run": ran}
    detail: dict[str, Any] = outcome.to_json()
    if not isinstance(outcome, Ok):
        return Evaluation.failed(detail["kind"], detail, seconds)
    # It is in the settings.
    del detail["environment"]
    return Evaluation(outcome.median if by == "median" else outcome.minimum, detail=detail, seconds=seconds)
