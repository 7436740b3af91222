"""Costs by running programs on this machine: compiled in parallel, timed in turns."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from time import perf_counter
from typing import Any

from pdojo.backends.llvm.worker import CpuWorker
from pdojo.backends.measure import Assembled, KernelReference, Ok, Options, Outcome, PhaseLimits, Worker
from pdojo.backends.measure.environment import environment
from pdojo.backends.measure.pool import Job, Workers, results
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.machines.machine_file import machine_facts
from pdojo.dialect.notation import print_notation
from pdojo.dialect.ops import KernelOp
from pdojo.search.contract.evaluation import JSON, Candidate, Evaluation, Listener
from pdojo.search.contract.racing import STAGES, Race, TimingRequest
from pdojo.search.evaluators.ahead import Ahead

TIMING = Options(effort="search", budget=2.0, check=False, even=True)
"""Options of timing. The number of rounds sets the number of samples."""
PATIENCE = 30.0
"""Limits of a call and of compiling, as multiples of the incumbent's times."""
LEAST_LIMIT, LONGEST_LIMIT = 2.0, 10.0
"""Least and greatest limit of a call, in seconds; the paper's limit is 10 s."""
LEAST_COMPILING = 15.0
"""Least limit of compiling, in seconds; `Limits` gives the greatest."""
KEPT = 64
"""Number of programs whose object code is kept."""


