"""The Python module of wheels: calls, errors, threads, tensors, types, with a small C library of the same interface."""

from __future__ import annotations

import ctypes
import importlib
import io
import subprocess
import sys
import threading
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from demo_library import MANIFEST, compiled_demo
from loaded_library import build_unproved, require_compiler
from pdojo.dialect.machines.registry import host
from pdojo.library.schema import read_manifest
from pdojo.library.spec import read_spec
from pdojo.library.wheel import wheel
from pdojo.library.wheel_module import module_text

EXAMPLE = Path(__file__).parents[3] / "examples" / "library"


@pytest.fixture(scope="module")
def library() -> bytes:
    return compiled_demo()


@pytest.fixture(scope="module")
def demo(library: bytes, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    """The module in the wheel."""
    folder = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(io.BytesIO(wheel(MANIFEST, library, "text", {}).data)) as archive:
        archive.extractall(folder)
    sys.path.insert(0, str(folder))
    try:
        yield importlib.import_module("demo")
    finally:
        sys.path.remove(str(folder))
        for name in ("demo", "demo.arrays", "demo.runtime"):
            sys.modules.pop(name, None)


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
        ValueError,
        match=r"scale_f32 does not serve x \[2, 4\], w \[3\]; it serves x \[5, 3\], w \[3\]; x \[R, 3\], w \[3\]",
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


def test_names_that_the_module_has_too(demo: Any) -> None:
    """An operator `library` with the arrays out, _library, None, None_ and the sizes lambda, out_."""
    one, two, three, four = (np.full(1, value, np.float32) for value in (1, 2, 3, 4))
    y = demo.library(out=one, _library_=two, None_=three, None__=four, lambda_=2)
    np.testing.assert_array_equal(y, np.full(2, 4321, np.float32))
    mine = np.zeros(1, np.float32)
    assert demo.library(one, two, three, four, out_=mine) is mine
    assert mine[0] == 4321
    with pytest.raises(ValueError, match=r"give lambda_$"):
        demo.library(one, two, three, four)


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
    fixed = np.empty_like(x)
    fixed.flags.writeable = False
    with pytest.raises(ValueError, match="y is read-only"):
        demo.scale_f32(x, w, out=fixed)
    for count in (-1, 4097, 1 << 70):
        with pytest.raises(ValueError, match="a number of threads is from 1 to 4096, or 0 for all"):
            demo.set_threads(count)
    for wrong in (2.5, "2", None):
        with pytest.raises(TypeError, match="integer"):
            demo.set_threads(wrong)
    for wrong in (3, False, "y"):
        with pytest.raises(TypeError, match=f"y is a {type(wrong).__name__}; pass a NumPy array"):
            demo.scale_f32(x, w, out=wrong)
    with pytest.raises(ValueError, match="scale_f32 has 1 output, not 2"):
        demo.scale_f32(x, w, out=[x, x])
    with pytest.raises(TypeError, match=r"x is a masked array, and masks are not supported; pass x\.filled\(value\)"):
        demo.scale_f32(np.ma.masked_array(x, x > 0), w)
    for wrong in ("f31", np.float32):
        with pytest.raises(ValueError, match="is no element type; these are f64, f32"):
            demo.empty((2, 3), wrong)


def test_each_thread_has_a_handle(demo: Any) -> None:
    count = demo._LIBRARY.function("made", ctypes.c_int)
    ended = demo._LIBRARY.function("ended", ctypes.c_int)
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


def test_outputs_may_be_objects_with_dlpack(demo: Any) -> None:
    class Other:
        def __init__(self, array: Any) -> None:
            self.array = array

        def __dlpack__(self, **options: Any) -> Any:
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self) -> Any:
            return self.array.__dlpack_device__()

    demo.set_threads(1)
    x, w, mine = np.ones((5, 3), np.float32), np.arange(3, dtype=np.float32), np.zeros((5, 3), np.float32)
    out = Other(mine)
    assert demo.scale_f32(Other(x), w, out=out) is out
    np.testing.assert_array_equal(mine, x * w)


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
    assert "- 1..4096, 3: x [R, 3], w [3], y [R, 3]" in demo.scale_f32.__doc__
    assert "- 8, 2: x [8], y [4]" in demo.window_f32.__doc__
    text = module_text(MANIFEST)
    assert (
        "def scale_f32(x: NDArray[np.float32], w: NDArray[np.float32], out: NDArray[np.float32] | None = None)"
        " -> NDArray[np.float32]: ..." in text
    )
    assert "def scale_f32(x: _T, w: _T, out: _T | None = None) -> _T: ..." in text
    assert "def bump_i32(x: NDArray[np.int32]) -> None: ..." in text


def test_the_module_needs_numpy_only(library: bytes, tmp_path: Path) -> None:
    with zipfile.ZipFile(io.BytesIO(wheel(MANIFEST, library, "text", {}).data)) as archive:
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
        "try:\n"
        "    small.softmax_f32(x, out=x)\n"
        "except small.LibraryError as error:\n"
        "    assert 'overlaps' in str(error)\n"
        "else:\n"
        "    raise AssertionError\n"
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
    build_unproved(read_spec(EXAMPLE / "spec.toml"), tmp_path / "dist")
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
    with zipfile.ZipFile(io.BytesIO(wheel(MANIFEST, library, "text", {}).data)) as archive:
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
