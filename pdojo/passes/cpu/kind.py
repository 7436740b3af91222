"""CPUs: passes for vectors, caches and threads; also for machines without a backend."""

from __future__ import annotations

from pdojo.dialect.plugins import lazy
from pdojo.passes.kind import MachineKind

naive_pass = lazy("pdojo.passes.common.greedy:naive")
"""The naive pass, which fits any machine."""

CPU = MachineKind(
    passes={
        "naive": naive_pass,
        "greedy": lazy("pdojo.passes.common.greedy:greedy"),
        "heuristic": lazy("pdojo.passes.cpu.heuristic:heuristic"),
    },
    model=lazy("pdojo.passes.cost_model:MODEL"),
    versions=lazy("pdojo.passes.cpu.versions:parts_of_ranges"),
    audit=lazy("pdojo.passes.cpu.audit:audit"),
)
