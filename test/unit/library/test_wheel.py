"""Wheels: their bytes, and the Python module in them, with a small C library of the same interface."""

from __future__ import annotations

import base64
import csv
import ctypes
import importlib
import io
import subprocess
import sys
import threading
import venv
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from shutil import which
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from loaded_library import require_compiler
from pdojo.dialect.machines.registry import host
from pdojo.errors import UsageError
from pdojo.library.build import build_library
from pdojo.library.manifest import Array, Entry, Manifest
from pdojo.library.platforms import Needs, needs
from pdojo.library.schema import read_manifest
from pdojo.library.spec import read_spec
from pdojo.library.wheel import python_version, wheel
from pdojo.library.wheel_module import module_text

EXAMPLE = Path(__file__).parents[3] / "examples" / "library"
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
int demo_refuse_f32(handle *own, const float *x, float *y) { return 5; }
int demo_split_f32(handle *own, int64_t R, const float *lambda, float *y, float *z) {
  for (int64_t k = 0; k < R; k++) y[k] = lambda[k], z[k] = -lambda[k];
  return 0;
}
"""


def _entry(name: str, operator: str, sizes: dict[str, int], arrays: str, dispatch: Any = "exact") -> Entry:
    """An entry; `arrays` are words like `in:x:f32:4x8`."""
    parts = [word.split(":") for word in arrays.split()]
    shaped = [(d, n, t, tuple(int(k) for k in s.split("x") if k)) for d, n, t, s in parts]
    made: Any = tuple(Array(n, t, s, d) for d, n, t, s in shaped)  # pyright: ignore[reportArgumentType]
    return Entry(name, operator, sizes, made, (), f"kernels/{name}.pdojo", dispatch, ())


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
        _entry("refuse", "refuse_f32", {}, "in:x:f32:2 out:y:f32:2"),
        _entry("exact", "scale_f32", {"R": 5, "C": 3}, "in:x:f32:5x3 in:w:f32:3 out:y:f32:5x3"),
        _entry("chunk", "scale_f32", {"R": 4, "C": 3}, "in:x:f32:4x3 in:w:f32:3 out:y:f32:4x3", "chunk"),
        _entry("row", "scale_f32", {"R": 1, "C": 3}, "in:x:f32:1x3 in:w:f32:3 out:y:f32:1x3", "row"),
        _entry("split", "split_f32", {"R": 2}, "in:lambda:f32:2 out:y:f32:2 out:z:f32:2"),
        _entry("twice", "twice_bf16", {"N": 4}, "in:x:bf16:4 out:y:bf16:4"),
        _entry("window_1", "window_f32", {"N": 8, "S": 1}, "in:x:f32:8 out:y:f32:8"),
        _entry("window_2", "window_f32", {"N": 8, "S": 2}, "in:x:f32:8 out:y:f32:4"),
    ),
    {},
)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    compiler = which("cc") or which("gcc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    folder = tmp_path_factory.mktemp("standin")
    (folder / "demo.c").write_text(STANDIN)
    made = folder / "libdemo.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(made), str(folder / "demo.c")], check=True)
    return made.read_bytes()


@pytest.fixture(scope="module")
def demo(library: bytes, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    """The module in the wheel."""
    folder = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(io.BytesIO(wheel(MANIFEST, library, "text").data)) as archive:
        archive.extractall(folder)
    sys.path.insert(0, str(folder))
    try:
        yield importlib.import_module("demo")
    finally:
        sys.path.remove(str(folder))
        for name in ("demo", "demo.arrays", "demo.runtime"):
            sys.modules.pop(name, None)


def test_the_bytes_are_the_same_and_members_are_sorted(library: bytes) -> None:
    made = wheel(MANIFEST, library, "text")
    assert made == wheel(MANIFEST, library, "text")
    with zipfile.ZipFile(io.BytesIO(made.data)) as archive:
        names = archive.namelist()
        assert names == sorted(names)
        assert {member.date_time for member in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        assert {member.compress_type for member in archive.infolist()} == {zipfile.ZIP_STORED}
        assert archive.read("demo/libdemo.so") == library
        assert "demo/py.typed" in names
        modes = {member.filename: member.external_attr >> 16 for member in archive.infolist()}
    assert modes["demo/libdemo.so"] == 0o100755
    assert modes["demo/__init__.py"] == 0o100644


def test_the_record_lists_every_member(library: bytes) -> None:
    with zipfile.ZipFile(io.BytesIO(wheel(MANIFEST, library, "text").data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    record = "demo-1.2.3rc1.dist-info/RECORD"
    rows = {name: (digest, size) for name, digest, size in csv.reader(members[record].decode().splitlines())}
    assert rows.pop(record) == ("", "")
    wanted = {
        name: ("sha256=" + base64.urlsafe_b64encode(sha256(data).digest()).decode().rstrip("="), str(len(data)))
        for name, data in members.items()
        if name != record
    }
    assert rows == wanted


def test_names_and_metadata(library: bytes) -> None:
    made = wheel(MANIFEST, library, "the text")
    tag = needs(library).tag
    assert made.name == f"demo-1.2.3rc1-py3-none-{tag}.whl"
    with zipfile.ZipFile(io.BytesIO(made.data)) as archive:
        assert f"Tag: py3-none-{tag}\n" in archive.read("demo-1.2.3rc1.dist-info/WHEEL").decode()
        metadata = archive.read("demo-1.2.3rc1.dist-info/METADATA").decode()
        assert archive.read("demo-1.2.3rc1.dist-info/licenses/LICENSE") == b"the text"
    assert "Version: 1.2.3rc1\n" in metadata
    assert "License-Expression: MIT\n" in metadata
    assert "Requires-Dist: numpy" in metadata


def test_no_assertion_about_the_licence(library: bytes) -> None:
    made = wheel(replace(MANIFEST, licence="NOASSERTION"), library, "text")
    with zipfile.ZipFile(io.BytesIO(made.data)) as archive:
        assert "License-Expression" not in archive.read("demo-1.2.3rc1.dist-info/METADATA").decode()


@pytest.mark.parametrize(
    ("version", "wanted"),
    [
        ("1.0.0", "1.0.0"),
        ("1.0.0-alpha.2", "1.0.0a2"),
        ("2.1.0-b1", "2.1.0b1"),
        ("1.0.0-rc.3+gcc-12", "1.0.0rc3+gcc.12"),
    ],
)
def test_versions(version: str, wanted: str) -> None:
    assert python_version(version) == wanted


def test_a_version_that_python_does_not_know() -> None:
    with pytest.raises(UsageError, match=r"1\.0\.0-nightly"):
        python_version("1.0.0-nightly")


@pytest.mark.parametrize(
    ("libraries", "versions", "tag"),
    [
        (("libc.so.6",), ("GLIBC_2.2.5",), "manylinux_2_5_x86_64"),
        (("libc.so.6", "libpthread.so.0"), ("GLIBC_2.2.5", "GLIBC_2.34", "GLIBC_2.4"), "manylinux_2_34_x86_64"),
        (("libc.musl-x86_64.so.1",), (), "musllinux_1_2_x86_64"),
        (("libc.so.6", "libgomp.so.1"), ("GLIBC_2.34",), "linux_x86_64"),
        ((), (), "linux_x86_64"),
    ],
)
def test_platform_tags(libraries: tuple[str, ...], versions: tuple[str, ...], tag: str) -> None:
    assert Needs("x86_64", libraries, versions).tag == tag


def test_a_real_library_needs_the_c_library(library: bytes) -> None:
    found = needs(library)
    assert any(name.startswith("libc.") for name in found.libraries)


@pytest.mark.parametrize("data", [b"", b"MZ" + bytes(100), b"\x7fELF\x02\x01" + bytes(100)])
def test_other_files_are_refused(data: bytes) -> None:
    with pytest.raises(UsageError, match="the library is"):
        needs(data)


def test_calls(demo: Any) -> None:
    x = np.arange(15, dtype=np.float32).reshape(5, 3)
    w = np.array([1, 2, 3], np.float32)
    demo.set_threads(1)
    y = demo.scale_f32(x, w)
    np.testing.assert_array_equal(y, x * w)
    assert y.ctypes.data % 64 == 0
    out = np.empty_like(x)
    assert demo.scale_f32(x, w, out=out) is out
    np.testing.assert_array_equal(out, x * w)
    assert demo.level() == "some-level"
    assert demo.__version__ == "1.2.3-rc.1"


def test_any_number_of_rows(demo: Any) -> None:
    demo.set_threads(1)
    w = np.ones(3, np.float32)
    for rows in (0, 1, 7, 100):
        assert demo.scale_f32(np.ones((rows, 3), np.float32), w).shape == (rows, 3)
    with pytest.raises(
        ValueError, match=r"scale_f32 does not serve x \[2, 4\], w \[3\]; it serves x \[any, 3\], w \[3\]"
    ):
        demo.scale_f32(np.ones((2, 4), np.float32), w)


def test_sizes_that_shapes_leave_open(demo: Any) -> None:
    x = np.arange(8, dtype=np.float32)
    with pytest.raises(ValueError, match="several sizes have inputs of these shapes; give S"):
        demo.window_f32(x)
    np.testing.assert_array_equal(demo.window_f32(x, S=2), x[::2])
    np.testing.assert_array_equal(demo.window_f32(x, out=np.empty(4, np.float32)), x[::2])
    with pytest.raises(ValueError, match=r"does not serve x \[8\], S=3"):
        demo.window_f32(x, S=3)


def test_several_outputs_and_names_of_python(demo: Any) -> None:
    x = np.array([1, 2], np.float32)
    y, z = demo.split_f32(lambda_=x)
    np.testing.assert_array_equal(y, -z)
    with pytest.raises(ValueError, match="2 outputs, not 1"):
        demo.split_f32(x, out=y)


def test_arrays_that_are_changed(demo: Any) -> None:
    x = np.array([41], np.int32)
    assert demo.bump_i32(x) is None
    assert x[0] == 42


def test_codes_are_exceptions(demo: Any) -> None:
    with pytest.raises(demo.LibraryError, match="the handle is busy") as caught:
        demo.refuse_f32(np.zeros(2, np.float32))
    assert caught.value.code == 5


def test_arrays_that_do_not_fit(demo: Any) -> None:
    x, w = np.ones((5, 3), np.float32), np.ones(3, np.float32)
    with pytest.raises(TypeError, match="x has element type float64, not float32"):
        demo.scale_f32(x.astype(np.float64), w)
    with pytest.raises(TypeError, match="x is a list; pass a NumPy array"):
        demo.scale_f32([[1.0]], w)
    with pytest.raises(ValueError, match="x is not contiguous"):
        demo.scale_f32(np.ones((3, 5), np.float32).T, w)
    with pytest.raises(ValueError, match=r"y has shape \[4, 3\], not \[5, 3\]"):
        demo.scale_f32(x, w, out=np.empty((4, 3), np.float32))
    with pytest.raises(ValueError, match="x and y overlap in memory"):
        demo.scale_f32(x, w, out=x)
    fixed = np.empty_like(x)
    fixed.flags.writeable = False
    with pytest.raises(ValueError, match="y is read-only"):
        demo.scale_f32(x, w, out=fixed)
    with pytest.raises(ValueError, match="a number of threads is at least 1"):
        demo.set_threads(-1)


def test_each_thread_has_a_handle(demo: Any) -> None:
    count = demo._library.function("made", ctypes.c_int)
    ended = demo._library.function("ended", ctypes.c_int)
    x, w = np.ones((5, 3), np.float32), np.ones(3, np.float32)
    demo.set_threads(3)
    before, gone = count(), ended()

    def call() -> None:
        for _ in range(3):
            np.testing.assert_array_equal(demo.scale_f32(x, w), 3 * x)

    callers = [threading.Thread(target=call) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert count() - before == 4
    assert ended() - gone == 4
    demo.set_threads(2)
    np.testing.assert_array_equal(demo.scale_f32(x, w), 2 * x)


def test_bf16_as_bits(demo: Any) -> None:
    x = np.full(4, 0x3F80, np.uint16)
    np.testing.assert_array_equal(demo.twice_bf16(x), np.full(4, 0x4000, np.uint16))


def test_bf16_as_a_type_of_numpy(demo: Any) -> None:
    types: Any = pytest.importorskip("ml_dtypes")
    y = demo.twice_bf16(np.ones(4, types.bfloat16))
    assert y.dtype == types.bfloat16
    assert float(y[0]) == 2.0


def test_tensors(demo: Any) -> None:
    torch: Any = pytest.importorskip("torch")
    demo.set_threads(1)
    x, w = torch.ones(5, 3), torch.tensor([1.0, 2.0, 3.0])
    y = demo.scale_f32(x, w)
    assert isinstance(y, torch.Tensor)
    assert torch.equal(y, x * w)
    out = torch.empty(5, 3)
    assert demo.scale_f32(x, w, out=out) is out
    assert torch.equal(out, x * w)
    assert demo.twice_bf16(torch.ones(4, dtype=torch.bfloat16)).tolist() == [2.0] * 4
    with pytest.raises(ValueError, match=r"x requires grad"):
        demo.scale_f32(x.clone().requires_grad_(), w)


def test_docstrings_and_types(demo: Any) -> None:
    assert "- any, 3: x [any, 3], w [3], y [any, 3]" in demo.scale_f32.__doc__
    assert "- 8, 2: x [8], y [4]" in demo.window_f32.__doc__
    text = module_text(MANIFEST)
    assert (
        "def scale_f32(x: NDArray[np.float32], w: NDArray[np.float32], out: NDArray[np.float32] | None = None)"
        " -> NDArray[np.float32]: ..." in text
    )
    assert "def scale_f32(x: _T, w: _T, out: _T | None = None) -> _T: ..." in text
    assert "def bump_i32(x: NDArray[np.int32]) -> None: ..." in text


def test_the_module_needs_numpy_only(library: bytes, tmp_path: Path) -> None:
    with zipfile.ZipFile(io.BytesIO(wheel(MANIFEST, library, "text").data)) as archive:
        archive.extractall(tmp_path)
    program = (
        "import sys, numpy as np\n"
        f"sys.path.insert(0, {str(tmp_path)!r})\n"
        "import demo\n"
        "demo.set_threads(1)\n"
        "assert (demo.scale_f32(np.ones((2, 3), np.float32), np.ones(3, np.float32)) == 1).all()\n"
        "loaded = {name.partition('.')[0] for name in sys.modules}\n"
        "assert not loaded & {'pdojo', 'llvmlite', 'xdsl', 'torch'}, loaded\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_wheel_of_a_library_runs_alone(built: Path, tmp_path: Path) -> None:
    (made,) = built.glob("wheel/*.whl")
    with zipfile.ZipFile(made) as archive:
        archive.extractall(tmp_path)
    program = (
        "import sys, numpy as np\n"
        f"sys.path.insert(0, {str(tmp_path)!r})\n"
        "import small\n"
        "x = np.random.default_rng().standard_normal((11, 16), dtype=np.float32)\n"
        "e = np.exp(x - x.max(1, keepdims=True))\n"
        "assert np.allclose(small.softmax_f32(x), e / e.sum(1, keepdims=True), atol=1e-6)\n"
        "a, b = x[:6, :10].copy(), x[:10, :8].copy()\n"
        "assert np.allclose(small.matmul_f32(a, b), a @ b, atol=1e-5)\n"
        "assert 'pdojo' not in sys.modules and 'llvmlite' not in sys.modules\n"
        "print(small.level())\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() in read_manifest(built).levels


@pytest.mark.slow
def test_the_example_runs_in_an_environment_with_numpy_only(tmp_path: Path) -> None:
    """pip installs the wheel of examples/library and NumPy; needs the network or a full cache of pip."""
    require_compiler()
    if host().architecture != "x86_64":
        pytest.skip("the levels of the example are for x86-64")
    build_library(read_spec(EXAMPLE / "spec.toml"), tmp_path / "dist")
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / "bin" / "python"
    (made,) = (tmp_path / "dist").glob("wheel/*.whl")
    installed = subprocess.run(
        [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(made)],
        capture_output=True,
        text=True,
        check=False,
    )
    if installed.returncode and "No matching distribution found for numpy" in installed.stderr:
        pytest.skip("pip finds no NumPy: there is no network")
    assert installed.returncode == 0, installed.stderr
    listed = subprocess.run(
        [python, "-m", "pip", "list", "--format=freeze"], capture_output=True, text=True, check=True
    )
    assert {line.partition("==")[0] for line in listed.stdout.split()} - {"pip", "setuptools"} == {"example", "numpy"}
    done = subprocess.run([python, EXAMPLE / "numpy_user.py"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "softmax and matmul agree with NumPy" in done.stdout


TYPED = """
from typing import Any, assert_type

