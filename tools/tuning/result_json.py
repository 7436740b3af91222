"""Results of `pdojo-tune` for programs."""

from __future__ import annotations

from typing import Any

from pdojo_tools.tuning.report.chapter import Chapter

from pdojo.dialect.notation import print_notation
from pdojo.passes.scheduled_kernel import ScheduledKernel


def result_json(chapter: Chapter) -> dict[str, Any]:
    """The result for a kernel; costs are None if nothing was measured."""
    result = chapter.result
    return {
        "kernel": result.task.title,
        "machine": result.machine.name,
        "threads": result.machine.threads,
        "verified": result.is_verified,
        "interrupted": result.is_interrupted,
        "before": result.before,
        "after": result.after,
        "unit": result.unit,
        "timed": [{"title": each.title, "moves": each.moves, "cost": each.cost} for each in result.timed],
        "moves": reasons_json(result.tuning),
        "program": print_notation(result.kernel),
        "facts": dict(chapter.facts),
    }


def reasons_json(tuning: ScheduledKernel) -> list[dict[str, str | None]]:
    """The moves of a trace with the expert pass's reasons; None for moves that were given or found by a search."""
    steps = tuning.game.trace.steps
    reasons = [None] * (len(steps) - len(tuning.notes)) + [note.why for note in tuning.notes]
    return [{"move": str(step.move), "why": why} for step, why in zip(steps, reasons, strict=True)]
