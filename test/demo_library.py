"""A small C library with the interface of generated ones, and its manifest, for tests of wheels."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pdojo.library.manifest import Manifest
from pdojo.library.records import Array, Entry
from toolchain import c_compiler

STANDIN = r"""
#include <stdint.h>
#include <stdlib.h>
#include <stdio.h>

typedef struct { int threads; } handle;
static int made, ended;

int demo_create(handle **out, int threads) {
  *out = malloc(sizeof **out);
  (*out)->threads = threads;
  __atomic_add_fetch(&made, 1, __ATOMIC_SEQ_CST);
  return 0;
}
int demo_create_level(handle **out, int threads, const char *level) { return level ? demo_create(out, threads) : 1; }
void demo_destroy(handle *own) { __atomic_add_fetch(&ended, 1, __ATOMIC_SEQ_CST); free(own); }
const char *demo_message(int code) { return code == 5 ? "the handle is busy" : "unknown code"; }
const char *demo_level(const handle *own) { return own ? "some-level" : NULL; }
int demo_made(void) { return made; }
int demo_ended(void) { return ended; }

int demo_scale_f32(handle *own, int64_t R, int64_t C, const float *x, const float *w, float *y) {
  for (int64_t k = 0; k < R * C; k++) y[k] = x[k] * w[k % C] * own->threads;
  return 0;
}
int demo_window_f32(handle *own, int64_t N, int64_t S, const float *x, float *y) {
  for (int64_t k = 0; k < N / S; k++) y[k] = x[k * S];
  return 0;
}
int demo_twice_bf16(handle *own, int64_t N, const uint16_t *x, uint16_t *y) {
  for (int64_t k = 0; k < N; k++) y[k] = x[k] + 128; /* the next power of two */
  return 0;
}
int demo_bump_i32(handle *own, int32_t *x) { x[0]++; return 0; }
int demo_library(
    handle *own, int64_t lambda, int64_t out_, const float *out, const float *_library, const float *None,
    const float *None_, float *y) {
  for (int64_t k = 0; k < lambda; k++) y[k] = out[0] + 10 * _library[0] + 100 * None[0] + 1000 * None_[0];
  return 0;
}
int demo_refuse_f32(handle *own, const float *x, float *y) { return 5; }
int demo_split_f32(handle *own, int64_t R, const float *lambda, float *y, float *z) {
  for (int64_t k = 0; k < R; k++) y[k] = lambda[k], z[k] = -lambda[k];
  return 0;
}
"""


def _entry(name: str, operator: str, sizes: dict[str, int | range], arrays: str) -> Entry:
    """An entry; `arrays` are words like `in:x:f32:4x8`."""
    parts = [word.split(":") for word in arrays.split()]
    shaped = [(d, n, t, tuple(int(k) if k.isdecimal() else k for k in s.split("x") if k)) for d, n, t, s in parts]
    made: Any = tuple(Array(n, t, s, d) for d, n, t, s in shaped)  # pyright: ignore[reportArgumentType]
    return Entry(name, operator, sizes, made, (), f"kernels/{name}.pdojo", ())


_NAMED = "in:out:f32:1 in:_library:f32:1 in:None:f32:1 in:None_:f32:1 out:y:f32:{}"
MANIFEST = Manifest(
    "demo",
    "1.2.3-rc.1",
    "demo",
    "MIT",
    ("x86_64-unknown-linux-gnu",),
    ("some-level",),
    {},
    (
        _entry("bump", "bump_i32", {}, "inout:x:i32:1"),
        # Names that the module has too, that Python has, and that other parameters get.
        *(_entry(f"library_{n}", "library", {"lambda": n, "out_": 1}, _NAMED.format(n)) for n in (1, 2)),
        _entry("refuse", "refuse_f32", {}, "in:x:f32:2 out:y:f32:2"),
        _entry("exact", "scale_f32", {"R": 5, "C": 3}, "in:x:f32:5x3 in:w:f32:3 out:y:f32:5x3"),
        _entry("open", "scale_f32", {"R": range(1, 4097), "C": 3}, "in:x:f32:Rx3 in:w:f32:3 out:y:f32:Rx3"),
        _entry("split", "split_f32", {"R": 2}, "in:lambda:f32:2 out:y:f32:2 out:z:f32:2"),
        _entry("twice", "twice_bf16", {"N": 4}, "in:x:bf16:4 out:y:bf16:4"),
        _entry("window_1", "window_f32", {"N": 8, "S": 1}, "in:x:f32:8 out:y:f32:8"),
        _entry("window_2", "window_f32", {"N": 8, "S": 2}, "in:x:f32:8 out:y:f32:4"),
    ),
    {},
)


@cache
def compiled_demo() -> bytes:
    """The shared library; skips the test if there is no C compiler."""
    compiler = c_compiler()
    with TemporaryDirectory() as folder:
        source, made = Path(folder) / "demo.c", Path(folder) / "libdemo.so"
        source.write_text(STANDIN)
        subprocess.run([compiler, "-shared", "-fPIC", "-o", str(made), str(source)], check=True)
        return made.read_bytes()
