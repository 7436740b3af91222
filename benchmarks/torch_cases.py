"""Functions of PyTorch with the backend `pdojo` beside PyTorch itself (eager) and `torch.compile` (Inductor).

Implementations are called in turns, without gradients: in each round, each one is called once to warm up and then until
20 ms are over. Results are compared with a run in float64: ours is right if its error is at most twice that of the
eager run, or 32 units in the last place of the largest element.
"""

# PyTorch need not be installed, and its functions take anything.
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch.fx import GraphModule
from torch.utils._pytree import tree_leaves, tree_map

from benchmarks.origin import JSON
from benchmarks.records import OURS
from pdojo.backends.measure import CompileError, Ok, Outcome, WrongResult
from pdojo.backends.measure.outcome import Check
from pdojo.torch.backend import CompiledGraph, compiled_graph
from pdojo.torch.options import Options

EAGER, INDUCTOR, FREEZING = ("torch", "eager"), ("torch.compile", "inductor"), ("torch.compile", "inductor, freezing")
ROUNDS, SECONDS = 9, 0.02
"""Rounds of a measurement, and the least time of one implementation in a round."""
LEAST = 32 * 2**-23
"""The error, relative to the largest element, that is right in any case: sums of a thousand terms in another order."""

Function: TypeAlias = Callable[..., Any]
Implementation: TypeAlias = tuple[str, str]
"""A library and a variant, as in rows of results."""


@dataclass(frozen=True)
class Case:
    """A function or a module, and its arguments."""

    function: Function
    arguments: tuple[Any, ...]

    def doubled(self) -> Case:
        """The case in float64."""
        function = self.function
        if isinstance(function, torch.nn.Module):
            function = copy.deepcopy(function).double()
        return Case(function, tree_map(_double, self.arguments))


def chosen(cases: Mapping[str, Callable[[], object]], words: Sequence[str]) -> list[str]:
    """The cases that the words name, or whose names contain one of the words; all without words."""
    return [
        name
        for name in cases
        if not words or any(word == name or (word not in cases and word in name) for word in words)
    ]


def measure(case: Case, others: Sequence[Implementation], rounds: int = ROUNDS) -> JSON:
    """Rows of our backend and of the others, and notes on compilations, kernels and fallbacks.

    Without rounds, nothing is timed: there is one sample, the first call.
    """
    made: list[CompiledGraph] = []
    functions: dict[Implementation, tuple[Function, float, float]] = {}
    outcomes: dict[Implementation, Outcome] = {}
    with torch.no_grad():
        wanted = numbers(case.doubled())
        scale = max((float(each.abs().max()) for each in wanted if each.numel()), default=0.0)
        for name in ((OURS, ""), *others):
            start = time.perf_counter()
            function = compiled(name, case.function, made, dynamic=False)
            try:
                results = numbers(Case(function, case.arguments))
            except Exception as error:  # noqa: BLE001  # a compiler's failure is a result
                outcomes[name] = CompileError(f"{type(error).__name__}: {error}"[:500])
                continue
            functions[name] = function, time.perf_counter() - start, error_of(results, wanted)
        samples = _samples({name: each[0] for name, each in functions.items()}, case.arguments, rounds)
    eager = functions[EAGER][2] if EAGER in functions else 0.0
    for name, (_, seconds, error) in functions.items():
        check = Check("float64 PyTorch", 0.0, error, error / scale if scale else error)
        if name == (OURS, "") and not error <= max(2 * eager, LEAST * scale):
            outcomes[name] = WrongResult(f"the largest error is {error:.3g}, that of eager PyTorch {eager:.3g}")
        else:
            times = samples[name] or [seconds]
            outcomes[name] = Ok(tuple(times), 1, 1, None, seconds, check, turns=tuple(range(len(times))))
    rows = [
        {"library": name[0], "variant": name[1], "outcome": outcomes[name].to_json()} for name in ((OURS, ""), *others)
    ]
    times = ", ".join(f"{' '.join(name).strip()} {each[1]:.2f} s" for name, each in functions.items())
    return {"rows": rows, "notes": [f"compiled: {times}", *described(made)]}


def compiled(name: Implementation, function: Function, made: list[CompiledGraph], *, dynamic: bool) -> Function:
    """A function as an implementation compiles it, for all sizes or for each; graphs of ours are added to `made`."""
    match name:
        case ("torch", _):
            return function
        case ("torch.compile", variant):
            return torch.compile(
                function, dynamic=dynamic, options={"freezing": True} if "freezing" in variant else None
            )
        case _:

            def make(graph: GraphModule, options: Options, static: Sequence[int]) -> CompiledGraph:
                made.append(CompiledGraph(graph, options, static))
                return made[-1]

            options = Options()
            return torch.compile(
                function, backend=lambda graph, inputs: compiled_graph(graph, inputs, options, make), dynamic=dynamic
            )


def described(made: Sequence[CompiledGraph]) -> list[str]:
    """The kernels and fallbacks that our backend made of a function."""
    programs = [each for graph in made for each in graph.programs.values() if each is not None]
    models = [region.model for program in programs for region in program.regions.values()]
    calls, kernels = sum(len(model.steps) for model in models), sum(len(model.kernels) for model in models)
    size = sum(model.memory.bytes for model in models)
    notes = [f"{len(made)} graphs, {calls} calls of {kernels} kernels, {size / 1e6:.3g} MB of intermediates"]
    fallbacks = {f"{each.node.target}: {each.reason}" for program in programs for each in program.plan.fallbacks}
    return [*notes, *(f"fallback: {each}" for each in sorted(fallbacks))]


def _samples(
    functions: Mapping[Implementation, Function], arguments: Sequence[Any], rounds: int
) -> dict[Implementation, list[float]]:
    """Seconds per call, by implementation, one sample for each round."""
    samples: dict[Implementation, list[float]] = {name: [] for name in functions}
    names = list(functions)
    for number in range(rounds):
        for name in names[number % len(names) :] + names[: number % len(names)]:
            samples[name].append(sample(functions[name], arguments))
    return samples


def sample(function: Function, arguments: Sequence[Any]) -> float:
    """Seconds per call, after one that is not timed."""
    function(*arguments)
    calls, start = 0, time.perf_counter()
    while (now := time.perf_counter()) < start + SECONDS or not calls:
        function(*arguments)
        calls += 1
    return (now - start) / calls if calls else now - start


def numbers(case: Case) -> list[torch.Tensor]:
    """The results that are floating-point numbers."""
    return [
        each.detach().double()
        for each in tree_leaves(case.function(*case.arguments))
        if isinstance(each, torch.Tensor) and each.is_floating_point()
    ]


def error_of(results: Sequence[torch.Tensor], wanted: Sequence[torch.Tensor]) -> float:
    """The largest difference; infinite if one is no number where the other is one."""
    largest = 0.0
    for found, right in zip(results, wanted, strict=True):
        known = right.isfinite()
        if not torch.equal(known, found.isfinite()) or not torch.equal(
            found[~known].nan_to_num(), right[~known].nan_to_num()
        ):
            return float("inf")
        largest = max(largest, float((found - right)[known].abs().max()) if known.any() else 0.0)
    return largest


def _double(value: Any) -> Any:
    return value.double() if isinstance(value, torch.Tensor) and value.is_floating_point() else value
