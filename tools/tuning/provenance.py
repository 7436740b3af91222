"""Provenance of a result, for later readers of a report."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from pdojo_tools.tuning.limits import budget_text

from pdojo.backends.registry import backend_of
from pdojo.passes.tuned import PassedKernel
from pdojo.transforms.game import fingerprint_of

if TYPE_CHECKING:
    from pdojo.search.tuning.result import TuneResult


def provenance(result: TuneResult | PassedKernel, environment: Mapping[str, Any]) -> dict[str, Any]:
    """Facts, keyed by name, in display order."""
    machine, task, game, found = result.machine, result.task, result.tuning.game, result.found
    facts: dict[str, Any] = {
        "made": time.strftime("%Y-%m-%d %H:%M:%S %z"),
        "kernel": task.title,
        "machine": f"{machine.name}: {machine.description}" if machine.description else machine.name,
        "threads": machine.threads,
        "alignment": f"{task.alignment} bytes",
        "expert pass": task.expert,
        "moves": len(game.trace.steps),
        "plain program": fingerprint_of(game.programs[0].text),
        "tuned program": fingerprint_of(game.program.text),
    }
    if backend_of(machine).is_simulated:
        facts |= backend_of(machine).environment()
    if found is not None:
        plan = found.plan
        facts |= {
            "search": f"{plan.strategy}, {plan.neighbourhood}, from {plan.start}",
            "budget": budget_text(plan.budget),
            "evaluator": plan.evaluator,
            "seed": found.seed,
            "database": found.database,
        }
    return facts | {name: _text(value) for name, value in environment.items()}


def _text(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, cast(list[object], value)))
    return "not known" if value is None else str(value)
