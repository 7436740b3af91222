"""`pdojo-train text`: weights of the encoder `text-small`, without any measurement.

Random legal moves on library kernels generate programs for several machines; a small transformer learns to read them.
FILE.states and FILE.checkpoint let an interrupted run go on; remove them to start again.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pdojo_tools.outputs import check_writable, write_output
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from pdojo.errors import UsageError
from pdojo.files import read_bytes
from pdojo.search.perfllm.learner import import_torch

GENERATING = 0.4
"""Part of the minutes for programs; the rest is for learning."""
STORED = 60.0
"""Seconds between two checkpoints."""


def train_text(given: argparse.Namespace) -> None:
    """Generate programs and learn from them. Raises UsageError."""
    import_torch()
    check_writable(str(given.file))
    end = time.monotonic() + 60 * given.minutes
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    console = Console(stderr=True, markup=False)
    with Progress(*columns, console=console, refresh_per_second=1) as progress:
        walks = _generate(given, time.monotonic() + 60 * given.minutes * GENERATING, progress)
        facts = _learn(given, walks, end, progress)
    sys.stdout.write(f"wrote {given.file}: {facts['steps']} of {given.steps} steps, {facts['states']} programs\n")
    sys.stdout.write(f"held out: {', '.join(f'{name} {value:.3f}' for name, value in facts['held out'].items())}\n")
    if facts["steps"] < given.steps:
        sys.stdout.write("the same command goes on\n")


def _beside(file: Path, suffix: str) -> Path:
    return file.with_name(f"{file.name}.{suffix}")


def _generate(given: argparse.Namespace, end: float, progress: Progress) -> list[Any]:
    """The walks of the file, and more until there are enough programs or the time is over."""
    from pdojo.search.perfllm.text.states import Collection

    collection = Collection(_beside(given.file, "states"), given.seed)
    task = progress.add_task("programs", total=given.states, completed=collection.states)
    if collection.states < given.states:
        for _ in collection.more():
            progress.update(task, completed=collection.states)
            if collection.states >= given.states or time.monotonic() > end:
                break
    return collection.walks


def _learn(given: argparse.Namespace, walks: Sequence[Any], end: float, progress: Progress) -> dict[str, Any]:
    """Learn until there are enough steps or the time is over, and write the weights; returns the training's facts."""
    from pdojo.search.perfllm.storing import dump
    from pdojo.search.perfllm.text.model import Shape
    from pdojo.search.perfllm.text.pretraining import fresh, segments_of
    from pdojo.search.perfllm.text.states import is_held_out
    from pdojo.search.perfllm.text.weights import save_model, stamp

    shape = Shape()
    held = segments_of([walk for walk in walks if is_held_out(walk.kernel, given.hold_out)])
    learned = segments_of([walk for walk in walks if not is_held_out(walk.kernel, given.hold_out)])
    if not held or not learned:
        raise UsageError("there is nothing to learn from, or nothing held out: take more --minutes or other --hold-out")
    training = fresh(shape, learned, given.steps, given.seed)
    checkpoint, wanted = _beside(given.file, "checkpoint"), stamp(shape, _settings(given))
    if checkpoint.exists():
        _restore(training, checkpoint, wanted)
    task = progress.add_task("learning", total=given.steps, completed=training.done)

    def store() -> None:
        write_output(dump(training.state(), wanted), str(checkpoint))

    stored = time.monotonic()
    while training.done < given.steps and time.monotonic() < end:
        losses = training.step()
        progress.update(task, completed=training.done, description=f"learning, loss {losses.total:.3f}")
        if time.monotonic() - stored > STORED:
            store()
            stored = time.monotonic()
    store()
    facts = {
        **_settings(given),
        "states": sum(len(walk.texts) for walk in walks),
        "steps": training.done,
        "held out": asdict(training.losses(held)),
    }
    save_model(given.file, training.model, facts)
    return facts


def _settings(given: argparse.Namespace) -> dict[str, Any]:
    """What a checkpoint must have been made with."""
    from pdojo.search.perfllm.text.states import MACHINES

    return {"seed": given.seed, "of steps": given.steps, "hold out": given.hold_out, "machines": list(MACHINES)}


def _restore(training: Any, checkpoint: Path, wanted: dict[str, str]) -> None:
    """Go on from a checkpoint. Raises UsageError if it is of another pre-training."""
    from pdojo.search.perfllm.storing import LARGEST, load, stamp_of

    try:
        data = read_bytes(checkpoint, LARGEST)
        if wanted.items() <= stamp_of(data).items():
            training.restore(load(data, training.schema()))
            return
    except OSError as error:
        raise UsageError(f"cannot read '{checkpoint}': {error.strerror}") from None
    except UsageError as error:
        raise UsageError(f"'{checkpoint}' is damaged: {error}; remove it to start again") from None
    raise UsageError(f"'{checkpoint}' was made with other arguments, or by another version; remove it to start again")
