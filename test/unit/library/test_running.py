"""Runs of entries notice planted defects of a small C library, and go on after a crash."""

from __future__ import annotations

import ctypes
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from pdojo.backends.measure.guarded import GuardedArray, GuardPlacement
from pdojo.library.findings import Finding, Listener
from pdojo.library.manifest import Manifest, entry_name, kernel_path, order_of, triple_of
from pdojo.library.records import Array, Entry
from pdojo.library.running import Case, cases_of
from pdojo.library.supervising import run_entries
from toolchain import c_compiler

TRIPLE = triple_of("x86_64")
KERNEL = """
kernel relu(x, w) -> (y)
{line}x f32 [{rows}, 8] heap
w f32 [8] heap
y f32 [{rows}, 8] heap
t f32 [{rows}, 8] heap

{rows} 8
| t[{{0}},{{1}}] = max(x[{{0}},{{1}}], 0)
| y[{{0}},{{1}}] = t[{{0}},{{1}}] * w[{{1}}]
"""
"""Rows of a rectified product."""

LIBRARY = r"""
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct { int threads; } handle;
int planted_create_level(handle **out, int threads, const char *level) {
  *out = malloc(sizeof **out);
  (*out)->threads = threads;
  return level ? 0 : 1;
}
int planted_create(handle **out, int threads) { return planted_create_level(out, threads, ""); }
void planted_destroy(handle *own) { free(own); }
const char *planted_message(int code) { return code == 2 ? "no such sizes" : "unknown code"; }
const char *planted_level(const handle *own) { return own ? "here" : NULL; }

static float relu(float x) { return x > 0 || isnan(x) ? x : 0; }
static void compute(int64_t R, const float *x, const float *w, float *y) {
  for (int64_t k = 0; k < 8 * R; k++) y[k] = relu(x[k]) * w[k % 8];
}
#define OPERATOR(name, body) \
  int planted_##name(handle *own, int64_t R, const float *x, const float *w, float *y) { \
    compute(R, x, w, y); body; return 0; }
OPERATOR(right, )
OPERATOR(reads_behind, if (x[8 * R] == 1234) y[0] = 0)
OPERATOR(reads_before, if (w[-1] == 1234) y[0] = 0)
OPERATOR(writes_behind, y[8 * R] = 0)
OPERATOR(writes_input, ((float *)w)[0] = 1)
OPERATOR(drops_nan, for (int64_t k = 0; k < 8 * R; k++) y[k] = isnan(y[k]) ? 0 : y[k])
OPERATOR(ends, abort())
OPERATOR(between, if (R > 1 && R < 40) y[8 * (R - 1)] += 1)
int planted_leaves(handle *own, int64_t R, const float *x, const float *w, float *y) {
  for (int64_t k = 1; k < 8 * R; k++) y[k] = relu(x[k]) * w[k % 8];
  return 0;
}
int planted_refuses(handle *own, int64_t R, const float *x, const float *w, float *y) { return 2; }
int planted_odd(handle *own, int64_t R, const float *x, const float *w, float *y) {
  compute(R, x, w, y);
  if ((uintptr_t)x % 64) y[3] += 1;
  return 0;
}
int planted_shares(handle *own, int64_t R, const float *x, const float *w, float *y) {
  static volatile uint32_t scratch;
  uint32_t mine;
  memcpy(&mine, &x[8 * R - 1], sizeof mine);
  scratch = mine;
  compute(R, x, w, y);
  usleep(2000);
  if (scratch != mine) y[0] += 1;
  return 0;
}
int planted_waits(handle *own, int64_t R, const float *x, const float *w, float *y) { for (;;) pause(); }
"""

DEFECTS = {
    "reads_behind": "a call touched memory outside of its arrays",
    "reads_before": "a call touched memory outside of its arrays",
    "writes_behind": "a call touched memory outside of its arrays|memory after array '\\w+' was written",
    "writes_input": "a call touched memory outside of its arrays, or wrote an input",
    "drops_nan": "wrong result: .* NaN and infinities",
    "ends": "a call ended the process: SIGABRT",
    "leaves": "wrong result: y.0, 0. is nan",
    "refuses": "the call was refused with code 2: no such sizes",
    "odd": "wrong result: y.0, 3. .* at odd addresses",
    "between": r"wrong result: y.3, 0. .* \(R = 4, level here",
}
"""The finding of each planted defect."""


