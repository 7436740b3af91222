"""The runtime evaluator, with its programs spread over the workers of a cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from math import inf
from threading import Event

from pdojo.dialect.notation import print_notation
from pdojo.dialect.ops import KernelOp
from pdojo.errors import MeasurementError
from pdojo.search.evaluation import JSON, Anchor, Candidate, Evaluation, Listener
from pdojo.search.evaluators.cluster.pool import ATTEMPTS, Cluster, WorkersLost
from pdojo.search.evaluators.runtime import Runtime, settings_of

WORKER_LOST = "WorkerLost"
"""Failure of a program that takes workers down."""
SHARE = 4
"""Programs for each processor of a worker that are one job: compiled together, and the leaders timed in turns."""


class OnCluster:
    """Seconds per call, as the runtime evaluator gives them, of the programs of one search.

    `plain` is the kernel whose results are right. What waits for workers raises KeyboardInterrupt when `stop` is set.
    """

    name = Runtime.name
    unit = Runtime.unit
    deterministic = Runtime.deterministic

    def __init__(self, cluster: Cluster, plain: KernelOp, *, seed: int = 0, stop: Event | None = None) -> None:
        self._cluster = cluster
        self._plain = print_notation(plain)
        self._stop = stop
        self._closed = Event()
        self.anchor: Anchor | None = None
        """A program that is timed with each share; costs are as they would have been when its own was measured."""
        self._seed = seed
        self._pool = ThreadPoolExecutor(cluster.size)
        self.batch = SHARE * cluster.machine.threads * cluster.size

    @property
    def settings(self) -> JSON:
        """Those of the runtime evaluator on a machine of the cluster, so that costs are shared with searches there."""
        return settings_of(self._cluster.machine, self._cluster.environment)

    def expect(self, candidate: Candidate) -> None:
        """Programs become jobs together: a worker compiles a share of them, and times the leaders in turns."""

    def evaluate(self, candidates: Sequence[Candidate], listener: Listener | None = None) -> Iterator[Evaluation]:
        """The costs, in order, each share of the programs as soon as it and those before it are known."""
        if listener is not None:
            listener(f"timing {len(candidates)} on {self._cluster.size} workers")
        size = self._share_size(len(candidates))
        shares = [candidates[k : k + size] for k in range(0, len(candidates), size)]
        jobs: list[Future[list[Evaluation]]] = [
            self._pool.submit(self._evaluate, share, self.anchor) for share in shares
        ]
        try:
            for job in jobs:
                yield from job.result()
        finally:
            # Where the search ends early, what no worker has begun is not begun any more.
            for job in jobs:
                job.cancel()

    def confirm(
        self, candidate: Candidate, best: Candidate | None, listener: Listener | None = None
    ) -> list[Evaluation]:
        """The duel, on one worker."""
        if listener is not None:
            listener("checking a new best")
        rivals = [candidate] if best is None else [candidate, best]
        texts = [rival.program.text for rival in rivals]
        try:
            return self._call("confirm", self._seed, texts)
        except WorkersLost:
            if best is None:
                return [_lost()]
        # One of them takes workers down: each for itself shows which. The other one was not timed beside it.
        alone = [self._evaluate([rival])[0] for rival in rivals]
        if all(evaluation.is_ok for evaluation in alone):
            raise MeasurementError(f"{ATTEMPTS} workers died over two programs that run alone; try again")
        return [evaluation if not evaluation.is_ok else Evaluation(inf) for evaluation in alone]

    def close(self) -> None:
        """End what this search waits for. The cluster stays: it serves others."""
        self._closed.set()
        self._pool.shutdown(cancel_futures=True)

    def _share_size(self, count: int) -> int:
        return max(1, min(SHARE * self._cluster.machine.threads, -(-count // max(1, self._cluster.size))))

    def _evaluate(self, share: Sequence[Candidate], anchor: Anchor | None = None) -> list[Evaluation]:
        beside = None if anchor is None else (anchor.candidate.program.text, anchor.cost)
        try:
            return self._call("evaluate", [candidate.program.text for candidate in share], beside)
        except WorkersLost:
            if len(share) == 1 and anchor is None:
                return [_lost()]
        # One of them takes workers down, or the anchor does: each for itself shows which.
        return [self._evaluate([candidate])[0] for candidate in share]

    def _call(self, method: str, *arguments: object) -> list[Evaluation]:
        return self._cluster.call(self._plain, method, *arguments, is_over=self._is_over)

    def _is_over(self) -> bool:
        return self._closed.is_set() or (self._stop is not None and self._stop.is_set())


def _lost() -> Evaluation:
    message = f"{ATTEMPTS} workers of the cluster died over it"
    return Evaluation.failed(WORKER_LOST, {"kind": WORKER_LOST, "message": message})
