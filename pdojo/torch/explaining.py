"""Explanations of models: kernels, PyTorch's calls, graph breaks, and the time of each part."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from io import StringIO
from statistics import median
from time import perf_counter
from typing import Any

import torch
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text
from torch._dynamo.utils import graph_break_reasons
from torch.fx import GraphModule

from pdojo.dialect.notation import print_notation
from pdojo.dialect.ops import KernelOp
from pdojo.model.present import Present
from pdojo.torch.apart import KernelCall, given_memory, kernel_calls
from pdojo.torch.backend import CompiledGraph, compiled_graph
from pdojo.torch.element_types import HANDLES
from pdojo.torch.keys import Key, results_of
from pdojo.torch.options import Options
from pdojo.torch.program import Environment, Layout, Program, RegionStep, TorchStep
from pdojo.torch.skipping import Obstacle, at_other_places, skipped_functions
from pdojo.torch.symbols import is_example

_ROUNDS = 5
"""Number of calls, of which the median time is reported."""
_WIDTH = 140
"""Width of tables in text."""


@dataclass(frozen=True)
class KernelPart:
    """A call of a kernel."""

    name: str
    operators: tuple[str, ...]
    """The calls of ATen that it computes, in their order."""
    inputs: tuple[str, ...]
    """The tensors that it reads, as `f32[4, 8]`."""
    outputs: tuple[str, ...]
    """The tensors that it writes."""
    seconds: float
    """The median time of a call."""
    kernel: KernelOp
    """The kernel before any moves."""

    @property
    def notation(self) -> str:
        """The kernel in the notation, before any moves."""
        return print_notation(self.kernel)


@dataclass(frozen=True)
class TorchPart:
    """A call that PyTorch runs."""

    operator: str
    reason: str
    """Why no kernel was made; empty for views."""
    outputs: tuple[str, ...]
    seconds: float
    """The median time of a call."""


@dataclass(frozen=True)
class GraphPart:
    """A graph that Dynamo captured."""

    parts: tuple[KernelPart | TorchPart, ...]
    """Kernels and PyTorch's calls, in the order of execution."""
    seconds: float
    """The median time of a call of the whole graph."""
    eager: float = 0.0
    """The median time in which PyTorch runs the graph, one operator after the other."""
    closed: str = ""
    """The calls for which a graph with symbols has programs for single combinations of shapes, with reasons."""

    @property
    def between(self) -> float:
        """The seconds that no part accounts for."""
        return max(0.0, self.seconds - sum(part.seconds for part in self.parts))


@dataclass(frozen=True)
class Explanation:
    """The result of `explain`; `print` shows tables."""

    graphs: tuple[GraphPart, ...]
    breaks: tuple[str, ...]
    """The reasons for which Dynamo ended graphs, with places in the program."""
    skipped: tuple[str, ...] = ()
    """The functions of which Dynamo compiles nothing."""

    @property
    def kernels(self) -> tuple[KernelPart, ...]:
        """All calls of kernels."""
        return tuple(part for graph in self.graphs for part in graph.parts if isinstance(part, KernelPart))

    @property
    def fallbacks(self) -> tuple[TorchPart, ...]:
        """All calls that PyTorch runs because no kernel was made."""
        parts = (part for graph in self.graphs for part in graph.parts)
        return tuple(part for part in parts if isinstance(part, TorchPart) and part.reason)

    @property
    def seconds(self) -> float:
        """The time of all graphs."""
        return sum(graph.seconds for graph in self.graphs)

    @property
    def eager(self) -> float:
        """The time in which PyTorch runs all graphs, one operator after the other."""
        return sum(graph.eager for graph in self.graphs)

    @property
    def summary(self) -> str:
        """The shares of operators and of time in kernels, and PyTorch's time for the same graphs."""
        inside = sum(len(part.operators) for part in self.kernels)
        whole = sum(max(graph.seconds, sum(part.seconds for part in graph.parts)) for graph in self.graphs)
        share = sum(part.seconds for part in self.kernels) / whole if whole else 0.0
        return (
            f"kernels: {inside} of {_counted(inside + len(self.fallbacks), 'operator')}, {share:.0%} of the time; "
            f"{self.seconds * 1e3:.3g} ms, PyTorch one by one {self.eager * 1e3:.3g} ms"
        )

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for number, graph in enumerate(self.graphs):
            yield _table(number, graph)
            if graph.closed:
                yield Text(f"programs for single combinations of shapes: {graph.closed}")
        if not self.graphs:
            yield Text("Dynamo captured no graph: PyTorch runs all of it")
        for each in self.breaks:
            yield Text(f"graph break: {each}")
        for each in self.skipped:
            yield Text(f"skipped function, which PyTorch runs: {each}")
        if self.graphs:
            yield Text(self.summary)

    def __str__(self) -> str:
        console = Console(width=_WIDTH, file=StringIO())
        with console.capture() as captured:
            console.print(self)
        return captured.get()

    def __repr__(self) -> str:
        counts = ", ".join(
            _counted(len(rows), name)
            for rows, name in ((self.kernels, "kernel"), (self.fallbacks, "PyTorch call"), (self.breaks, "graph break"))
        )
        skipped = f", {_counted(len(self.skipped), 'skipped function')}" if self.skipped else ""
        return f"<Explanation of {_counted(len(self.graphs), 'graph')}: {counts}{skipped}>"