def _entry(name: str, rows: int | range) -> Entry:
    shape = (rows if isinstance(rows, int) else "R", 8)
    arrays = (Array("x", "f32", shape, "in"), Array("w", "f32", (8,), "in"), Array("y", "f32", shape, "out"))
    named = entry_name(name, {"R": rows})
    return Entry(named, name, {"R": rows}, arrays, (), kernel_path(named), ())


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = c_compiler()
    folder = tmp_path_factory.mktemp("planted")
    (folder / "kernels").mkdir()
    (folder / "planted.c").write_text(LIBRARY)
    command = [compiler, "-O1", "-shared", "-fPIC", "-o", str(folder / "planted.so"), str(folder / "planted.c"), "-lm"]
    subprocess.run(command, check=True)
    return folder


def _findings(library: Path, entries: list[Entry], limit: float = 60) -> list[Finding]:
    entries = sorted(entries, key=lambda each: order_of(each.operator, each.sizes))
    manifest = Manifest("planted", "1.0.0", "planted", "MIT", (TRIPLE,), ("here",), {}, tuple(entries), {})
    for entry in entries:
        rows = entry.sizes["R"]
        line = "" if isinstance(rows, int) else f"size R in {rows[0]}..{rows[-1]} multiple {rows.step}\n"
        (library / entry.kernel).write_text(KERNEL.format(rows="R" if line else rows, line=line))
    (library / "manifest.json").write_text(manifest.text())
    return run_entries(library, library / "planted.so", manifest, ["here"], Listener(), limit)


def test_every_planted_defect_is_found(library: Path) -> None:
    plain = [_entry(name, 4) for name in DEFECTS if name != "between"]
    rows = [_entry("between", range(1, 41))]
    right = [_entry("right", 4)]
    found = _findings(library, [*plain, *right, *rows])
    by_entry: dict[str, list[str]] = {}
    for finding in found:
        by_entry.setdefault(finding.entry, []).append(finding.what)
    assert "right_4" not in by_entry
    for name, message in DEFECTS.items():
        (entry,) = (each for each in by_entry if each in (f"{name}_4", f"{name}_1to40"))
        assert any(re.search(message, what) for what in by_entry[entry]), by_entry[entry]


def test_a_right_library_for_any_number_of_rows(library: Path) -> None:
    entries = [_entry("right", 4), _entry("right", range(4, 4097, 4)), _entry("right", range(1, 1 << 31))]
    assert _findings(library, entries) == []


def test_callers_that_share_memory_are_found(library: Path) -> None:
    (found,) = _findings(library, [_entry("shares", 4)])
    assert "4 callers at once" in found.what


@pytest.mark.slow
def test_a_call_that_never_ends(library: Path) -> None:
    (found,) = _findings(library, [_entry("waits", 4)], limit=15)
    assert "a call took more than 15 s" in found.what


def test_every_case_is_run_for_every_level(library: Path) -> None:
    manifest = Manifest("p", "1.0.0", "p", "MIT", (TRIPLE,), ("a", "b"), {}, (_entry("right", 4),), {})
    (library / kernel_path("right_4")).write_text(KERNEL.format(rows=4, line=""))
    cases = cases_of(library, manifest, ["a", "b"])
    assert {case.level for case in cases} == {"a", "b"}
    assert {str(case.placement) for case in cases} == {
        "arrays aligned to 64 bytes with guard pages before them",
        "arrays aligned to 64 bytes with guard pages behind them",
        "arrays at odd addresses with guard pages before them",
        "arrays at odd addresses with guard pages behind them",
    }
    assert any(isinstance(case, Case) and case.callers > 1 for case in cases)


@pytest.mark.parametrize("shape", [(), (1,), (3, 5), (1024, 16)])
@pytest.mark.parametrize("dtype", ["float32", "int8", "float64"])
def test_guarded_arrays_lie_at_the_pages(shape: tuple[int, ...], dtype: str) -> None:
    kind = np.dtype(dtype)
    for side in ("before", "behind"):
        even = GuardedArray(shape, kind, GuardPlacement(side, 64)).array
        odd = GuardedArray(shape, kind, GuardPlacement(side, 1, odd=True)).array
        assert even.shape == odd.shape == shape
        assert even.ctypes.data % 64 == 0
        assert odd.ctypes.data % 64 != 0
        assert odd.ctypes.data % kind.itemsize == 0
        for array, slack in ((even, 63), (odd, kind.itemsize)):
            end = array.ctypes.data + (array.nbytes if side == "behind" else 0)
            assert min(end % 4096, -end % 4096) <= slack


def test_damage_beside_an_array() -> None:
    array = GuardedArray((3,), np.dtype(np.int8), GuardPlacement("behind", 64))
    assert array.damage("x") is None
    ctypes.memset(array.array.ctypes.data - 1, 0, 1)
    assert array.damage("x") == "memory before array 'x' was written"
