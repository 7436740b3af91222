"""Operators whose sizes calls choose: results, refused sizes and indices, C and NumPy, proof."""

from __future__ import annotations

import ctypes
import importlib
import json
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from loaded_library import Loaded, build_unproved, placed, poisoned, require_compiler
from pdojo.library.manifest import MANIFEST
from pdojo.library.spec import spec_of
from pdojo.library.verify import verify
from toolchain import c_compiler

SIZES, OVERLAP, INDICES = 2, 4, 10
"""Codes of the library."""
PICK = """
kernel pick(x, i) -> (y)
size N in 2..64
size B in 1..32
x f32 [N, 8] heap
i i64 [B] heap in 0..N-1{outside}
y f32 [B, 8] heap

B 8 y[{{0}},{{1}}] = x[i[{{0}}],{{1}}]
"""
SPEC: dict[str, Any] = {
    "name": "small",
    "version": "1.0.0",
    "levels": ["host"],
    "tuning": {"measure": False},
    "operators": [
        {"kernel": "matmul", "shapes": ["1..24x16x8..24/8", "12x16x24"]},
        {"kernel": "conv", "shapes": ["1..2x4x3x8..20x9x3,P=1,S=2"]},
        {"kernel": "softmax", "shapes": ["3x16"], "rows": True},
        {"kernel": "pick.pdojo"},
        {"kernel": "pick_wrap.pdojo", "name": "wrapped"},
        {"kernel": "pick_clamp.pdojo", "name": "clamped", "shapes": ["5x3"]},
    ],
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library in a folder `dist`, beside its kernels."""
    require_compiler()
    folder = tmp_path_factory.mktemp("sizes")
    for outside in ("", " wrap", " clamp"):
        (folder / f"pick{outside.replace(' ', '_')}.pdojo").write_text(PICK.format(outside=outside))
    build_unproved(spec_of(SPEC, "spec", folder), folder / "dist")
    return folder / "dist"


@pytest.fixture(scope="module")
def loaded(made: Path) -> Loaded:
    return Loaded.of(made)


@pytest.fixture(scope="module")
def handle(loaded: Loaded) -> Iterator[ctypes.c_void_p]:
    own = loaded.create()
    yield own
    loaded.function("destroy")(own)


def random(*shape: int) -> Any:
    return np.random.default_rng(shape).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("offset", [0, 4])
@pytest.mark.parametrize("rows", [1, 8, 9, 12, 24])
@pytest.mark.parametrize("columns", [8, 24])
def test_products_of_a_range(loaded: Loaded, handle: object, rows: int, columns: int, offset: int) -> None:
    """The ends of the ranges, of their versions, and sizes between; 12 x 16 x 24 has an entry of its own."""
    a, b, c = random(rows, 16), random(16, columns), poisoned((rows + 1, columns), offset)
    assert loaded.call("matmul_f32", handle, (rows, 16, columns), [placed(a, offset), placed(b, offset), c]) == 0
    np.testing.assert_allclose(c[:rows], a.astype(np.float64) @ b, rtol=1e-5, atol=1e-5)
    assert np.isnan(c[rows]).all()


@pytest.mark.parametrize(
    ("rows", "inner", "columns"),
    [(25, 16, 8), (-1, 16, 8), (4, 16, 12), (4, 16, 32), (4, 15, 8), (1 << 62, 16, 8), (4, 16, -8), (4, 0, 8)],
)
def test_sizes_outside_of_their_ranges(loaded: Loaded, handle: object, rows: int, inner: int, columns: int) -> None:
    """Nothing is written."""
    arrays = [placed(random(64, 72)), placed(random(64, 72)), poisoned((64, 72))]
    assert loaded.call("matmul_f32", handle, (rows, inner, columns), arrays) == SIZES
    assert np.isnan(arrays[2]).all()


@pytest.mark.parametrize("sizes", [(0, 16, 8), (4, 16, 0), (0, 16, 0)])
def test_no_results(loaded: Loaded, handle: object, sizes: tuple[int, int, int]) -> None:
    """A call without elements to write is served and writes nothing."""
    arrays = [placed(random(64, 72)), placed(random(64, 72)), poisoned((64, 72))]
    assert loaded.call("matmul_f32", handle, sizes, arrays) == 0
    assert np.isnan(arrays[2]).all()


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("rows", [8, 13, 20])
def test_free_image_sizes(loaded: Loaded, handle: object, batch: int, rows: int) -> None:
    """Extents of results are expressions of sizes: a border of one zero, and a stride of two."""
    x, k = random(batch, 3, rows, 9), random(4, 3, 3, 3)
    high = (rows - 1) // 2 + 1
    y = poisoned((batch, 4, high, 5))
    padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (1, 1), (1, 1)))
    wanted = np.zeros(y.shape)
    for i in range(3):
        for j in range(3):
            part = padded[:, :, i : i + 2 * high - 1 : 2, j : j + 9 : 2]
            wanted += np.einsum("nchw,oc->nohw", part, k[:, :, i, j])
    sizes = (batch, 4, 3, rows, 9, 3, 2, 1, 1)
    assert loaded.call("conv_f32", handle, sizes, [placed(x), placed(k), y]) == 0
    np.testing.assert_allclose(y, wanted, rtol=1e-4, atol=1e-5)


def test_overlap_is_that_of_the_sizes_of_a_call(loaded: Loaded, handle: object) -> None:
    both = placed(random(12, 16))
    for start, code in ((5, 0), (4, OVERLAP)):
        assert loaded.call("softmax_f32", handle, (5, 16), [both[:5], both[start : start + 5]]) == code


@pytest.mark.parametrize("name", ["pick", "wrapped", "clamped"])
def test_indices_of_a_call(loaded: Loaded, handle: object, name: str) -> None:
    """An index outside of its range is refused before anything is written, counted from the end, or clamped."""
    cases = {"pick": [0, 4, 2], "wrapped": [-1, -5, 4], "clamped": [-7, 9, 1 << 62]}
    x, y = placed(random(5, 8)), poisoned((3, 8))
    assert loaded.call(name, handle, (5, 3), [x, placed(np.array(cases[name])), y]) == 0
    wanted = np.array({"clamped": [0, 4, 4]}.get(name, cases[name]))
    np.testing.assert_array_equal(y, x[wanted])
    for index in {"pick": (-1, 5, 1 << 62), "wrapped": (-6, 5)}.get(name, ()):
        for place in range(3):
            given, y = np.zeros(3, np.int64), poisoned((3, 8))
            given[place] = index
            assert loaded.call(name, handle, (5, 3), [x, placed(given), y]) == INDICES
            assert np.isnan(y).all()
    assert loaded.function("message")(INDICES) == b"an index is outside of its range"


MAIN = """
#include <small.h>
#include <stdio.h>

int main(void) {
  static float x[64 * 8], y[32 * 8];
  int64_t at[32];
  small_handle *handle;
  if (small_create(&handle, 0) != SMALL_OK) return 2;
  for (int k = 0; k < 64 * 8; k++) x[k] = (float)k;
  for (int k = 0; k < 32; k++) at[k] = 63 - k;
  for (int64_t n = 64; n >= 2; n -= 31)
    for (int64_t b = 1; b <= 2; b++) {
      at[0] = n - 1;
      at[1] = 0;
      for (int k = 0; k < 32 * 8; k++) y[k] = -1;
      if (small_pick(handle, n, b, x, at, y) != SMALL_OK) return 3;
      for (int k = 0; k < 32 * 8; k++)
        if (y[k] != (k < b * 8 ? x[at[k / 8] * 8 + k % 8] : -1)) return 4;
    }
  at[1] = 64;
  if (small_pick(handle, 64, 2, x, at, y) != SMALL_INDICES) return 5;
  if (small_pick(handle, 65, 1, x, at, y) != SMALL_SIZES) return 6;
  if (small_pick(handle, 64, 33, x, at, y) != SMALL_SIZES) return 7;
  puts(small_message(SMALL_INDICES));
  small_destroy(handle);
  return 0;
}
"""


def test_a_program_in_c(made: Path, tmp_path: Path) -> None:
    compiler = c_compiler()
    (tmp_path / "main.c").write_text(MAIN)
    (folder,) = (made / "lib").glob("*-linux-gnu")
    options = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", f"-I{made / 'include'}", f"-L{folder}", "-lsmall"]
    subprocess.run([compiler, "main.c", *options, f"-Wl,-rpath,{folder}", "-o", "main"], cwd=tmp_path, check=True)
    ran = subprocess.run([tmp_path / "main"], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, "an index is outside of its range\n")
    header = (made / "include" / "small.h").read_text()
    assert "M x K x N: 12x16x24, 1x16x8..24/8, 1..8x16x8..24/8, 1..24x16x8..24/8" in header
    assert (
        "int small_pick(small_handle *handle, int64_t N, int64_t B, const float *x, const int64_t *i, float *y);"
        in header
    )


def test_generated_c_has_no_warnings(made: Path, tmp_path: Path) -> None:
    options = ["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-c", str(made / "source" / "dispatch.c")]
    subprocess.run([c_compiler(), *options, "-o", str(tmp_path / "out.o")], check=True)


@pytest.fixture(scope="module")
def module(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The module of the wheel."""
    folder = tmp_path_factory.mktemp("site")
    (path,) = (made / "wheel").glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        archive.extractall(folder)
    sys.path.insert(0, str(folder))
    try:
        yield importlib.import_module("small")
    finally:
        sys.path.remove(str(folder))
        for name in ("small", "small.arrays", "small.runtime"):
            sys.modules.pop(name, None)


def test_numpy_finds_the_sizes(module: Any) -> None:
    for rows, columns in ((1, 8), (9, 24), (12, 24), (24, 16), (0, 8)):
        a, b = random(rows, 16), random(16, columns)
        np.testing.assert_allclose(module.matmul_f32(a, b), a.astype(np.float64) @ b, rtol=1e-5, atol=1e-5)
    assert module.conv_f32(random(2, 3, 13, 9), random(4, 3, 3, 3)).shape == (2, 4, 7, 5)
    x = random(5, 8)
    np.testing.assert_array_equal(module.wrapped(x, np.array([-1, 2])), x[[-1, 2]])


def test_numpy_refuses_what_does_not_fit(module: Any) -> None:
    with pytest.raises(
        ValueError, match=r"does not serve a \[25, 16\], b \[16, 8\]; it serves a \[12, 16\], .*a \[M, 16\]"
    ):
        module.matmul_f32(random(25, 16), random(16, 8))
    with pytest.raises(ValueError, match=r"does not serve a \[4, 16\], b \[16, 12\]"):
        module.matmul_f32(random(4, 16), random(16, 12))
    with pytest.raises(ValueError, match=r"c has shape \[4, 16\], not \[4, 8\]"):
        module.matmul_f32(random(4, 16), random(16, 8), out=np.empty((4, 16), np.float32))
    with pytest.raises(module.LibraryError, match="an index is outside of its range"):
        module.pick(random(5, 8), np.array([5]))


def test_the_proof_and_the_same_bytes(made: Path) -> None:
    """`verify` replays, rebuilds and runs all entries of the library."""
    assert verify(made) == []


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        ({"sizes": {"N": "2..64", "B": "1..33"}}, "it is 'pick_2to64x1to32', and a build writes 'pick_2to64x1to33'"),
        ({"sizes": {"N": "64..2", "B": "1..32"}}, "is no size"),
    ],
)
def test_a_changed_range(made: Path, edit: dict[str, Any], message: str) -> None:
    """Refused by the check of the manifest; with its files renamed, too, by the plain kernel."""
    text = (made / MANIFEST).read_text()
    data = json.loads(text)
    (entry,) = (each for each in data["entries"] if each["operator"] == "pick")
    entry.update(edit)
    try:
        (made / MANIFEST).write_text(json.dumps(data, indent=2) + "\n")
        with pytest.raises(Exception, match=message):
            verify(made)
    finally:
        (made / MANIFEST).write_text(text)
