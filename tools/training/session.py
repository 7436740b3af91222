"""A training of an agent, from the command line to its files."""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any

from pdojo_tools.outputs import write_json, write_output
from pdojo_tools.programs import load_named, machine_for
from pdojo_tools.training.folder import Folder
from pdojo_tools.training.live import TrainingDisplay
from pdojo_tools.training.report import page
from rich.console import Console

from pdojo.dialect.notation import print_notation
from pdojo.errors import UsageError
from pdojo.passes.passes import run_pass
from pdojo.passes.scheduled_kernel import assume_alignment
from pdojo.perfllm.encoders import encoder
from pdojo.perfllm.policy import identity_of
from pdojo.perfllm.training.kernels import TrainingKernel
from pdojo.perfllm.training.players import Here, OnRay, Players, Processes
from pdojo.perfllm.training.trainer import EpisodeRow, Trainer
from pdojo.search.database import Database, Problem
from pdojo.search.evaluators.named import check_runs_here, evaluator_for, make_evaluator
from pdojo.transforms.game import Game
from pdojo.transforms.trace import Trace

SAVE_EVERY = 30.0
"""Seconds between two checkpoints."""


def train_agent(given: argparse.Namespace) -> None:
    """Train, or resume a training. Raises UsageError for mistakes in the command line."""
    console = Console(markup=False, stderr=given.json)
    folder = Folder(Path(given.output))
    kernels = kernels_of(given, None if given.ray else given.database or folder.database)
    shown = [demonstrations(kernel, given.demonstrations) for kernel in kernels]
    settings = given.agent
    trainer = Trainer(kernels, settings, given.seed, given.episodes, given.parallel, shown)
    facts: dict[str, Any] = {
        **settings.to_json(),
        "kernels": [kernel.title for kernel in kernels],
        "machine": kernels[0].machine.name,
        "evaluator": kernels[0].evaluator,
        "encoder": encoder(settings.encoder, kernels[0].machine).name,
        "policy": identity_of(settings.policy) if settings.policy else "",
        "screen": identity_of(settings.screen) if settings.screen else "",
        "demonstrations": list(given.demonstrations),
        **{name: getattr(given, name) for name in ("dtype", "episodes", "seed", "parallel")},
    }
    folder.begin(facts)
    saved = folder.checkpoint()
    if saved is not None:
        try:
            trainer.restore(saved)
        except UsageError as error:
            raise UsageError(folder.damaged("checkpoint", error)) from None
        console.print(f"going on after {trainer.done} of {trainer.episodes} episodes")
    rows = folder.rows(trainer.done)
    if given.ray:
        from pdojo.search.evaluators.cluster import Connection

        with Connection(given.ray) as connection:
            players = OnRay(connection, kernels, settings, given.seed, given.parallel)
            _train(console, given, trainer, players, folder, rows, facts)
    elif given.parallel > 1:
        players = Processes(kernels, settings, given.seed, given.parallel)
        _train(console, given, trainer, players, folder, rows, facts)
    else:
        _train(console, given, trainer, Here(kernels, settings, given.seed), folder, rows, facts)


def kernels_of(given: argparse.Namespace, database: str | None) -> list[TrainingKernel]:
    """The kernels of the command line. Raises PdojoError for a bad one, UsageError if machines differ."""
    found: list[TrainingKernel] = []
    for title in given.programs:
        named = load_named(title, dtype=given.dtype)
        machine = machine_for(named.kernel, given.machine, None, trust=given.trust_machine)
        evaluator = evaluator_for(machine, given.evaluator)
        check_runs_here(evaluator, machine)
        text = print_notation(assume_alignment(named.kernel, None))
        found.append(TrainingKernel(named.title, text, machine, evaluator, named.workload, database, given.seed))
    titles = [kernel.title for kernel in found]
    twice = next((title for title in titles if titles.count(title) > 1), None)
    if twice is not None:
        raise UsageError(f"kernel '{twice}' is given twice")
    if len({kernel.machine.name for kernel in found}) > 1:
        raise UsageError("an agent is trained for one machine: give --machine")
    return found


def demonstrations(kernel: TrainingKernel, sources: Sequence[str]) -> list[tuple[str, ...]]:
    """The demonstrated moves, located by identifier: of the expert pass, of the best program in the database."""
    found: list[tuple[str, ...]] = []
    for source in sources:
        trace = _of_pass(kernel) if source == "pass" else _of_database(kernel)
        if trace is not None:
            found.append(tuple(str(step.resolved) for step in trace.steps))
    return found


