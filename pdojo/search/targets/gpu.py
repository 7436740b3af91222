"""Graphics processors: passes for blocks, threads and shared memory."""

from __future__ import annotations

from pdojo.search.targets.cpu import CPU, naive_pass
from pdojo.search.targets.target import ExpertPass, OpenPass, Target


def _greedy() -> ExpertPass:
    from pdojo.search.experts.gpu.greedy import greedy

    return greedy


def _heuristic() -> ExpertPass:
    from pdojo.search.experts.gpu.heuristic import heuristic

    return heuristic


def _open_heuristic() -> OpenPass:
    from pdojo.search.experts.gpu.heuristic import open_heuristic

    return open_heuristic


GPU = Target(
    passes={"naive": naive_pass, "greedy": _greedy, "heuristic": _heuristic},
    evaluators=CPU.evaluators,
    open_passes={"heuristic": _open_heuristic},
)
