"""Costs by simulation: cycles, whose count is deterministic."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Any

from pdojo.backends.measure import KernelReference, MeasuredProgram, Outcome, Simulated, Simulation
from pdojo.backends.measure.evaluating import Simulates
from pdojo.backends.measure.pool import Job, finished
from pdojo.backends.registry import backend_of
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.machines.machine_file import machine_facts
from pdojo.dialect.notation import print_notation
from pdojo.dialect.ops import KernelOp
from pdojo.errors import UsageError
from pdojo.search.contract.evaluation import JSON, Candidate, Evaluation, Listener
from pdojo.search.evaluators.ahead import Ahead
from pdojo.transforms.game import fingerprint_of

PATIENCE = 4
"""Greatest cycles of a program, as a multiple of the plain kernel's; slower programs lead nowhere."""
SPARE = 2000
"""Cycles added to that limit, so that tiny kernels can set up streams."""
SEED = 0
"""Seed of the inputs of counted runs."""


class Cycles:
    """Cycles of programs on the simulator of a machine's backend; results are compared with the plain kernel's.

    Programs run in `workers` processes at once (None: one per processor). `limit` is the greatest number of cycles of a
    program; 0 means `PATIENCE` times the plain kernel's cycles plus `SPARE`, or the backend's greatest limit if the
    plain kernel does not run. Slower programs fail with `Timeout`. Not safe for concurrent use from several threads.
    """

    name = "cycles"
    unit = "cycles"

    def __init__(
        self, machine: Machine, plain: KernelOp, *, seed: int = 0, workers: int | None = None, limit: int = 0
    ) -> None:
        backend = backend_of(machine)
        if not isinstance(backend, Simulates):
            raise UsageError(f"machine '{machine.name}' has no simulator; cycles are for simulated machines")
        self._backend = backend
        self._machine = machine
        self._plain = print_notation(plain)
        self._run_of_plain: Job[Outcome] | None = None
        """The counted run of the plain kernel, if it set the limit."""
        self.seed = seed
        """Seed of the inputs that check new bests; each program has its own inputs."""
        self._given = self._limit = limit
        self.simulators = backend.simulators(workers)
        self._jobs = Ahead(self._begin)

    @property
    def settings(self) -> JSON:
        """The machine, the version of lowering and simulator, the plain kernel, the inputs' seed and the limit."""
        described = machine_facts(self._machine)
        return {
            "evaluator": self.name,
            "version": self._backend.version(),
            "machine": described,
            "plain": fingerprint_of(self._plain),
            "seed": SEED,
            "limit": [PATIENCE, SPARE, self._backend.longest] if not self._given else self._given,
        }

    def expect(self, candidate: Candidate) -> None:
        """Begin to simulate the program."""
        self._jobs.expect(candidate)

    def evaluate(self, candidates: Sequence[Candidate], listener: Listener | None = None) -> Iterator[Evaluation]:
        """The cycles of each program, in order; each is yielded as soon as it and all earlier ones are known."""
        jobs = self._jobs.take(candidates)

        def tell(number: int) -> None:
            if listener is not None:
                listener(f"simulating {number + 1} of {len(jobs)}")

        for outcome, seconds in finished(jobs, tell):
            yield _evaluation(outcome, seconds)

    def check(self, candidate: Candidate) -> Evaluation:
        """The cycles of a program on its own inputs.

        The results must agree with the plain kernel's. If their bits are determined, they must also equal the
        interpreter's for this program bit by bit.
        """
        # No counted run has such a seed.
        seed = (1 << 32) + int.from_bytes(sha256(f"{self.seed} {candidate.fingerprint}".encode()).digest()[:4], "big")
        fresh = Simulation(candidate.program, KernelReference(self._plain), seed, 2 * self.limit, exact=True)
        return _evaluation(*self.simulators.simulate(fresh).result())

    @property
    def limit(self) -> int:
        """Greatest number of cycles of a program."""
        if not self._limit:
            longest = self._backend.longest
            plain = Simulation(MeasuredProgram(self._plain, self._machine), KernelReference(self._plain), SEED, longest)
            job = self.simulators.simulate(plain)
            outcome, _ = job.result()
            self._limit = longest
            if isinstance(outcome, Simulated):
                self._limit = min(longest, PATIENCE * outcome.cycles + SPARE)
                self._run_of_plain = job
        return self._limit

    def close(self) -> None:
        """End all processes at once, even if they are busy."""
        self.simulators.close()

    def _begin(self, candidate: Candidate) -> Job[Outcome]:
        wanted = Simulation(candidate.program, KernelReference(self._plain), SEED, self.limit)
        if self._run_of_plain is not None and candidate.program.text == self._plain:
            return self._run_of_plain
        return self.simulators.simulate(wanted)


def _evaluation(outcome: Outcome, seconds: float) -> Evaluation:
    detail: dict[str, Any] = outcome.to_json()
    if isinstance(outcome, Simulated):
        return Evaluation(float(outcome.cycles), detail=detail, seconds={"simulate": seconds})
    return Evaluation.failed(detail["kind"], detail, {"simulate": seconds})