def _of_pass(kernel: TrainingKernel) -> Trace:
    game = kernel.game()
    run_pass("heuristic", game)
    return game.trace


def _of_database(kernel: TrainingKernel) -> Trace | None:
    if kernel.database is None:
        raise UsageError("--ray keeps no database: leave out 'database' of --demonstrations")
    start = kernel.game()
    evaluator = make_evaluator(kernel.evaluator, kernel.machine, start.plain, kernel.seed)
    try:
        with Database(kernel.database) as database:
            best = database.memory(Problem.of(start, kernel.workload), evaluator).best()
    finally:
        evaluator.close()
    return None if best is None else best.trace


def _train(
    console: Console,
    given: argparse.Namespace,
    trainer: Trainer,
    players: Players,
    folder: Folder,
    rows: list[EpisodeRow],
    facts: Mapping[str, Any],
) -> None:
    titles = [kernel.title for kernel in trainer.kernels]
    board = _Board(folder.path / "tensorboard", len(rows)) if given.tensorboard else None
    prices = trainer.kernels[0].prices()
    unit = prices.unit
    prices.close()
    saved_at = time.monotonic()

    def keep() -> None:
        policy_facts = {"kernels": " ".join(titles), "machine": facts["machine"], "episodes": str(trainer.done)}
        folder.keep(trainer.save(), trainer.policy(policy_facts))
        write_output(page(rows, titles, best_moves(trainer), unit, facts), str(folder.report))

    with TrainingDisplay(console, titles, unit, trainer.episodes, rows) as display:
        try:
            for row in trainer.run(players):
                rows.append(row)
                folder.add(row)
                display.add(row)
                if board is not None:
                    board.add(row)
                # The agent learns from a round as a whole, so the state is complete only between two rounds.
                if trainer.is_between_rounds and time.monotonic() - saved_at > SAVE_EVERY:
                    keep()
                    saved_at = time.monotonic()
            keep()
        finally:
            players.close()
            if board is not None:
                board.close()
    console.print(display.table())
    found = best_moves(trainer)
    for kernel, moves in zip(trainer.kernels, found, strict=True):
        _write_trace(folder.path / "traces", kernel, moves)
    console.print(f"policy: {folder.policy}\nreport: {folder.report}", highlight=False, soft_wrap=True)
    if given.json:
        write_json(
            {
                "policy": str(folder.policy),
                "report": str(folder.report),
                "episodes": trainer.done,
                "unit": unit,
                "kernels": [_reached(title, rows, moves) for title, moves in zip(titles, found, strict=True)],
            }
        )


def best_moves(trainer: Trainer) -> list[list[str]]:
    """The moves, located by identifiers, to each kernel's best program; none if it is not faster than the plain one."""
    return [list(archive.elites[0].path[-1]) if archive.elites else [] for archive in trainer.archives]


def _reached(title: str, rows: Sequence[EpisodeRow], moves: Sequence[str]) -> dict[str, Any]:
    """The result of the training for a kernel: the best cost, and the moves that lead there."""
    last = next((row for row in reversed(rows) if row.kernel == title), None)
    best = {"cost": None, "speedup": None} if last is None else {"cost": last.cost, "speedup": last.best}
    return {"kernel": title, **best, "moves": list(moves)}


def _write_trace(path: Path, kernel: TrainingKernel, moves: Sequence[str]) -> None:
    if not moves:
        return
    game: Game = kernel.game()
    for move in moves:
        game.apply(move)
    path.mkdir(exist_ok=True)
    game.trace.save(path / f"{''.join(c if c.isalnum() or c in '.=-' else '-' for c in kernel.title)}.trace")


class _Board:
    """Scalars for TensorBoard. Raises UsageError if it is not installed."""

    def __init__(self, path: Path, first: int) -> None:
        try:
            made: Any = import_module("torch.utils.tensorboard").SummaryWriter
        except ImportError:
            raise UsageError("--tensorboard needs the package: pip install tensorboard") from None
        # Episodes after the checkpoint are played again.
        self._writer = made(str(path), purge_step=first)

    def add(self, row: EpisodeRow) -> None:
        """Add an episode."""
        for name, value in asdict(row).items():
            if isinstance(value, (int, float)) and name != "episode":
                by = f"/{row.kernel}" if name in ("speedup", "best", "cost", "programs", "actions") else ""
                self._writer.add_scalar(f"{name}{by}", float(value), row.episode)

    def close(self) -> None:
        """Write the remaining data."""
        self._writer.close()
