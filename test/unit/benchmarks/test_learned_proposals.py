"""The experiment on learned proposals: its grid, its test, and its power."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from random import Random

import pytest

from benchmarks.perfllm.cell import kernel_of, searched
from benchmarks.perfllm.grid import GRIDS, HELD_OUT, Cell, Grid, with_proposals
from benchmarks.perfllm.paired import comparisons, power, signed_rank
from benchmarks.perfllm.results import Done, Point, Reference
from benchmarks.perfllm.sampling import PARTS
from benchmarks.perfllm.statistics import Findings
from benchmarks.perfllm.tables import sheets
from proposal_models import stored_model


def brute_signed_rank(differences: list[float]) -> float:
    """The share of all signs whose sum of positive ranks is at most the observed one."""
    known = [each for each in differences if each]
    sizes = [abs(each) for each in known]
    ranks = [sum(other < size for other in sizes) + (sizes.count(size) + 1) / 2 for size in sizes]
    observed = sum(rank for rank, each in zip(ranks, known, strict=True) if each > 0)
    signs = list(product((False, True), repeat=len(known)))
    as_small = [sum(r for r, is_up in zip(ranks, each, strict=True) if is_up) <= observed + 1e-9 for each in signs]
    return sum(as_small) / len(signs)


@pytest.mark.parametrize("seed", range(20))
def test_the_test_is_exact(seed: int) -> None:
    random = Random(seed)
    differences = [float(random.randint(-4, 4)) for _ in range(random.randint(1, 9))]
    assert signed_rank(differences) == pytest.approx(brute_signed_rank(differences))


def test_power_grows_with_the_effect() -> None:
    found = [power(3, 8, ratio, 1.0, repeats=60) for ratio in (1.0, 0.6, 0.2)]
    assert found[0] < 0.1
    assert found == sorted(found)
    assert found[2] > 0.9


def test_the_grid_holds_five_kernels_out() -> None:
    grid = GRIDS["proposals"]
    names = [task.kernel.partition(":")[0] for task in grid.tasks]
    assert len(names) == 14
    assert sum(name in HELD_OUT for name in names) == len(HELD_OUT) == 5
    assert len(grid.seeds) == 10
    assert {task.evaluations for task in grid.tasks} == {400}
    for task in grid.tasks:
        plain, machine, _ = kernel_of(task)
        assert machine.backend == "snitch"
        assert plain.sym_name.data == task.kernel.partition(":")[0]


def done(task: str, method: str, seed: int, reached: int | None) -> Done:
    points = [Point(0, 0.0, 1.0)] + ([] if reached is None else [Point(reached, 1.0, 4.0)])
    parts = {part: 1 / len(PARTS) for part in PARTS}
    return Done(task, method, seed, 400, 400, 10.0, 10.0, 1, tuple(points), {}, {}, parts, "commit")


def findings(ratio: float) -> Findings:
    """Learned proposals need `ratio` times as many evaluations; one search in ten never arrives by uniform ones."""
    found = Findings({"grid": {"name": "proposals"}})
    random = Random(7)
    for task in ("cumsum:16x16, cycles", "conv:1x1, cycles", "relu:16x16, cycles"):
        found.references[task] = Reference("cycles", 100.0, 25.0, 3)
        for seed in range(10):
            uniform = random.randint(50, 390)
            learned = round(ratio * uniform)
            for method, number in (("evolve-mutate", uniform), ("evolve-mutate-learned", learned)):
                arrives = None if seed == 0 and method == "evolve-mutate" else number
                found.done[task, method, seed] = done(task, method, seed, arrives)
    return found


def test_groups_are_compared_in_pairs() -> None:
    held, trained = comparisons(findings(0.3))
    assert (held.group, len(held.pairs)) == ("never trained on", 20)
    assert len(trained.pairs) == 10
    assert held.verdict == trained.verdict == "half"
    assert max(pair.uniform for pair in held.pairs) == 401
    assert {each.verdict for each in comparisons(findings(0.8))} == {"fewer"}
    assert {each.verdict for each in comparisons(findings(1.1))} == {"not shown"}
    (sheet,) = [sheet for sheet in sheets(findings(0.3), "evolve-mutate") if sheet.title == "Learned proposals"]
    assert [row[0] for row in sheet.rows if row[0]] == ["evolve-mutate-learned"] * 2
    assert len(sheet.rows) == 2 + 3


def test_methods_search_by_learned_proposals(tmp_path: Path) -> None:
    pytest.importorskip("safetensors", reason="safetensors is not installed")
    grid = with_proposals(GRIDS["proposals"], stored_model(tmp_path))
    assert Grid.from_json(grid.to_json()) == grid
    methods = {method.name: method for method in grid.methods}
    assert set(methods) >= {"evolve-mutate-learned", "anneal-mutate-learned", "perfllm-max-edits-learned"}
    task = grid.with_only(["relu"], [], None, 6).tasks[0]
    found = searched(Cell(task, methods["evolve-mutate-learned"], 1), lambda _: None)
    assert found["made"] == 6
    assert found["settings"]["neighbourhood"]["proposals"]["steps"] == 6
