"""Jobs of worker processes that begin before their batch is complete."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import wait
from typing import Generic, TypeVar

from pdojo.backends.measure.pool import Job
from pdojo.search.contract.evaluation import Candidate

T = TypeVar("T")


class Ahead(Generic[T]):
    """Jobs of programs; expected ones begin before their batch is complete."""

    def __init__(self, begin: Callable[[Candidate], Job[T]]) -> None:
        self._begin = begin
        self._begun: dict[str, Job[T]] = {}

    def expect(self, candidate: Candidate) -> None:
        """Begin the job of a program of the next batch."""
        if candidate.fingerprint not in self._begun:
            self._begun[candidate.fingerprint] = self._begin(candidate)

    def take(self, candidates: Sequence[Candidate]) -> list[Job[T]]:
        """The jobs of these programs. Jobs of other expected programs are cancelled and awaited."""
        for candidate in candidates:
            self.expect(candidate)
        jobs = [self._begun[candidate.fingerprint] for candidate in candidates]
        dropped = [job for job in self._begun.values() if job not in jobs and not job.cancel()]
        self._begun = {}
        wait(dropped)
        return jobs