class RuntimeEvaluator:
    """Seconds per call on this machine.

    Results are checked against the kernel `plain`. Programs compile in `compilers` processes at once (None: one per
    processor); afterwards they are timed in turns on `processors` (None: all) while nothing else runs. For a device
    other than this processor, `compilers` and `timer` are its processes, and `surroundings` returns its environment.
    Not safe for concurrent use from several threads.
    """

    name = "runtime"
    unit = "s"

    def __init__(
        self,
        machine: Machine,
        plain: KernelOp,
        *,
        seed: int = 0,
        compilers: int | Workers | None = None,
        processors: Sequence[int] | None = None,
        timer: Worker | None = None,
        surroundings: Callable[[], Mapping[str, Any]] = environment,
    ) -> None:
        self._machine = machine
        # The interpreter takes minutes per set of inputs of a large kernel.
        self._reference = KernelReference(print_notation(plain), compiled=True)
        self.seed = seed
        """Seed of the inputs that check results."""
        self._environment: JSON | None = None
        self._surroundings = surroundings
        self._compilers = compilers if isinstance(compilers, Workers) else Workers(compilers, CpuWorker)
        self._jobs = Ahead(self._begin)
        self._code: OrderedDict[str, Assembled] = OrderedDict()
        self._best: tuple[float, float] | None = None
        """Compile time and time per call, in seconds, of the last `beside` program."""
        self._timer = timer or CpuWorker(processors=processors)

    @property
    def settings(self) -> JSON:
        """The machine, the timing options, the processor and the tool chain."""
        if self._environment is None:
            self._environment = dict(self._surroundings())
        return settings_of(self._machine, self._environment)

    def expect(self, candidate: Candidate) -> None:
        """Begin to compile the program."""
        if candidate.fingerprint not in self._code:
            self._jobs.expect(candidate)

    def heat(self, wanted: TimingRequest, listener: Listener | None = None) -> list[Race]:
        """Time all programs in turns. With `inputs`, only absolute time limits apply, to the programs and to the
        incumbent.
        """
        inputs, others = wanted.inputs, [] if wanted.beside is None else [wanted.beside]
        if listener is not None:
            listener(f"compiling {len(wanted.candidates)}")
        ready = [*self._assembled(others, in_time=False), *self._assembled(wanted.candidates, in_time=inputs is None)]
        if listener is not None:
            listener(f"timing {len(wanted.candidates)} in turns, {wanted.rounds} rounds")
        start = perf_counter()
        options = replace(TIMING, threads=self._machine.threads, samples=wanted.rounds)
        self._timer.limits = PhaseLimits() if inputs is not None else self._limits()
        if wanted.seconds is not None:
            options = replace(options, total=wanted.seconds)
            longest = max(LEAST_LIMIT, wanted.seconds)
            self._timer.limits = replace(self._timer.limits, run=min(self._timer.limits.run, longest))
        if inputs is not None:
            # Races use the inputs of seed 0.
            options = replace(options, check=True, seed=(1 << 32) * (1 + inputs) + self.seed % (1 << 32))
        programs = [each for each in ready if isinstance(each, Assembled)]
        timed = iter(self._timer.compare(programs, options, self._reference if inputs is not None else None))
        outcomes = [next(timed) if isinstance(each, Assembled) else each for each in ready]
        spent = (perf_counter() - start) / max(1, len(wanted.candidates))
        found = [_evaluation(*each, spent) for each in zip(outcomes, ready, strict=True)]
        if not others:
            return [Race(each) for each in found]
        other, *raced = found
        if other.is_ok and isinstance(ready[0], Assembled):
            self._best = ready[0].seconds, other.cost
        return [Race(each, other) for each in raced]

    def close(self) -> None:
        """End all processes."""
        self._compilers.close()
        self._timer.close()

    def _limits(self) -> PhaseLimits:
        limit = LONGEST_LIMIT
        if self._best is not None:
            limit = min(max(PATIENCE * self._best[1], LEAST_LIMIT), limit)
        # A sample makes its calls twice.
        return replace(PhaseLimits(), run=2 * limit)

    def _begin(self, candidate: Candidate) -> Job[Assembled | Outcome]:
        """Compile a program within a limit relative to the incumbent's compile time."""
        limits = PhaseLimits()
        if self._best is not None:
            limits = replace(limits, compile=min(max(PATIENCE * self._best[0], LEAST_COMPILING), limits.compile))
        return self._compile(candidate, limits)

    def _compile(self, candidate: Candidate, limits: PhaseLimits) -> Job[Assembled | Outcome]:
        def assemble(worker: Worker) -> Assembled | Outcome:
            worker.limits = limits
            return worker.assemble(candidate.program, "search")

        return self._compilers.submit(assemble)

    def _assembled(self, candidates: Sequence[Candidate], *, in_time: bool) -> list[Assembled | Outcome]:
        """Object code of all programs, compiled in parallel; returns when no compiler is busy."""
        missing = [candidate for candidate in candidates if candidate.fingerprint not in self._code]
        jobs = self._jobs.take(missing) if in_time else [self._compile(each, PhaseLimits()) for each in missing]
        made = dict(zip((each.fingerprint for each in missing), results(jobs), strict=True))
        found = [made.get(key) or self._code[key] for key in (each.fingerprint for each in candidates)]
        for each, code in zip(candidates, found, strict=True):
            if isinstance(code, Assembled):
                self._code[each.fingerprint] = code
                self._code.move_to_end(each.fingerprint)
        while len(self._code) > KEPT:
            self._code.popitem(last=False)
        return found


def settings_of(machine: Machine, environment: JSON) -> JSON:
    """Everything except the program that costs on this machine depend on."""
    described = machine_facts(machine)
    options = asdict(replace(TIMING, threads=machine.threads))
    racing = {"stages": list(STAGES)}
    return {
        "evaluator": RuntimeEvaluator.name,
        "machine": described,
        "options": options,
        **racing,
        "environment": environment,
    }


def _evaluation(outcome: Outcome, code: Assembled | Outcome, ran: float) -> Evaluation:
    """The evaluation of an outcome; the cost is the median."""
    seconds = {"compile": code.seconds if isinstance(code, Assembled) else 0.0, "run": ran}
    detail: dict[str, Any] = outcome.to_json()
    if not isinstance(outcome, Ok):
        return Evaluation.failed(detail["kind"], detail, seconds)
    # The settings contain it.
    del detail["environment"]
    return Evaluation(outcome.median, detail=detail, seconds=seconds)