def _counted(number: int, name: str) -> str:
    return f"{number} {name}{'s' * (number != 1)}"


def _table(number: int, graph: GraphPart) -> Table:
    kernels = sum(isinstance(part, KernelPart) for part in graph.parts)
    table = Table(title=f"graph {number}: {kernels} kernels, {graph.seconds * 1e3:.3g} ms", title_justify="left")
    table.add_column("kernel")
    table.add_column("operators of ATen", overflow="fold")
    table.add_column("reads")
    table.add_column("writes")
    table.add_column("ms", justify="right")
    for part in graph.parts:
        if isinstance(part, KernelPart):
            cells = [part.name, ", ".join(part.operators), ", ".join(part.inputs)]
        else:
            cells = ["(PyTorch)", part.operator, part.reason]
        table.add_row(*map(Text, (*cells, ", ".join(part.outputs), f"{part.seconds * 1e3:.3g}")))
    table.add_section()
    table.add_row("", "between them", "", "", f"{graph.between * 1e3:.3g}")
    return table


def explain(
    module_or_function: Callable[..., Any], *example_inputs: Any, options: Mapping[str, Any] | None = None
) -> Explanation:
    """Explain the result of `torch.compile(backend="pdojo")` for a module or a function and these inputs.

    It compiles and calls the module with the example inputs, and times each part: the median of some calls, in seconds.
    Gradients are computed as the context says: in `torch.no_grad()` the graphs are for inference; otherwise they are
    for the forward pass of training.

    Raises UsageError for unknown options, and whatever the module raises.
    """
    chosen = Options.of(options)
    graphs: list[RecordedGraph] = []

    def record(graph: GraphModule, options: Options, static: Sequence[int]) -> CompiledGraph:
        graphs.append(RecordedGraph(graph, options, static))
        return graphs[-1]

    def backend(graph: GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        return compiled_graph(graph, inputs, chosen, record)

    with torch.random.fork_rng(devices=[]):
        compiled: Any = torch.compile(_fresh(module_or_function), backend=backend)
        known = len(graph_break_reasons)
        with skipped_functions() as skipped:
            compiled(*example_inputs)
        breaks = [Obstacle.of(str(each.reason), each.user_stack) for each in graph_break_reasons[known:]]
        return Explanation(
            tuple(_graph_part(graph) for graph in graphs),
            tuple(map(str, at_other_places(breaks, skipped))),
            tuple(map(str, skipped)),
        )


def _fresh(called: Callable[..., Any]) -> Callable[..., Any]:
    """A function that Dynamo has not compiled, so that its limits of recompilation are not used up."""

    def call(*arguments: Any) -> Any:
        return called(*arguments)

    call.__code__ = call.__code__.replace(co_name="explained")
    return call


class RecordedGraph(CompiledGraph):
    """A compiled graph that keeps the arguments of its last call."""

    arguments: tuple[Any, ...] = ()

    def __call__(self, arguments: list[Any]) -> list[Any]:
        """The results of the graph."""
        self.arguments = tuple(arguments)
        return super().__call__(arguments)

    def wait(self) -> None:
        """Wait for the device of the kernels."""
        if self.place is not None:
            self.place.wait()


def _graph_part(graph: RecordedGraph) -> GraphPart:
    program = next((each for each in graph.programs.values() if each is not None), None)
    if program is None:
        calls = [node for node in graph.module.graph.nodes if node.op == "call_function"]
        parts = tuple(TorchPart(str(node.target), "pdojo failed", (), 0.0) for node in calls)
        return GraphPart(parts, 0.0, _eager(graph))
    return replace(_Profile(program, graph.arguments, graph.wait).part(), eager=_eager(graph), closed=graph.closed)


def _eager(graph: RecordedGraph) -> float:
    """The median time in which PyTorch runs a graph."""
    with torch.no_grad():
        return median(_timed(lambda: graph.module(*graph.arguments), graph.wait) for _ in range(_ROUNDS))


def _timed(call: Callable[[], object], wait: Callable[[], None]) -> float:
    """The seconds of a call, until the device has done its work."""
    wait()
    start = perf_counter()
    call()
    wait()
    return perf_counter() - start


@dataclass
class _Profile:
    """The times of a program's parts."""

    program: Program
    arguments: Sequence[Any]
    wait: Callable[[], None]
    calls: dict[RegionStep, list[KernelCall]] = field(default_factory=dict[RegionStep, "list[KernelCall]"])
    times: dict[object, list[float]] = field(default_factory=dict[object, "list[float]"])

    def part(self) -> GraphPart:
        """The program with the times of some calls."""
        with torch.no_grad():
            whole = [_timed(lambda: self.program(list(self.arguments)), self.wait) for _ in range(_ROUNDS)]
            for _ in range(_ROUNDS):
                values = self.program.environment(self.arguments)
                for step in self.program.plain_steps:
                    self._run(step, values)
        parts: list[KernelPart | TorchPart] = []
        reasons = {fallback.node: fallback.reason for fallback in self.program.plan.fallbacks}
        for step in self.program.plain_steps:
            if isinstance(step, RegionStep):
                parts += [self._kernel(call) for call in self.calls[step]]
            else:
                operator = str(step.node.target)
                is_late = self.program.plan.is_made_late(step.node)
                reason = reasons.get(step.node, "" if is_late else "pdojo failed")
                seconds = median(self.times[step])
                parts.append(
                    TorchPart(
                        operator,
                        reason.removeprefix(f"{operator}: "),
                        _torch_results(step, self.program.plan.present),
                        seconds,
                    )
                )
        return GraphPart(tuple(parts), median(whole))

    def _run(self, step: RegionStep | TorchStep, values: Environment) -> None:
        if isinstance(step, TorchStep):
            self.times.setdefault(step, []).append(_timed(lambda: step(values), self.wait))
            return
        memory = given_memory(step, values)
        if step not in self.calls:
            self.calls[step] = kernel_calls(step)
        for call in self.calls[step]:
            self.times.setdefault(id(call), []).append(_timed(call.bind(memory), self.wait))
        step(values)

    def _kernel(self, call: KernelCall) -> KernelPart:
        return KernelPart(
            call.name,
            tuple(str(node.target) for node in call.nodes(self.program.plan)),
            tuple([_shown(key, call.present) for key in call.inputs]),
            tuple([_shown(key, call.present) for key in call.outputs]),
            median(self.times[id(call)]),
            call.step.kernel,
        )


def _torch_results(step: TorchStep, present: Present) -> tuple[str, ...]:
    results = results_of(step.node.meta.get("val"))
    return tuple(_shown((step.node, n), present) for n, each in enumerate(results) if is_example(each))


def _shown(key: Key, present: Present) -> str:
    layout = Layout.of(key).at(present)
    name = HANDLES.get(layout.dtype) or str(layout.dtype).removeprefix("torch.")
    return f"{name}{list(layout.shape)}"
