"""The held-out shapes of the benchmark: what the seed gives, within the bounds."""

from __future__ import annotations

import subprocess
import sys
from random import Random

import pytest

from benchmarks import bench, runs
from benchmarks.held import FAMILIES, FILE, SEED, held_out, is_within, size
from benchmarks.work import Work
from pdojo.kernels import TABLE_3, kernel_names, workload


def test_the_shapes_are_those_of_the_seed() -> None:
    """Nobody chose them, and nobody exchanged one that turned out slow."""
    command = [sys.executable, "-m", "benchmarks.held"]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert printed == FILE.read_text(encoding="utf-8")
    assert SEED == 20261130


def test_shapes_are_distinct() -> None:
    facts = {(found.kernel, tuple(found.sizes.items())) for found in map(workload, held_out())}
    assert len(facts) == len(held_out()) == 60
    # Nor is one of them a row of Table 3 or at a kernel's default sizes.
    common = {(found.kernel, tuple(found.sizes.items())) for found in map(workload, (*TABLE_3, *kernel_names()))}
    assert not facts & common


def test_bounds_leave_out_what_is_too_small_or_too_large() -> None:
    assert is_within(Work(10_000_000, 1 << 20, 1 << 20))
    assert not is_within(Work(99_999, 1 << 20, 1 << 20))
    assert not is_within(Work(2_000_000_001, 1 << 20, 1 << 20))
    assert not is_within(Work(10_000_000, 1 << 14, 1 << 14))
    assert not is_within(Work(10_000_000, 1 << 28, 1))
    # Five microseconds by the nominal rates.
    assert not is_within(Work(250_000, 1 << 15, 1 << 15))


def test_sizes_are_those_of_the_kernels() -> None:
    for line in filter(None, (line.partition("#")[0] for line in FAMILIES.splitlines())):
        _, kernels, *sizes = line.split()
        for kernel in kernels.split("|"):
            known = list(workload(kernel).sizes)
            assert [each.partition("=")[0] for each in sizes] == known[: len(sizes)], line


def test_sizes_are_drawn_from_their_ranges() -> None:
    random = Random(7)
    drawn = [size("3..40", random) for _ in range(2000)]
    assert (min(drawn), max(drawn)) == (3, 40)
    # Evenly by the logarithm: half of them below the geometric mean.
    assert 850 < sum(each < (3 * 41) ** 0.5 for each in drawn) < 1150
    assert all(size("10..100!", random) % 16 for _ in range(500))
    assert {size("3|5", random) for _ in range(50)} == {3, 5}


def test_the_benchmark_takes_them(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    begun: list[list[str]] = []

    def create(_: object, settings: bench.JSON) -> None:
        begun.append([each["label"] for each in settings["workloads"]])
        raise KeyboardInterrupt

    monkeypatch.setattr(runs.Partial, "create", create)
    bench.main(["--held", "--peers", "none", "--threads", "1", "-o", "r.json"])
    assert begun == [held_out()]
