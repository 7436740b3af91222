"""Kernels and command lines for the tests of `pdojo-tune`."""

from __future__ import annotations

from pathlib import Path

SOFTMAX = """kernel softmax(x) -> (y)
x f32 [32, 64] heap
y f32 [32, 64] heap
m f32 [32] heap
e f32 [32, 64] heap
s f32 [32] heap

32
| m[{0}] = -inf
| 64 m[{0}] max= x[{0},{1}]
32 64 e[{0},{1}] = x[{0},{1}] - m[{0}]
32 64 e[{0},{1}] = exp(e[{0},{1}])
32
| s[{0}] = 0
| 64 s[{0}] += e[{0},{1}]
32 64 y[{0},{1}] = e[{0},{1}] / s[{0}]
"""
ADD = """kernel add_one(x) -> (y)
x f32 [64] heap
y f32 [64] heap

64 y[{0}] = x[{0}] + 1
"""
MACHINE = "x86-64-avx2"


def model(
    *programs: object, database: Path, search: str = "sample", budget: str = "20", near: str = "mutate"
) -> list[str]:
    """A search that the model judges: nothing is run, and every process finds the same."""
    named = ["--search", search, "--neighbourhood", near, "--budget", budget, "--database", str(database)]
    judged = ["--evaluator", "analytical", "--no-measure", "--machine", MACHINE, "--threads", "2", "--pass", "naive"]
    return [*map(str, programs), *named, *judged]
