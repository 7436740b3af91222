"""Players of episodes: this process, other processes, or the workers of a Ray cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

from pdojo.backends.common.processes import ATTEMPTS, Pool
from pdojo.errors import MeasurementError
from pdojo.perfllm.settings import Settings
from pdojo.perfllm.training.episodes import EpisodeOrder, Played, Player
from pdojo.perfllm.training.kernels import TrainingKernel
from pdojo.search.evaluators.cluster.connection import Connection


class Players(Protocol):
    """Plays episodes of one policy."""

    def play(self, orders: Sequence[EpisodeOrder], policy: bytes | None) -> Iterator[Played]:
        """The episodes, in order; `policy` as in `Player.play`."""
        ...

    def close(self) -> None:
        """End the workers."""
        ...


class Here:
    """Plays in this process."""

    def __init__(self, kernels: Sequence[TrainingKernel], settings: Settings, seed: int) -> None:
        self._player = Player(kernels, settings, seed)

    def play(self, orders: Sequence[EpisodeOrder], policy: bytes | None) -> Iterator[Played]:
        """The episodes, one after the other."""
        return (self._player.play(order, policy) for order in orders)

    def close(self) -> None:
        """End the evaluators."""
        self._player.close()


class Processes:
    """Plays in processes of this computer. A process that dies is replaced, and its episode is repeated."""

    def __init__(self, kernels: Sequence[TrainingKernel], settings: Settings, seed: int, count: int) -> None:
        self.pool = Pool(count, _begin, tuple(kernels), settings, seed)

    def play(self, orders: Sequence[EpisodeOrder], policy: bytes | None) -> Iterator[Played]:
        """The episodes, several at once. Raises MeasurementError if an episode kills processes repeatedly."""
        return self.pool.map(_play, [_Job(order, policy) for order in orders])

    def close(self) -> None:
        """End the processes."""
        self.pool.close()


@dataclass(frozen=True)
class _Job:
    order: EpisodeOrder
    policy: bytes | None

    def __str__(self) -> str:
        return f"episode {self.order.number}"


_here: Player | None = None


def _begin(kernels: Sequence[TrainingKernel], settings: Settings, seed: int) -> None:
    global _here  # each process has one player
    _here = Player(kernels, settings, seed)


def _play(job: _Job) -> Played:
    assert _here is not None
    return _here.play(job.order, job.policy)


class OnRay:
    """Plays on workers of a Ray cluster, each with one processor. A worker that dies is replaced.

    Each worker keeps its own costs, so kernels have no database.
    """

    def __init__(
        self, connection: Connection, kernels: Sequence[TrainingKernel], settings: Settings, seed: int, count: int
    ) -> None:
        self._connection = connection
        self._ray: Any = connection.ray
        self._arguments = (tuple(kernels), settings, seed)
        self.actors: list[Any] = [self._started() for _ in range(count)]
        """Handles of the workers."""

    def _started(self) -> Any:
        return self._ray.remote(num_cpus=1, max_restarts=0)(Player).remote(*self._arguments)

    def play(self, orders: Sequence[EpisodeOrder], policy: bytes | None) -> Iterator[Played]:
        """The episodes, several at once."""
        data = self._ray.put(policy)
        for first in range(0, len(orders), len(self.actors)):
            part = orders[first : first + len(self.actors)]
            asked = [actor.play.remote(order, data) for actor, order in zip(self.actors, part, strict=False)]
            for number, (order, answer) in enumerate(zip(part, asked, strict=True)):
                yield self._answer(number, order, data, answer)

    def _answer(self, number: int, order: EpisodeOrder, data: Any, answer: Any) -> Played:
        for _ in range(ATTEMPTS):
            try:
                return self._ray.get(answer)
            except self._ray.exceptions.RayActorError:
                self.actors[number] = self._started()
                answer = self.actors[number].play.remote(order, data)
            except self._ray.exceptions.RayError as error:
                raise self._connection.translated(error) from None
        raise MeasurementError(f"{ATTEMPTS} workers of the cluster died over episode {order.number}")

    def close(self) -> None:
        """End the workers."""
        for actor in self.actors:
            with suppress(Exception):
                self._ray.kill(actor)
