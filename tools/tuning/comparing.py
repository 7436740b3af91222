"""`--compare`: convergence of searches (the paper's Figure 13) over several seeds, on shared measurements."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path

from pdojo_tools.outputs import check_writable, write_json
from pdojo_tools.tuning.arguments import SEEDS
from pdojo_tools.tuning.choices import check_target, neighbourhoods_for, options_for
from pdojo_tools.tuning.comparing_plot import MISSING, write_plots
from pdojo_tools.tuning.curves import JSON, NEAR, Curve, Key, ReferenceCosts, SearchComparison, SearchStatistics
from pdojo_tools.tuning.live import Display
from pdojo_tools.tuning.task import task_of
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from pdojo.backends.common.gc_pause import collect_now
from pdojo.budget import Budget
from pdojo.dialect.alignment import ALIGNMENT
from pdojo.dialect.machines.machine_file import machine_to_json
from pdojo.errors import MeasurementError, UsageError
from pdojo.names import strategy_names
from pdojo.passes.task import TuningTask
from pdojo.search.contract.evaluation import Evaluator
from pdojo.search.contract.progress import Ending
from pdojo.search.database import Database, Problem
from pdojo.search.database.schema import canonical, digest
from pdojo.search.engine.search import search
from pdojo.search.evaluators.named import evaluator_for, make_evaluator, version_of
from pdojo.search.neighbourhoods import loaded_proposals, neighbourhood
from pdojo.search.strategies import strategy
from pdojo.search.tuning.run import Baselines, baselines_of

OUTPUT = "pdojo-compare.json"
SHORT = 12
"""Number of stored digits of a hash."""


def compare(console: Console, given: argparse.Namespace) -> None:
    """Run the missing searches, then print a table and draw the plot."""
    tasks = [task_of(title, given) for title in given.programs]
    for task in tasks:
        check_target(given, task.machine)
    path = _output(given.output)
    strategies = given.search or _available(console)
    settings = _settings(given, tasks, strategies)
    comparison = SearchComparison.open(path, settings)
    with Database(given.database) as database:
        work = _Work(console, given, comparison, path, database, strategies)
        try:
            for task in tasks:
                work.run(task)
        except KeyboardInterrupt:
            _say(console, f"what is finished is in {path}; the same command goes on")
            raise
    comparison.save(path)
    print_standings(console, comparison)
    _say(console, f"curves in {path}")
    drawn = write_plots(comparison, path)
    _say(console, f"plots in {', '.join(map(str, drawn))}" if drawn else MISSING)
    if given.json:
        write_json(comparison.to_json())
    failed = [task.title for task in tasks if comparison.best_known(task.title) == inf]
    if failed:
        raise MeasurementError(f"no program of {', '.join(failed)} could be run")


def _output(given: str | None) -> Path:
    path = Path(given or OUTPUT)
    if path.suffix != ".json":
        raise UsageError(f"curves are JSON; name the file '{path.with_suffix('.json')}', not '{path}'")
    check_writable(str(path))
    return path


def _available(console: Console) -> list[str]:
    """The strategies whose packages are installed."""
    found: list[str] = []
    for name in strategy_names():
        try:
            strategy(name)
        except UsageError as error:
            _say(console, f"{name} is left out: {error}")
        else:
            found.append(name)
    return found


def _settings(given: argparse.Namespace, tasks: Sequence[TuningTask], strategies: Sequence[str]) -> JSON:
    """Everything that the curves depend on."""
    evaluators = {evaluator_for(task.machine, given.evaluator): task.machine for task in tasks}
    near = dict.fromkeys(name for each in tasks for name in neighbourhoods_for(given, each.machine))
    model = loaded_proposals(given.proposals)
    learned = "" if model is None else f" by {model.identity}"
    settings: JSON = {
        "kernels": [task.title for task in tasks],
        # A file may change under the same name.
        "programs": [task.start("plain").fingerprint[:SHORT] for task in tasks],
        "passed": [task.start("pass").fingerprint[:SHORT] for task in tasks],
        "machine": [task.machine.name for task in tasks],
        "described": [digest(canonical(machine_to_json(task.machine)))[:SHORT] for task in tasks],
        "threads": [task.machine.threads for task in tasks],
        "align": given.align or ALIGNMENT,
        "pass": given.expert,
        "strategies": list(strategies),
        "neighbourhoods": [f"{name}{learned}" for name in near],
        "first_seed": given.seed or 0,
        "seeds": given.seeds or SEEDS,
        "budget": given.budget.evaluations,
        "evaluator": "+".join(sorted(evaluators)),
        "version": [
            version_of(name, machine) for name, machine in sorted(evaluators.items(), key=lambda pair: pair[0])
        ],
        "start": given.start,
    }
    return settings


@dataclass(frozen=True)
class _Work:
    """The searches of a comparison."""

    console: Console
    given: argparse.Namespace
    comparison: SearchComparison
    path: Path
    database: Database
    strategies: Sequence[str]

    def run(self, task: TuningTask) -> None:
        """Run the missing searches of a kernel; they share the evaluator and the memory."""
        keys = self._keys(task)
        if all(key in self.comparison.curves for key in keys):
            return
        seed = self.given.seed or 0
        name = evaluator_for(task.machine, self.given.evaluator)
        evaluator = make_evaluator(name, task.machine, task.plain, seed)
        try:
            memory = self.database.memory(Problem.of(task.start("plain"), task.workload), evaluator)
            baselines = baselines_of(task, self.given.start, evaluator, memory, in_turns=True)
            root = _root(baselines)
            unit = "times the start" if baselines.start else evaluator.unit
            self.comparison.references[task.title] = ReferenceCosts(
                unit, baselines.plain / root, baselines.passed / root
            )
            for number, key in enumerate(keys):
                if key not in self.comparison.curves:
                    self._search(task, evaluator, baselines, key, f"{number + 1} of {len(keys)}")
                    collect_now()
        finally:
            evaluator.close()

    def _keys(self, task: TuningTask) -> list[Key]:
        """All searches of a kernel, seed by seed, so that early results cover every kind."""
        first = self.given.seed or 0
        return [
            (task.title, chosen, near, seed)
            for seed in range(first, first + (self.given.seeds or SEEDS))
            for near in neighbourhoods_for(self.given, task.machine)
            for chosen in self.strategies
        ]

    def _search(self, task: TuningTask, evaluator: Evaluator, baselines: Baselines, key: Key, place: str) -> None:
        _, chosen, near, seed = key
        evaluations = self.given.budget.evaluations
        budget = Budget(evaluations)
        title = f"{place}: {task.title}, {chosen}, {near}, seed {seed}"
        with Display(self.console, title, budget, evaluator.unit, baselines) as display:
            result = search(
                task.start(self.given.start),
                evaluator,
                strategy(chosen, evaluations, options_for(self.given, chosen)),
                neighbourhood(near, self.given.proposals, evaluations),
                budget,
                seed,
                database=self.database,
                listener=display,
                workload=task.workload,
            )
        if result.ending is Ending.INTERRUPTED:
            raise KeyboardInterrupt
        self.comparison.curves[key] = Curve.of(key, result, evaluations, _root(baselines))
        self.comparison.save(self.path)


def _root(baselines: Baselines) -> float:
    """The unit of shown costs: the start's cost if programs are timed and the start ran, else 1."""
    root = {"plain": baselines.plain, "pass": baselines.passed}.get(baselines.start, 1.0)
    return root if root < inf else 1.0


