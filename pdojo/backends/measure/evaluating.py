"""Optional protocols of backends for searches: the processes that evaluate many programs, and what costs depend on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from pdojo.backends.measure.outcome import Outcome
from pdojo.backends.measure.pool import Job, Workers
from pdojo.backends.measure.request import Simulation
from pdojo.backends.measure.worker import Worker


class Simulators(Protocol):
    """Processes that simulate programs; a job's result is an outcome and the seconds that it took."""

    def simulate(self, wanted: Simulation, /) -> Job[Outcome]:
        """Begin a simulation; its outcome is `Simulated`, or a failure."""
        ...

    def close(self) -> None:
        """End all processes at once, even if they are busy."""
        ...


@runtime_checkable
class Simulates(Protocol):
    """A backend whose costs are simulated: equal on every computer."""

    @property
    def longest(self) -> int:
        """Limit of cycles of any program."""
        ...

    def simulators(self, count: int | None = None) -> Simulators:
        """`count` processes that simulate; None: one per processor."""
        ...

    def version(self) -> str:
        """The version of lowering and simulator; only cycles of equal versions are comparable."""
        ...


@runtime_checkable
class Times(Protocol):
    """A backend whose costs are times, measured in turns."""

    def compilers(self, count: int | None = None) -> Workers:
        """`count` processes (None: one per processor) whose `assemble` compiles programs for `runs` to load."""
        ...

    def runs(self) -> Worker:
        """A process that times programs in turns."""
        ...

    def environment(self) -> Mapping[str, Any]:
        """Facts that determine times in addition to program and machine."""
        ...
