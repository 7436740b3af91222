"""The workers of a cluster: started, given jobs, replaced after a death."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.machines.machine_file import machine_to_json
from pdojo.errors import MeasurementError, UsageError
from pdojo.search.contract.evaluation import JSON
from pdojo.search.evaluators.cluster import worker
from pdojo.search.evaluators.cluster.connection import START, Connection
from pdojo.search.evaluators.cluster.worker import KEPT, Facts

ATTEMPTS = 3
"""Number of workers that try a job before it counts as lost."""
POLL = 0.2
"""Seconds between two checks whether to end a wait."""
_VARYING = ("cpus", "system")
"""Facts of an environment that may differ within a cluster."""


class WorkersLost(Exception):
    """A job killed every worker that it was given to."""


@dataclass(eq=False)
class _Actor:
    handle: Any
    facts: Facts | None = None
    kernels: list[str] = field(default_factory=list[str])
    """Kernels whose evaluators the worker keeps, the latest last."""


class Cluster:
    """Workers for any number of searches, each of which may run in its own thread.

    There are as many workers as the cluster has room for, at most `most`; each has as many processors as the machine
    description has threads. On a private cluster one processor is left to the search, unless `most` is given. Raises
    UsageError if no worker starts, or if the cluster's machines or their pdojo differ: costs of different processors or
    tool chains are not comparable.
    """

    def __init__(self, connection: Connection, machine: Machine, *, most: int | None = None) -> None:
        self.machine = machine
        self.lost = 0
        """Number of workers that died."""
        self.notes: list[str] = []
        """Notes for the user: missing workers and the reasons."""
        self._connection = connection
        self._ray = connection.ray
        self._described = json.dumps(machine_to_json(machine))
        self._changed = threading.Condition()
        self._idle: list[_Actor] = []
        self._all: list[_Actor] = []
        self._starting = 0
        self._closed = False
        try:
            self.environment: JSON = self._start_all(self._room(most))
        except BaseException:
            self.close()
            raise

    def _room(self, most: int | None) -> int:
        threads = self.machine.threads
        given = self._connection.processors()
        room = sum(count // threads for count in given)
        if not room:
            raise UsageError(
                f"no machine of the cluster at '{self._connection.address}' gives {threads} processors, which the"
                f" machine '{self.machine.name}' has; the most is {max(given, default=0)}"
            )
        if most is None and self._connection.is_private:
            most = max(1, (sum(given) - 1) // threads)
        return room if most is None else min(room, most)

    def _start_all(self, count: int) -> JSON:
        """Start workers; returns their common environment."""
        pending = {self._begin(actor): actor for actor in (self._new() for _ in range(count))}
        ready, late = self._ray.wait(list(pending), num_returns=count, timeout=START)
        for answer in late:
            self._drop(pending[answer])
        if not ready:
            raise UsageError(
                f"no worker of the cluster at '{self._connection.address}' started within {START:g} s; others may be"
                f" using it"
            )
        if late:
            self.notes.append(f"{len(late)} of {count} workers did not start within {START:g} s and are left out")
        for answer in ready:
            pending[answer].facts = self._begun(answer)
            self._idle.append(pending[answer])
        return common([actor.facts for actor in self._all if actor.facts is not None])

    def _new(self) -> _Actor:
        remote = self._ray.remote(num_cpus=self.machine.threads, max_restarts=0)(worker.Measurer)
        actor = _Actor(remote.remote())
        self._all.append(actor)
        return actor

    def _begin(self, actor: _Actor) -> Any:
        return actor.handle.begin.remote(worker.release(), self._described, self.machine.threads)

    def _begun(self, answer: Any) -> Facts:
        try:
            return self._ray.get(answer)
        except self._ray.exceptions.RayError as error:
            raise self._connection.translated(error) from None

    @property
    def size(self) -> int:
        """Number of workers, including replacements that are still starting."""
        with self._changed:
            return len(self._alive()) + self._starting

    @property
    def workers(self) -> list[Facts]:
        """Facts about the workers."""
        with self._changed:
            return [actor.facts for actor in self._all if actor.facts is not None]

    def call(self, kernel: str, method: str, *arguments: object, is_over: Callable[[], bool]) -> Any:
        """The answer of a worker, preferably one that keeps the kernel's evaluator.

        Raises WorkersLost if every attempt killed a live worker while another one stayed alive; KeyboardInterrupt if
        `is_over` returns True; MeasurementError if no workers are left; and any PdojoError of the worker.
        """
        for _ in range(ATTEMPTS):
            actor = self._take_alive(kernel, is_over)
            answered, found = self._ask(actor, is_over, method, kernel, *arguments)
            if answered:
                self._give_back(actor)
                return found
        self._give_back(self._take_alive(kernel, is_over))
        raise WorkersLost

    def _take_alive(self, kernel: str, is_over: Callable[[], bool]) -> _Actor:
        """A worker that answers a ping, so that a later death is the job's fault."""
        while True:
            actor = self._take(kernel, is_over)
            if self._ask(actor, is_over, "ping")[0]:
                return actor

    def _ask(self, actor: _Actor, is_over: Callable[[], bool], method: str, *arguments: object) -> tuple[bool, Any]:
        """True and a worker's answer; False if it died and is replaced. Raises the errors of `call`."""
        try:
            return True, self._answer(getattr(actor.handle, method).remote(*arguments), is_over)
        except self._ray.exceptions.RayTaskError as error:
            self._give_back(actor)
            raise self._connection.translated(error) from None
        except self._ray.exceptions.RayError:
            self._replace(actor)
            return False, None
        except ConnectionError as error:
            raise MeasurementError(f"the cluster at '{self._connection.address}' is gone: {error}") from None
        except BaseException:
            # The worker finishes its abandoned job before the next one.
            self._give_back(actor)
            raise

    def _answer(self, answer: Any, is_over: Callable[[], bool]) -> Any:
        while not self._ray.wait([answer], timeout=POLL)[0]:
            if is_over():
                raise KeyboardInterrupt
        return self._ray.get(answer)

    def _take(self, kernel: str, is_over: Callable[[], bool]) -> _Actor:
        with self._changed:
            while not self._idle:
                if is_over():
                    raise KeyboardInterrupt
                if self._closed or not (self._starting or self._alive()):
                    raise MeasurementError(f"all workers of the cluster at '{self._connection.address}' are lost")
                self._changed.wait(POLL)
            if is_over():
                raise KeyboardInterrupt
            # Prefer a worker with the kernel, then one with few kernels, then the one idle for longest.
            actor = min(self._idle, key=lambda a: (kernel not in a.kernels, len(a.kernels)))
            self._idle.remove(actor)
            actor.kernels = [*(k for k in actor.kernels if k != kernel), kernel][-KEPT:]
            return actor

    def _alive(self) -> list[_Actor]:
        return [actor for actor in self._all if actor.facts is not None]

    def _give_back(self, actor: _Actor) -> None:
        with self._changed:
            if not self._closed:
                self._idle.append(actor)
            self._changed.notify_all()

    def _replace(self, lost: _Actor) -> None:
        """Start another worker in the background."""
        with self._changed:
            self._drop(lost)
            if self._closed:
                return
            self.lost += 1
            self._starting += 1
        threading.Thread(target=self._start_one, daemon=True).start()

    def _start_one(self) -> None:
        actor: _Actor | None = None
        problem = ""
        try:
            with self._changed:
                actor = self._new()
            answer = self._begin(actor)
            if self._ray.wait([answer], timeout=START)[0]:
                facts = self._begun(answer)
                common([facts, *self.workers])
                actor.facts = facts
            else:
                problem = f"and was not replaced within {START:g} s"
        except Exception as error:  # noqa: BLE001  # the thread's last words: nobody else would hear of it
            problem = f"and cannot be replaced: {error}"
        with self._changed:
            self._starting -= 1
            if problem:
                self.notes.append(f"a worker died {problem}")
            if actor is not None and problem:
                self._drop(actor)
            elif actor is not None:
                self._give_back(actor)
            self._changed.notify_all()

    def _drop(self, actor: _Actor) -> None:
        if actor in self._all:
            self._all.remove(actor)
        with suppress(Exception):
            # The worker or the whole cluster may be gone.
            self._ray.kill(actor.handle)

    def close(self) -> None:
        """End the workers. The connection stays. Closing twice is fine."""
        with self._changed:
            self._closed = True
            for actor in list(self._all):
                self._drop(actor)
            self._idle.clear()
            self._changed.notify_all()


def common(facts: Sequence[Facts]) -> JSON:
    """The common environment of the workers. Raises UsageError if facts that influence costs differ."""
    first = min((f.environment for f in facts), key=lambda e: json.dumps(e, sort_keys=True))
    for key in first:
        found: dict[str, str] = {}
        for each in facts:
            found.setdefault(str(each.environment.get(key)), each.machine)
        if len(found) > 1 and key not in _VARYING:
            differ = ", ".join(f"{value} on {machine}" for value, machine in sorted(found.items()))
            raise UsageError(f"the machines of the cluster differ in '{key}': {differ}; their costs cannot be compared")
    return first
