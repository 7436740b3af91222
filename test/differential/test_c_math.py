"""Elementary functions in the C that `-t c` prints: their errors, and the LLVM backend's bits where fma is fast."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import pytest

from differential.c_code import require
from differential.math_harness import ARITY, BOUNDS, Array, compiled, ulp_errors
from differential.math_references import f32_patterns, f64_arguments, powers
from differential.test_math import DTYPES, SPECIAL_VALUES, exact, f32_errors, needs_wide_reference
from pdojo.backends.c.prelude import Prelude
from toolchain import C_COMPILERS

NAMES = sorted(set(BOUNDS) - {"math.rsqrt"})
"""`rsqrt` is a square root and a division, in C as everywhere."""
FLAGS = {
    "portable": ("-O2", "-std=c11"),
    "native": ("-O3", "-march=native", "-std=gnu11"),
}
LOOP = "for (int64_t i = 0; i < n; i++)"
OF_THE_LIBRARY = 0.5
"""ulp that bounds grow by where there is no fast fma, and the C library's functions stand in."""
_CHECKS = ("-Wall", "-Wextra", "-Wno-unknown-pragmas", "-Werror")

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, of overflow and division by zero


class Library:
    """All functions over arrays, compiled by one compiler."""

    def __init__(self, compiler: str, flags: tuple[str, ...], folder: Path) -> None:
        prelude = Prelude()
        loops: list[str] = []
        for function in NAMES:
            for dtype, kind in (("f32", "float"), ("f64", "double")):
                name = prelude.use(f"pd_{function.removeprefix('math.')}_{dtype}")
                second = (f"const {kind} *restrict y, ", ", y[i]") if function in ARITY else ("", "")
                head = f"void all_{name}(int64_t n, const {kind} *restrict x, {second[0]}{kind} *restrict z) {{"
                loops.append(f"{head}\n  {LOOP} z[i] = {name}(x[i]{second[1]});\n}}")
        self.text = "\n".join([prelude.text(), *loops])
        source, library = folder / "math.c", folder / "math.so"
        source.write_text(self.text)
        command = [compiler, *flags, *_CHECKS, "-shared", "-fPIC", str(source), "-o", str(library), "-lm"]
        built = subprocess.run(command, capture_output=True, text=True, check=False)
        assert built.returncode == 0, f"{built.stderr}\n{self.text}"
        self.loaded = ctypes.CDLL(str(library))

    def __call__(self, function: str, *inputs: Array) -> Array:
        dtype = {4: "f32", 8: "f64"}[inputs[0].itemsize]
        output = np.empty(len(inputs[0]), inputs[0].dtype)
        arrays = [np.ascontiguousarray(a) for a in (*inputs, output)]
        pointers = [ctypes.c_void_p(a.ctypes.data) for a in arrays]
        getattr(self.loaded, f"all_pd_{function.removeprefix('math.')}_{dtype}")(ctypes.c_int64(len(output)), *pointers)
        return output


@pytest.fixture(scope="module", params=[(c, f) for c in C_COMPILERS or [""] for f in FLAGS], ids="-".join)
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Library]:
    compiler, flags = request.param
    return flags, Library(compiler or require(), FLAGS[flags], tmp_path_factory.mktemp("c-math"))


@pytest.mark.parametrize("function", [name for name in NAMES if name not in ARITY])
def test_f32_within_bound(library: tuple[str, Library], function: str) -> None:
    flags, apply = library
    bound = BOUNDS[function].f32 + OF_THE_LIBRARY * (flags == "portable")
    for x in f32_patterns(4999):
        found = apply(function, x)
        errors = f32_errors(function, found, x)
        at = int(np.argmax(errors))
        assert errors[at] <= bound, f"{function}({float(x[at])!r})"
        if flags == "native" and "__FMA__" in defined():
            np.testing.assert_array_equal(found, compiled(function, "f32", 1)(x))


@needs_wide_reference
@pytest.mark.parametrize("function", [name for name in NAMES if name not in ARITY])
def test_f64_within_bound(library: tuple[str, Library], function: str) -> None:
    flags, apply = library
    x = f64_arguments(seed=7)[::10]
    found = apply(function, x)
    errors = ulp_errors(found, exact(function, x.astype(np.longdouble)))
    at = int(np.argmax(errors))
    bound = BOUNDS[function].f64 + OF_THE_LIBRARY * (flags == "portable")
    assert errors[at] <= bound, f"{function}({float(x[at])!r})"
    if flags == "native" and "__FMA__" in defined():
        np.testing.assert_array_equal(found, compiled(function, "f64", 1)(x))


@pytest.mark.parametrize("dtype", ["f32", pytest.param("f64", marks=needs_wide_reference)])
def test_power_within_bound(library: tuple[str, Library], dtype: str) -> None:
    flags, apply = library
    wide = np.dtype(np.float64) if dtype == "f32" else np.dtype(np.longdouble)
    x, y = powers(DTYPES[dtype], seed=5, count=30_000)
    errors = ulp_errors(apply("math.powf", x, y), np.power(x.astype(wide), y.astype(wide)))
    at = int(np.argmax(errors))
    bound = getattr(BOUNDS["math.powf"], dtype) + OF_THE_LIBRARY * (flags == "portable")
    assert errors[at] <= bound, f"{float(x[at])!r} ** {float(y[at])!r}"


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("function", [name for name in NAMES if name not in ARITY])
def test_special_values(library: tuple[str, Library], function: str, dtype: str) -> None:
    given, expected = (np.array(column, DTYPES[dtype]) for column in zip(*SPECIAL_VALUES[function], strict=True))
    found = library[1](function, given)
    np.testing.assert_array_equal(found, expected)
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found)[numbers], np.signbit(expected)[numbers])


def test_loops_become_vectors(tmp_path: Path) -> None:
    """Nothing in a loop over floats keeps GCC from computing several elements at once; some of doubles need AVX-512."""
    if "gcc" not in C_COMPILERS or "__AVX2__" not in defined():
        pytest.skip("needs GCC and AVX2")
    made = Library("gcc", FLAGS["native"], tmp_path)
    done = subprocess.run(
        ["gcc", *FLAGS["native"], "-fopt-info-vec-optimized", "-c", "-xc", "-", "-o", "/dev/null"],
        input=made.text,
        capture_output=True,
        text=True,
        check=True,
    )
    lines = {number for number in map(_line, done.stderr.splitlines()) if number}
    loops = [(n, line) for n, line in enumerate(made.text.splitlines(), 1) if LOOP in line]
    functions = [n for n, line in loops if "_f32" in line and "powf" not in line]
    assert len(functions) == len(NAMES) - 1
    missing = [made.text.splitlines()[n - 1].strip() for n in functions if n not in lines]
    assert missing == []


def _line(text: str) -> int:
    parts = text.split(":")
    return int(parts[1]) if len(parts) > 2 and parts[1].isdecimal() else 0


def defined() -> str:
    """The macros of the system's compiler for this processor."""
    command = [require(), "-march=native", "-dM", "-E", "-xc", "/dev/null"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
