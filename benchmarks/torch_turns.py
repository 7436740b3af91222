"""Functions of PyTorch with the backend `pdojo` beside PyTorch itself (eager) and `torch.compile` (Inductor).

Each case runs in a process of its own, on PyTorch's number of threads, which is ours too. All implementations are
called in turns with the same arguments, without gradients: in each round, each one is called once to warm up and then
until 20 ms are over. A ratio is the median over the rounds of the other's time divided by ours. Results are compared
with a run in float64: an error counts as PyTorch's own if it is at most twice that of the eager run, or 32 units in
the last place of the largest element.

Compilation is timed in processes with empty caches on disk (`first`) and again with filled ones (`second`).
"""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# Functions of PyTorch take and return anything.

# PyTorch need not be installed, and its functions take anything.
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import copy
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

import torch
from pdojo_tools.command import Arguments, run_tool
from pdojo_tools.outputs import write_output
from torch.fx import GraphModule
from torch.utils._pytree import tree_leaves, tree_map

from benchmarks.origin import JSON, commit
from pdojo.backends.measure.environment import environment
from pdojo.errors import UsageError
from pdojo.torch.backend import CompiledGraph, compiled_graph
from pdojo.torch.options import Options

OURS, EAGER, INDUCTOR, FREEZING = "pdojo", "eager", "inductor", "inductor, freezing"
ROUNDS, SECONDS = 9, 0.02
"""Rounds of a measurement, and the least time of one implementation in a round."""
LEAST = 32 * 2**-23
"""The error, relative to the largest element, that is right in any case: sums of a thousand terms in another order."""
LIMIT = 560
"""Most seconds of a process."""

Function: TypeAlias = Callable[..., Any]


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


Cases: TypeAlias = Mapping[str, Callable[[], Case]]


def measure(case: Case, implementations: Sequence[str], rounds: int = ROUNDS) -> JSON:
    """The errors, the compilation times and the samples of a case, in seconds."""
    with torch.no_grad():
        wanted = _numbers(case.doubled())
        scale = max((float(each.abs().max()) for each in wanted if each.numel()), default=0.0)
        made: list[CompiledGraph] = []
        functions: dict[str, Function] = {}
        found: JSON = {"scale": scale, "compiled": {}, "errors": {}, "failures": {}}
        for name in implementations:
            start = time.perf_counter()
            torch.compiler.reset()
            function = _compiled(name, case.function, made)
            try:
                results = _numbers(Case(function, case.arguments))
            except Exception as error:  # noqa: BLE001  # a compiler's failure is a result
                found["failures"][name] = f"{type(error).__name__}: {error}"[:500]
                continue
            found["compiled"][name] = time.perf_counter() - start
            found["errors"][name] = error_of(results, wanted)
            functions[name] = function
        if OURS in functions:
            found |= _described(made)
        found["samples"] = _samples(functions, case.arguments, rounds)
    return found


def is_correct(found: JSON) -> bool:
    """Whether our error is no larger than PyTorch's, as the module's docstring says."""
    if OURS not in found["errors"]:
        return False
    return found["errors"][OURS] <= max(2 * found["errors"].get(EAGER, 0.0), LEAST * found["scale"])


def ratio(found: JSON, other: str) -> float | None:
    """Our speed-up over another implementation; None if one has no samples."""
    samples = found["samples"]
    if not samples.get(OURS) or not samples.get(other):
        return None
    return statistics.median(theirs / ours for ours, theirs in zip(samples[OURS], samples[other], strict=True))


def _compiled(name: str, function: Function, made: list[CompiledGraph]) -> Function:
    match name:
        case "eager":
            return function
        case "pdojo":

            def make(graph: GraphModule, options: Options, static: Sequence[int]) -> CompiledGraph:
                made.append(CompiledGraph(graph, options, static))
                return made[-1]

            options = Options()
            return torch.compile(
                function, backend=lambda graph, inputs: compiled_graph(graph, inputs, options, make), dynamic=False
            )
        case "inductor":
            return torch.compile(function, dynamic=False)
        case "inductor, freezing":
            return torch.compile(function, dynamic=False, options={"freezing": True})
        case _:
            raise UsageError(f"no implementation is called {name}")


def _described(made: Sequence[CompiledGraph]) -> JSON:
    """The kernels and fallbacks that our backend made of a function."""
    programs = [each for graph in made for each in graph.programs.values() if each is not None]
    models = [region.model for program in programs for region in program.regions.values()]
    return {
        "graphs": len(made),
        "calls": sum(len(model.steps) for model in models),
        "kernels": sum(len(model.kernels) for model in models),
        "intermediates": sum(model.memory.bytes for model in models),
        "fallbacks": sorted(
            {f"{each.node.target}: {each.reason}" for program in programs for each in program.plan.fallbacks}
        ),
    }


def _samples(functions: Mapping[str, Function], arguments: Sequence[Any], rounds: int) -> dict[str, list[float]]:
    """Seconds per call, by implementation, one sample for each round."""
    samples: dict[str, list[float]] = {name: [] for name in functions}
    names = list(functions)
    for number in range(rounds):
        for name in names[number % len(names) :] + names[: number % len(names)]:
            samples[name].append(_sample(functions[name], arguments))
    return samples


