"""Explanations of models: what runs in kernels, what does not and why, and the time of each part."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import TypeVar

from pdojo.dialect.affine import Size
from pdojo.dialect.notation import print_notation
from pdojo.dialect.ops import KernelOp
from pdojo.model.model import Model
from pdojo.onnx.regions import Engine, Part, Region, Values, Waiting

_P = TypeVar("_P")


@dataclass
class PartReport:
    """A part of a model in one call."""

    title: str
    """The node of a step, or the kernels."""
    reason: str
    """Why the node is no kernel; empty for kernels."""
    depth: int
    """The number of steps around it."""
    model: Model | None = None
    """The kernels, before any moves; None for steps."""
    runs: int = 0
    seconds: float = 0.0
    """The time of all runs together, with that of the parts inside."""

    @staticmethod
    def of(part: Part, depth: int) -> PartReport:
        """The report of a part that has not run."""
        if isinstance(part, Region):
            return PartReport.of_model(part.model, depth)
        return PartReport(part.title, part.reason, depth)

    @staticmethod
    def of_model(model: Model, depth: int = 0) -> PartReport:
        """The report of kernels that have not run."""
        names = ", ".join(kernel.sym_name.data for kernel in model.kernels)
        return PartReport(f"{len(model.calls)} calls of kernels: {names}", "", depth, model)

    def __str__(self) -> str:
        runs = f"{self.runs} run{'s' * (self.runs != 1)}, {self.seconds * 1e3:.3g} ms"
        return f"{'  ' * self.depth}{self.title}{f'; {self.reason}' if self.reason else ''} ({runs})"


@dataclass(frozen=True)
class Explanation:
    """The result of `explain`; `print` shows a line for each part."""

    parts: tuple[PartReport, ...]
    """The parts in the order in which they began; those inside a step follow it."""
    static: Mapping[str, str]
    """The static inputs with the nodes that need them."""
    obstacle: str = ""
    """Why shapes have no common plan, if one was tried."""
    sizes: tuple[Size, ...] = ()
    """The sizes of the plan, if it is one for many shapes."""
    left_out: Sequence[str] = ()
    """A line for each node whose result is its operand, since kernels have no such values."""

    @property
    def models(self) -> tuple[Model, ...]:
        """The graphs of kernels."""
        return tuple(part.model for part in self.parts if part.model is not None)

    @property
    def kernels(self) -> tuple[KernelOp, ...]:
        """The different kernels, before any moves."""
        found = {print_notation(kernel): kernel for model in self.models for kernel in model.kernels}
        return tuple(found.values())

    @property
    def steps(self) -> tuple[PartReport, ...]:
        """The parts that are no kernels, and the stages that were made for shapes or values."""
        return tuple(part for part in self.parts if part.reason)

    @property
    def remarks(self) -> list[str]:
        """A line for each static input, for the plan of many shapes, and for each part that is no kernel."""
        rows = [
            f"static: input '{name}'; {node} needs its value, and other values make the model anew"
            for name, node in self.static.items()
        ]
        return [*rows, *self._plan, *self.left_out, *(f"step: {part.title}; {part.reason}" for part in self.steps)]

    def __str__(self) -> str:
        return "\n".join([*self.remarks[: len(self.remarks) - len(self.steps)], *map(str, self.parts)])

    @property
    def _plan(self) -> list[str]:
        """A line about the plan of many shapes, if one was made or tried."""
        if self.sizes:
            ranges = [f"{size.name} from {size.low} to {size.high}" for size in self.sizes]
            return [f"shapes: one plan for {', '.join(ranges)}"]
        return [f"shapes: each is planned anew; {self.obstacle}"] if self.obstacle else []


@dataclass
class Watched(Engine):
    """An engine whose parts are reported."""

    engine: Engine
    reports: dict[object, PartReport] = field(default_factory=dict[object, PartReport])
    _parts: list[Part] = field(default_factory=list[Part])
    """The parts, which must live as long as their identities are keys."""
    _depth: int = 0

    def kernels(self, region: Region, values: Values) -> None:
        """Run the kernels of a region."""
        self.engine.kernels(region, values)

    def run(self, part: Part, values: Values) -> None:
        """Run a part, and report it."""
        if id(part) not in self.reports:
            self._parts.append(part)
        with self._timed(id(part), PartReport.of(part, self._depth)):
            super().run(part, values)

    def stage(self, rest: Waiting[_P], values: Values) -> _P:
        """The next stage of a graph, and report it."""
        with self._timed((self._depth, rest.reason), PartReport("later nodes", f"made for {rest.reason}", self._depth)):
            return super().stage(rest, values)

    @contextmanager
    def _timed(self, key: object, new: PartReport) -> Generator[None]:
        """Count a run, and add its time, in the report of a key; the new one if there is none."""
        report = self.reports.setdefault(key, new)
        self._depth += 1
        start = perf_counter()
        try:
            yield
        finally:
            self._depth -= 1
            report.runs += 1
            report.seconds += perf_counter() - start
