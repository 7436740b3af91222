"""Costs by simulation: cycles of a Snitch core. A program always costs the same, and nothing disturbs the count."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Any

from pdojo.backends.measure import KernelReference, Outcome, Program, Simulated, Simulation
from pdojo.backends.measure.pool import Job, Workers, finished
from pdojo.backends.snitch.backend import LONGEST, version
from pdojo.dialect.machine import Machine
from pdojo.dialect.machine_file import machine_facts
from pdojo.dialect.notation import print_notation
from pdojo.dialect.ops import KernelOp
from pdojo.errors import UsageError
from pdojo.search.dojo import fingerprint_of
from pdojo.search.evaluation import JSON, Candidate, Evaluation, Listener
from pdojo.search.evaluators.ahead import Ahead

PATIENCE = 4
"""Times the plain kernel's cycles that a program may take: one that needs more is no way to a better one."""
SPARE = 2000
"""Cycles that it may take beside these, so that tiny kernels may set up streams."""
SEED = 0
"""Of the inputs on which costs are counted."""


class Cycles:
    """Cycles of programs on the simulator of a machine with streams; all results are compared with the plain kernel's.

    Programs run in `workers` processes at once (one for each processor where left out). A program that takes more than
    `PATIENCE` times the plain kernel's cycles, plus `SPARE`, fails with `Timeout`; where the plain kernel itself has no
    cycles the limit is `LONGEST`. `limit` is another one. Not safe for use from several threads at once.
    """

    name = "cycles"
    unit = "cycles"

    def __init__(
        self, machine: Machine, plain: KernelOp, *, seed: int = 0, workers: int | None = None, limit: int = 0
    ) -> None:
        if machine.backend != "snitch":
            raise UsageError(f"machine '{machine.name}' has no simulator; cycles are for Snitch cores")
        self._machine = machine
        self._plain = print_notation(plain)
        self.seed = seed
        """Of the inputs on which new bests are confirmed; those of each are its own."""
        self._given = self._limit = limit
        self.simulators = Workers(workers)
        self._jobs = Ahead(self._begin)

    @property
    def settings(self) -> JSON:
        """The machine, the lowering and the simulator, the inputs, the limit, which is the plain kernel's."""
        described = machine_facts(self._machine)
        return {
            "evaluator": self.name,
            "version": version(),
            "machine": described,
            "plain": fingerprint_of(self._plain),
            "seed": SEED,
            "limit": [PATIENCE, SPARE, LONGEST] if not self._given else self._given,
        }

    def expect(self, candidate: Candidate) -> None:
        """Begin to simulate the program."""
        self._jobs.expect(candidate)

    def evaluate(self, candidates: Sequence[Candidate], listener: Listener | None = None) -> Iterator[Evaluation]:
        """The cycles of each program, in order, each as soon as it and those before it are known."""
        jobs = self._jobs.take(candidates)

        def tell(number: int) -> None:
            if listener is not None:
                listener(f"simulating {number + 1} of {len(jobs)}")

        for outcome, seconds in finished(jobs, tell):
            yield _evaluation(outcome, seconds)

    def check(self, candidate: Candidate) -> Evaluation:
        """Its cycles on inputs of its own.

        Beside the plain kernel's results it must have the interpreter's bits on this very program, if that determines
        them.
        """
        # A seed that no cost has.
        seed = (1 << 32) + int.from_bytes(sha256(f"{self.seed} {candidate.fingerprint}".encode()).digest()[:4], "big")
        fresh = Simulation(candidate.program, KernelReference(self._plain), seed, 2 * self.limit, exact=True)
        return _evaluation(*self.simulators.simulate(fresh).result())

    @property
    def limit(self) -> int:
        """Most cycles of a program."""
        if not self._limit:
            plain = Simulation(Program(self._plain, self._machine), KernelReference(self._plain), SEED, LONGEST)
            outcome, _ = self.simulators.simulate(plain).result()
            cycles = outcome.cycles if isinstance(outcome, Simulated) else LONGEST
            self._limit = min(LONGEST, PATIENCE * cycles + SPARE)
        return self._limit

    def close(self) -> None:
        """End all processes, whatever they do."""
        self.simulators.close()

    def _begin(self, candidate: Candidate) -> Job[Outcome]:
        return self.simulators.simulate(Simulation(candidate.program, KernelReference(self._plain), SEED, self.limit))


def _evaluation(outcome: Outcome, seconds: float) -> Evaluation:
    """An outcome as a cost."""
    detail: dict[str, Any] = outcome.to_json()
    if isinstance(outcome, Simulated):
        return Evaluation(float(outcome.cycles), detail=detail, seconds={"simulate": seconds})
    return Evaluation.failed(detail["kind"], detail, {"simulate": seconds})