def _sample(function: Function, arguments: Sequence[Any]) -> float:
    function(*arguments)
    calls, start = 0, time.perf_counter()
    while (now := time.perf_counter()) < start + SECONDS or not calls:
        function(*arguments)
        calls += 1
    return (now - start) / calls if calls else now - start


def _numbers(case: Case) -> list[torch.Tensor]:
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


def run(
    package: str, names: Sequence[str], implementations: Sequence[str], stored: JSON, path: Path | None, *, twice: bool
) -> None:
    """Measure cases without stored results, each in a process of its own; the file is written after each.

    `twice` compiles again in further processes, with the caches that the first ones filled.
    """
    for name in names:
        if name in stored["cases"]:
            continue
        with tempfile.TemporaryDirectory() as caches:
            found = _in_process(package, name, implementations, caches, ROUNDS)
            if twice and "failure" not in found:
                again = _in_process(package, name, implementations, caches, 0)
                found["compiled_again"] = again.get("compiled", {})
        stored["cases"][name] = found
        if path is not None:
            write_output(json.dumps(stored, indent=1), str(path))
        sys.stdout.write(f"{line_of(name, found)}\n")
        sys.stdout.flush()


def line_of(name: str, found: JSON) -> str:
    """The result of a case on one line."""
    if "failure" in found:
        return f"{name}: {found['failure']}"
    ours = statistics.median(found["samples"].get(OURS) or [float("nan")])
    parts = [f"{ours * 1e3:8.3f} ms"]
    parts += [
        f"{other} {value:.2f}" for other in (EAGER, INDUCTOR, FREEZING) if (value := ratio(found, other)) is not None
    ]
    if not is_correct(found):
        parts.append(f"WRONG {found['errors'].get(OURS)} (eager {found['errors'].get(EAGER)})")
    parts += [f"{each} FAILED: {reason}" for each, reason in found["failures"].items()]
    if found.get("fallbacks"):
        parts.append(f"{len(found['fallbacks'])} kinds of fallbacks")
    return f"{', '.join(parts)}  {name}"


def summary(stored: JSON) -> str:
    """Geometric means and least ratios."""
    lines: list[str] = []
    for other in (EAGER, INDUCTOR, FREEZING):
        ratios = {
            name: value
            for name, found in stored["cases"].items()
            if "failure" not in found and (value := ratio(found, other)) is not None
        }
        if ratios:
            least = min(ratios, key=lambda name: ratios[name])
            mean = statistics.geometric_mean(ratios.values())
            lines.append(
                f"{mean:.3f} times as fast as {other} ({len(ratios)} cases), least {ratios[least]:.2f} ({least})"
            )
    wrong = [name for name, found in stored["cases"].items() if "failure" in found or not is_correct(found)]
    lines.append(f"without a right result: {', '.join(wrong) or 'none'}")
    return "".join(f"{line}\n" for line in lines)


def _stored(path: Path | None) -> JSON:
    if path is not None and path.exists():
        return json.loads(path.read_text(encoding="utf-8"))
    return {
        "settings": {
            "started": datetime.now(UTC).isoformat(timespec="seconds"),
            "environment": environment() | {"torch": torch.__version__, "threads": torch.get_num_threads()},
            "commit": commit(),
        },
        "cases": {},
    }


def _in_process(package: str, name: str, implementations: Sequence[str], caches: str, rounds: int) -> JSON:
    asked = json.dumps([package, name, list(implementations), rounds])
    places = {"TORCHINDUCTOR_CACHE_DIR": f"{caches}/inductor", "XDG_CACHE_HOME": f"{caches}/pdojo"}
    try:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.torch_turns", asked],
            env={**os.environ, **places},
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"failure": f"no result within {LIMIT} seconds"}
    if done.returncode:
        return {"failure": done.stderr.strip()[-2000:]}
    return json.loads(done.stdout.strip().splitlines()[-1])


def main(package: str, cases: Cases, implementations: Sequence[str], *, twice: bool = False) -> int:
    """The command line of a benchmark with these cases: `[WORDS] [-o FILE] [--show]`."""

    def body(args: Sequence[str] | None) -> None:
        parser = Arguments(prog=f"python -m {package}", description=import_module(package).__doc__)
        parser.add_argument("words", nargs="*", help="words, of which a case's name contains one (default: all cases)")
        parser.add_argument("-o", "--output", type=Path, help="results; cases that it has are not measured again")
        parser.add_argument("--show", action="store_true", help="show the stored results and measure nothing")
        given = parser.parse_args(args)
        if given.show and given.output is None:
            raise UsageError("--show needs the file with results, -o FILE")
        stored = _stored(given.output)
        if given.show:
            sys.stdout.writelines(f"{line_of(name, found)}\n" for name, found in stored["cases"].items())
        else:
            names = [name for name in cases if not given.words or any(word in name for word in given.words)]
            run(package, names, implementations, stored, given.output, twice=twice)
        sys.stdout.write(summary(stored))

    return run_tool(body, None)


if __name__ == "__main__":
    _package, _name, _implementations, _rounds = json.loads(sys.argv[1])
    _cases: Cases = import_module(_package).CASES
    sys.stdout.write(f"{json.dumps(measure(_cases[_name](), _implementations, _rounds))}\n")