def print_standings(console: Console, comparison: SearchComparison) -> None:
    """Print a table for each kernel, the fastest kinds first."""
    budget = comparison.settings["budget"]
    for kernel in comparison.settings["kernels"]:
        table = Table(title=escape(f"{kernel}, {budget} evaluations, {comparison.settings['seeds']} seeds"))
        table.add_column("strategy")
        table.add_column("neighbourhood")
        for heading in (f"evaluations to {NEAR:.0%}", "quartiles", "arrived", "final speed", "quartiles", "failed"):
            table.add_column(heading, justify="right")
        standings = [each for each in comparison.standings() if each.kernel == kernel]
        for each in sorted(standings, key=lambda each: (each.arrival.middle, -each.final.middle)):
            table.add_row(*_cells(each, budget))
        console.print(table)
    _say(console, "speeds are relative to the best program that any of the searches, or the pass, found")


def _cells(each: SearchStatistics, budget: int) -> list[str]:
    def count(value: float) -> str:
        return f"> {budget}" if value > budget else f"{value:.0f}"

    return [
        each.strategy,
        each.neighbourhood,
        count(each.arrival.middle),
        f"{count(each.arrival.low)} to {count(each.arrival.high)}",
        f"{each.arrived} of {each.searches}",
        f"{each.final.middle:.1%}",
        f"{each.final.low:.1%} to {each.final.high:.1%}",
        f"{each.failed:.1%}",
    ]


def _say(console: Console, text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)
