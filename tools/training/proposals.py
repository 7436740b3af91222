"""Self-play for proposal models: search, collect what the best traces teach, train, and search again."""

from __future__ import annotations

import argparse
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from math import inf, log
from pathlib import Path
from random import Random
from typing import Any

from pdojo_tools.outputs import write_json
from pdojo_tools.training.folder import Folder
from pdojo_tools.training.session import kernels_of
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from pdojo.budget import Budget
from pdojo.dialect.notation import parse_notation, print_notation
from pdojo.errors import UsageError
from pdojo.files import exists, replace_file
from pdojo.names import LEARNED, UNIFORM
from pdojo.passes.scheduled_kernel import assume_alignment
from pdojo.perfllm.proposals.ablation import ablated
from pdojo.perfllm.proposals.examples import examples_of
from pdojo.perfllm.proposals.kernels import random_texts
from pdojo.perfllm.proposals.learning import PartReport, train_model
from pdojo.perfllm.proposals.lessons import Lesson, add_lesson, read_lessons, write_lessons
from pdojo.perfllm.training.kernels import TrainingKernel
from pdojo.search.contract.evaluation import reason
from pdojo.search.contract.progress import Ending
from pdojo.search.contract.progress import Progress as SearchProgress
from pdojo.search.database import Database
from pdojo.search.engine.search import search
from pdojo.search.environment.reward_model import RewardModel
from pdojo.search.evaluators.named import make_evaluator
from pdojo.search.neighbourhoods import neighbourhood
from pdojo.search.proposals.questions import VERSION, Vocabulary
from pdojo.search.strategies import strategy
from pdojo.transforms.registry import transformation_names

STRATEGY = "evolve"
"""The strategy of the searches."""
SEEDS_OF_ROUND = 1000
"""Distance of the seeds of two rounds; fewer searches than this are made of a kernel in a round."""


def train_proposals(given: argparse.Namespace) -> None:
    """Train, or resume a training. Raises UsageError for mistakes in the command line."""
    console = Console(markup=False, stderr=given.json)
    folder = Folder(Path(given.output))
    database = given.database or folder.database
    kernels = [*kernels_of(given, database)]
    if not kernels:
        raise UsageError("name at least one kernel, which also says what machine and evaluator are meant")
    first = kernels[0]
    drawn = random_texts(first.machine, given.seed)
    kernels += [_random(first, *next(drawn)) for _ in range(given.random)]
    folder.begin(
        {
            "kernels": [kernel.title for kernel in kernels],
            "machine": first.machine.name,
            "evaluator": first.evaluator,
            "features": VERSION,
            **{name: getattr(given, name) for name in ("searches", "evaluations", "design", "dtype", "seed")},
        }
    )
    with Database(database) as opened:
        training = _Training(console, folder, kernels, opened, given)
        reports = training.run()
    console.print(_table(reports))
    console.print(f"proposals: {training.model}", highlight=False, soft_wrap=True)
    if given.json:
        facts = {"proposals": str(training.model), "lessons": len(training.lessons)}
        write_json({**facts, "parts": [asdict(report) for report in reports]})


def _random(like: TrainingKernel, title: str, text: str) -> TrainingKernel:
    """A random kernel, priced like another kernel."""
    plain = print_notation(assume_alignment(parse_notation(text)[0], None))
    return TrainingKernel(title, plain, like.machine, like.evaluator, None, like.database, like.seed)