import demo
import numpy as np
from numpy.typing import NDArray


class Tensor:
    def data_ptr(self) -> int:
        return 0

    def __dlpack__(self, *, stream: Any = None) -> Any:
        return None


def use(x: NDArray[np.float32], n: NDArray[np.int32], t: Tensor) -> None:
    assert_type(demo.scale_f32(x, x), NDArray[np.float32])
    assert_type(demo.scale_f32(t, t, out=t), Tensor)
    assert_type(demo.split_f32(x), tuple[NDArray[np.float32], NDArray[np.float32]])
    assert_type(demo.bump_i32(n), None)
    demo.window_f32(x, S=2)
"""


@pytest.mark.slow
def test_type_checkers_know_the_functions(library: bytes, tmp_path: Path) -> None:
    with zipfile.ZipFile(io.BytesIO(wheel(MANIFEST, library, "text").data)) as archive:
        archive.extractall(tmp_path)
    (tmp_path / "right.py").write_text(TYPED)
    (tmp_path / "wrong.py").write_text(f"{TYPED}    demo.scale_f32(n, x)\n    demo.window_f32(x, S='2')\n")
    (tmp_path / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict"}')

    def errors(name: str) -> str:
        command = [sys.executable, "-m", "basedpyright", "--pythonpath", sys.executable, name]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        return "\n".join(line for line in done.stdout.splitlines() if " - error: " in line)

    assert errors("right.py") == ""
    lines = {line.partition("wrong.py:")[2].partition(":")[0] for line in errors("wrong.py").splitlines()}
    first = len(TYPED.splitlines()) + 1
    assert lines == {str(first), str(first + 1)}
