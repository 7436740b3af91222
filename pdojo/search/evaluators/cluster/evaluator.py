"""The runtime evaluator on the workers of a cluster."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from threading import Event

from pdojo.dialect.notation import print_notation
from pdojo.dialect.ops import KernelOp
from pdojo.errors import MeasurementError
from pdojo.search.contract.evaluation import JSON, Candidate, Evaluation, Listener
from pdojo.search.contract.racing import Race, TimingRequest
from pdojo.search.evaluators.cluster.pool import ATTEMPTS, Cluster, WorkersLost
from pdojo.search.evaluators.runtime import RuntimeEvaluator, settings_of

WORKER_LOST = "WorkerLost"
"""Failure of a program that kills workers."""
SHARE = 4
"""Number of programs in a job, per processor of a worker. A job's programs compile together and are timed in turns."""


class OnCluster:
    """Seconds per call of the programs of one search, as the runtime evaluator measures them.

    Results are checked against the kernel `plain`. Waits for workers raise KeyboardInterrupt when `stop` is set.
    """

    name = RuntimeEvaluator.name
    unit = RuntimeEvaluator.unit

    def __init__(self, cluster: Cluster, plain: KernelOp, *, seed: int = 0, stop: Event | None = None) -> None:
        self._cluster = cluster
        self._plain = print_notation(plain)
        self._stop = stop
        self._closed = Event()
        self._seed = seed
        self._pool = ThreadPoolExecutor(cluster.size)

    @property
    def settings(self) -> JSON:
        """The runtime evaluator's settings on a machine of the cluster, so that both share stored costs."""
        return settings_of(self._cluster.machine, self._cluster.environment)

    def expect(self, candidate: Candidate) -> None:
        """Do nothing: programs are sent in jobs of several."""

    def heat(self, wanted: TimingRequest, listener: Listener | None = None) -> list[Race]:
        """Time each share of the programs on one worker, in turns with the request's `beside` program."""
        count = len(wanted.candidates)
        if listener is not None:
            listener(f"timing {count} on {self._cluster.size} workers")
        size = self._share_size(count)
        shares = [replace(wanted, candidates=wanted.candidates[k : k + size]) for k in range(0, count, size)]
        jobs: list[Future[list[Race]]] = [self._pool.submit(self._heat, share) for share in shares]
        try:
            return [each for job in jobs for each in job.result()]
        finally:
            # If the search ends early, jobs that no worker has begun are cancelled.
            for job in jobs:
                job.cancel()

    def close(self) -> None:
        """End this search's waits. The cluster stays: other searches use it."""
        self._closed.set()
        self._pool.shutdown(cancel_futures=True)

    def _share_size(self, count: int) -> int:
        return max(1, min(SHARE * self._cluster.machine.threads, -(-count // max(1, self._cluster.size))))

    def _heat(self, share: TimingRequest) -> list[Race]:
        candidates, beside = share.candidates, share.beside
        texts = [candidate.program.text for candidate in candidates]
        facts = (texts, beside and beside.program.text, share.rounds, share.inputs)
        try:
            return self._cluster.call(self._plain, "heat", self._seed, *facts, is_over=self._is_over)
        except WorkersLost:
            if beside is None and len(candidates) == 1:
                return [Race(_lost())]
        if beside is None or len(candidates) > 1:
            # One of the programs kills workers: timing each alone finds it.
            return [race for each in candidates for race in self._heat(replace(share, candidates=[each]))]
        alone = [replace(share, candidates=[each], beside=None) for each in (*candidates, beside)]
        own, best = (self._heat(each)[0].evaluation for each in alone)
        if own.is_ok and best.is_ok:
            raise MeasurementError(f"{ATTEMPTS} workers died over two programs that run alone; try again")
        return [Race(own, best)]

    def _is_over(self) -> bool:
        return self._closed.is_set() or (self._stop is not None and self._stop.is_set())


def _lost() -> Evaluation:
    message = f"{ATTEMPTS} workers of the cluster died over it"
    return Evaluation.failed(WORKER_LOST, {"kind": WORKER_LOST, "message": message})