@dataclass
class _Training:
    """The rounds of a training."""

    console: Console
    folder: Folder
    kernels: Sequence[TrainingKernel]
    database: Database
    given: argparse.Namespace

    def __post_init__(self) -> None:
        self._file = self.folder.path / "lessons.jsonl"
        self.lessons = read_lessons(self._file)
        # A line that was cut is written anew.
        write_lessons(self._file, self.lessons)

    @property
    def model(self) -> Path:
        """The latest model, for `--proposals learned:FILE`."""
        return self.folder.path / "proposals"

    def run(self) -> list[PartReport]:
        """All rounds: searches by the proposals of the round before, then a training."""
        reports: list[PartReport] = []
        for number in range(self.given.rounds):
            self._search(number)
            trained = self._of_round(number + 1)
            if not exists(trained) or number + 1 == self.given.rounds:
                reports = self._train(number)
        return reports

    def _of_round(self, number: int) -> Path:
        """The model that the searches of a round use; the first round has none."""
        return self.folder.path / f"proposals-{number}"

    def _search(self, number: int) -> None:
        """The searches of a round that have not taught yet."""
        proposals = UNIFORM if number == 0 else f"{LEARNED}{self._of_round(number)}"
        taught = {(lesson.kernel, lesson.source) for lesson in self.lessons}
        wanted = [(seed, kernel) for seed in range(self.given.searches) for kernel in self.kernels]
        with self._showing(f"round {number + 1} of {self.given.rounds}", len(wanted)) as (progress, task):
            for seed, kernel in wanted:
                source = f"round {number}, seed {seed}"
                if (kernel.title, source) not in taught:
                    whole = self.given.seed + number * SEEDS_OF_ROUND + seed

                    def tell(now: SearchProgress, title: str = f"{kernel.title}, seed {seed}") -> None:
                        best = now.root / now.best if now.best > 0 else inf
                        progress.update(task, what=f"{title}: {now.evaluations} programs, {best:.2f} times as fast")

                    lesson = self._lesson(kernel, source, proposals, whole, tell)
                    if lesson is not None:
                        self.lessons.append(lesson)
                        add_lesson(self._file, lesson)
                        if not self.console.is_terminal:
                            self.console.print(_line(lesson), highlight=False, soft_wrap=True)
                progress.advance(task)

    def _lesson(self, kernel: TrainingKernel, source: str, proposals: str, seed: int, tell: Any) -> Lesson | None:
        """The lesson of a search of a kernel; None if no program has a cost."""
        start, budget = kernel.game(), self.given.evaluations
        evaluator = make_evaluator(kernel.evaluator, kernel.machine, start.plain, kernel.seed)
        prices = RewardModel(start, evaluator, database=self.database, workload=kernel.workload)
        try:
            plain = prices.cost(start)
            if not plain.is_ok:
                self.console.print(f"{kernel.title} teaches nothing: its plain program has no cost ({reason(plain)})")
                return None
            result = search(
                start,
                evaluator,
                strategy(STRATEGY, budget),
                neighbourhood("mutate", proposals, budget),
                Budget(budget),
                seed,
                database=self.database,
                workload=kernel.workload,
                listener=tell,
            )
            if result.ending is Ending.INTERRUPTED:
                raise KeyboardInterrupt
            if result.best is None or result.best.cost <= 0:
                return None
            most = max(0.0, log(plain.cost / result.best.cost))
            found = ablated(start, result.best.moves, prices.cost, most)
        finally:
            prices.close()
        if found is None:
            return None
        moves, losses = tuple(map(str, found.moves)), tuple(found.losses)
        facts = kernel.title, source, kernel.text, kernel.machine.name, kernel.evaluator
        return Lesson(*facts, moves, losses, plain.cost, found.cost)

    def _train(self, number: int) -> list[PartReport]:
        """Train on the lessons of the rounds up to this one."""
        rounds = tuple(f"round {each}," for each in range(number + 1))
        own = [lesson for lesson in self.lessons if lesson.source.startswith(rounds)]
        known = Vocabulary(transformation_names())
        examples = examples_of(own, self.kernels[0].machine, known, Random(self.given.seed))
        facts = {
            "machine": self.kernels[0].machine.name,
            "evaluator": self.kernels[0].evaluator,
            "kernels": " ".join(sorted({lesson.kernel for lesson in own})),
            "lessons": str(len(own)),
        }
        data, reports = train_model(examples, known, self.given.design, self.given.seed, facts)
        for path in (self._of_round(number + 1), self.model):
            try:
                replace_file(path, data)
            except OSError as error:
                raise UsageError(f"cannot write '{path}': {error.strerror}") from None
        return reports

    @contextmanager
    def _showing(self, title: str, count: int) -> Generator[tuple[Progress, Any]]:
        columns = (TextColumn("{task.description}"), BarColumn(20), MofNCompleteColumn(), TimeElapsedColumn())
        shown = Progress(
            *columns,
            TextColumn("{task.fields[what]}"),
            console=self.console,
            disable=not self.console.is_terminal,
        )
        with shown:
            yield shown, shown.add_task(title, total=count, what="")


def _line(lesson: Lesson) -> str:
    gain = lesson.plain / lesson.cost
    return f"{lesson.source}: {lesson.kernel}: {len(lesson.moves)} moves, {gain:.2f} times as fast"


def _table(reports: Sequence[PartReport]) -> Table:
    """How well each part answers; gains in factors of probability over a uniform draw."""
    table = Table(title="the right answer is as many times as likely as in a uniform draw")
    for heading in ("question", "design", "examples", "network", "trees", "first choice right", "kernels"):
        table.add_column(heading)
    for each in reports:
        factors = [
            f"{2.718281828459045 ** each.gains[name]:.2f}" if name in each.gains else "-"
            for name in ("network", "trees")
        ]
        tested = "held out" if each.is_tested else "trained on"
        table.add_row(each.part, each.design, str(each.examples), *factors, f"{each.agrees:.0%}", tested)
    return table
