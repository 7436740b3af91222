"""Graphics processors: passes for blocks, threads and shared memory."""

from __future__ import annotations

from pdojo.dialect.plugins import lazy
from pdojo.passes.cpu.kind import naive_pass
from pdojo.passes.kind import MachineKind

GPU = MachineKind(
    passes={
        "naive": naive_pass,
        "greedy": lazy("pdojo.passes.gpu.greedy:greedy"),
        "heuristic": lazy("pdojo.passes.gpu.heuristic:heuristic"),
    },
    model=lazy("pdojo.passes.cost_model:MODEL"),
)
