"""Snitch cores: passes for streams and hardware loops."""

from __future__ import annotations

from pdojo.dialect.plugins import lazy
from pdojo.passes.cpu.kind import naive_pass
from pdojo.passes.kind import MachineKind

SNITCH = MachineKind(
    passes={
        "naive": naive_pass,
        "greedy": lazy("pdojo.passes.snitch.passes:greedy"),
        "heuristic": lazy("pdojo.passes.snitch.passes:heuristic"),
    }
)
