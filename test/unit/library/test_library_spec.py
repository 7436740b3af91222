"""Specifications of libraries: every mistake is one error with its key."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pdojo_tools.library.building import model_library

import pdojo
from pdojo.backends.measure.worker import most_memory
from pdojo.errors import UsageError
from pdojo.library.build import build_library
from pdojo.library.entries import entries_of
from pdojo.library.features import TESTS, detectable, feature_tests, state_of
from pdojo.library.interface import header_text, operators_of
from pdojo.library.levels import levels_of
from pdojo.library.packaging import package_files
from pdojo.library.spec import TuningSpec, read_spec, spec_of

GOOD: dict[str, Any] = {
    "name": "small",
    "levels": ["x86-64-avx2"],
    "operators": [{"kernel": "relu", "shapes": ["4x8"]}],
}


def fail(folder: Path) -> None:
    """Refuse to be called: nothing is built."""
    raise AssertionError(folder)


def operator(**keys: Any) -> dict[str, Any]:
    return {**GOOD, "operators": [{"kernel": "softmax", "shapes": ["4x8"], **keys}]}


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "name": ({"name": "Not-a-name"}, "key 'name': 'Not-a-name' is no name"),
    "runtime": (
        {"name": "runtime"},
        "key 'name': 'runtime' cannot be the name of a library: every library has a source",
    ),
    "header": ({"name": "math"}, "key 'name': 'math' cannot be the name of a library: its header would hide <math.h>"),
    "linked": ({"name": "m"}, "key 'name': 'm' cannot be the name of a library: -lm is another library"),
    "module": ({"name": "numpy"}, "its wheel would take the place of Python's module 'numpy'"),
    "standard": ({"name": "json"}, "its wheel would take the place of Python's module 'json'"),
    "prefix": ({**GOOD, "prefix": "pd"}, "key 'prefix': 'pd' cannot be the prefix of a library: functions that are"),
    "no prefix": ({**GOOD, "name": "pthread", "prefix": "own"}, "key 'name': 'pthread' cannot be the name"),
    "system": ({**GOOD, "prefix": "pthread"}, "key 'prefix': 'pthread' cannot be the prefix of a library: functions"),
    "digits": ({**GOOD, "version": "\u0661.0.0"}, "is no version; write three numbers: 1.0.0"),
    "missing": ({"version": "1.0.0"}, "key 'name': missing"),
    "key": ({**GOOD, "versoin": "1"}, "key 'versoin': no such key; did you mean 'version'?"),
    "version": ({**GOOD, "version": "1.0"}, "key 'version': '1.0' is no version"),
    "levels": ({**GOOD, "levels": []}, "key 'levels': must name at least one"),
    "one level": ({**GOOD, "levels": "host"}, "key 'levels': must be a list of texts in quotes, not 'host'"),
    "threads": ({**GOOD, "threads": True}, "key 'threads': must be a whole number"),
    "table": ({**GOOD, "tuning": 3}, "key 'tuning': must be a table: begin it with [tuning]"),
    "tables": ({**GOOD, "operators": {}}, "key 'operators': must be tables: begin each with [[operators]]"),
    "search": (
        {**GOOD, "tuning": {"search": "evolv"}},
        "key 'tuning.search': unknown strategy 'evolv'; did you mean 'evo",
    ),
    "budget": ({**GOOD, "tuning": {"search": "evolve", "budget": "x"}}, "key 'tuning.budget': 'x' is no budget"),
    "no search": ({**GOOD, "tuning": {"budget": "10"}}, "key 'tuning.budget': belongs to a search"),
    "unmeasured": (
        {**GOOD, "tuning": {"measure": False, "search": "evolve"}},
        "key 'tuning.search': belongs to measured",
    ),
    "kernel": ({**GOOD, "operators": [{}]}, "key 'operators[0].kernel': missing"),
    "shapes": (operator(shapes="4x8"), "key 'operators[0].shapes': must be a list of texts"),
    "type": (operator(dtypes=["f31"]), "key 'operators[0].dtypes': unknown element type 'f31'; did you mean"),
    "types": (operator(dtypes=["f32", "f32"]), "key 'operators[0].dtypes': must list no element type twice"),
    "numerics": (
        operator(numerics=["contrakt"]),
        "key 'operators[0].numerics': unknown class 'contrakt'; did you mean",
    ),
    "rows": (operator(rows=32), "key 'operators[0].rows': must be true or false, not 32"),
}


@pytest.mark.parametrize("case", WRONG)
def test_refused_specifications(case: str) -> None:
    data, message = WRONG[case]
    with pytest.raises(UsageError, match=f"^spec\\.toml: .*{re.escape(message)}"):
        spec_of(data, "spec.toml", Path())


KERNELS: dict[str, tuple[dict[str, Any], str]] = {
    "unknown": (
        {"kernel": "sofmax", "shapes": ["4x8"]},
        "no library kernel and no file 'sofmax'; did you mean 'softmax'?",
    ),
    "preset": ({"kernel": "conv_1"}, "'conv_1' is conv at 8x10x3x512x512x5"),
    "no shape": ({"kernel": "softmax"}, "key 'shapes': missing; write numbers separated by x: RxC"),
    "bad shape": ({"kernel": "softmax", "shapes": ["4by8"]}, "'4by8' is no shape"),
    "twice": ({"kernel": "softmax", "shapes": ["4x8"], "plain": ["4x8"]}, "the sizes 4x8 are listed twice"),
    "zero": ({"kernel": "relu", "shapes": ["4x8", "0x5"]}, "0x5: relu.pdojo:7:6: error: an extent is at least 1"),
    "constant": ({"kernel": "softmax", "shapes": ["4x8"], "dtypes": ["i8"]}, "4x8 i8: softmax.pdojo"),
    "no type": ({"kernel": "matmul_i8", "shapes": ["4x8x4"], "dtypes": ["f32"]}, "'matmul_i8' has the element types"),
    "reversed": (
        {"kernel": "relu", "shapes": ["8..4x8"]},
        "8..4x8: 'R' cannot be range(8, 5): a size has an ascending",
    ),
    "from 0": (
        {"kernel": "relu", "shapes": ["0..4x8"]},
        "0..4x8: 'R' cannot be range(0, 5): a size runs from at least 1",
    ),
    "negative": ({"kernel": "relu", "shapes": ["-4..4x8"]}, "'-4..4x8' is no shape"),
    "no multiples": ({"kernel": "relu", "shapes": ["8..20/8x8"]}, "'8..20/8' ends at 20, which is no multiple of 8"),
    "words": ({"kernel": "relu", "shapes": ["one..twox8"]}, "'one..twox8' is no shape"),
    "huge": ({"kernel": "relu", "shapes": [f"1..{10**19}x8"]}, "is no shape"),
    "beyond addresses": ({"kernel": "relu", "shapes": [f"1..{10**18 - 1}x8"]}, "is larger than any memory"),
    "range twice": ({"kernel": "relu", "shapes": ["1..4x8"], "plain": ["1..4x8"]}, "the sizes 1..4x8 are listed twice"),
    "not linear": ({"kernel": "batchnorm", "shapes": ["1..4x3x1..8x1..8"]}, "not linear in sizes known at run time"),
}


@pytest.mark.parametrize("case", KERNELS)
def test_refused_kernels(case: str) -> None:
    keys, message = KERNELS[case]
    with pytest.raises(UsageError, match=f"^spec\\.toml: operators\\[0\\]: .*{re.escape(message)}"):
        entries_of(spec_of({**GOOD, "operators": [keys]}, "spec.toml", Path()))


def test_operators_need_names_of_their_own() -> None:
    data = {**GOOD, "operators": [GOOD["operators"][0]] * 2}
    with pytest.raises(UsageError, match=r"^spec\.toml: operators\[1\]: there is an operator 'relu_f32' already"):
        entries_of(spec_of(data, "spec.toml", Path()))


@pytest.mark.parametrize("shape", ["1048576x1048576", "1099511627776x1"])
def test_arrays_larger_than_memory_are_refused_when_they_are_read(shape: str, tmp_path: Path) -> None:
    """The check runs every entry; the plain kernel of such sizes is never run."""
    data = {**operator(shapes=["4x8", shape]), "levels": ["host"], "tuning": {"measure": False}}
    limit = re.escape(f"{most_memory() / 2**30:.4g} GiB")
    wanted = rf"^s: operators\[0\]: the arrays of entry 'softmax_f32_{shape}' take 8192 GiB, and .* {limit}"
    with pytest.raises(UsageError, match=wanted):
        build_library(spec_of(data, "s", Path()), tmp_path / "dist", check=fail)
    assert not list(tmp_path.iterdir())


def test_the_limit_of_an_entry() -> None:
    """Softmax of 4 x 8 numbers has two arrays of 128 bytes."""
    spec = spec_of(operator(), "s", Path())
    assert len(entries_of(spec, most_bytes=256)) == 1
    with pytest.raises(UsageError, match="the arrays of entry 'softmax_f32_4x8' take"):
        entries_of(spec, most_bytes=255)


def test_zero_bytes_in_names(tmp_path: Path) -> None:
    for name in ("a\0b", "a\0b.pdojo"):
        with pytest.raises(UsageError, match=r"^s: operators\[0\]: there is no library kernel and no file"):
            entries_of(spec_of({**GOOD, "operators": [{"kernel": name}]}, "s", tmp_path))
    for key in ("levels", "devices"):
        spec = spec_of({**GOOD, key: ["a\0b.toml"]}, "s", tmp_path)
        with pytest.raises(UsageError, match=rf"^s: key '{key}': .*zero byte"):
            build_library(spec, tmp_path / "dist", check=fail)
    with pytest.raises(UsageError, match=r"^s: key 'licence_file': .*zero byte"):
        build_library(spec_of({**GOOD, "licence_file": "a\0b"}, "s", tmp_path), tmp_path / "dist", check=fail)
    with pytest.raises(UsageError, match=r"there can be no folder '.*': its name has a zero byte"):
        build_library(spec_of(GOOD, "s", tmp_path), tmp_path / "a\0b", check=fail)
    assert not list(tmp_path.iterdir())


def test_names_that_are_too_long(tmp_path: Path) -> None:
    spec = spec_of({**GOOD, "operators": [{"kernel": "n" * 300}]}, "s", tmp_path)
    with pytest.raises(UsageError, match=r"^s: operators\[0\]: cannot read '.*': File name too long"):
        entries_of(spec)


def test_a_version_that_wheels_cannot_have(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^s: key 'version': '1\.0\.0-nightly' is no version of a Python package"):
        spec_of({**GOOD, "version": "1.0.0-nightly"}, "s", tmp_path)


def test_entries_need_files_of_their_own(tmp_path: Path) -> None:
    """A kernel without sizes has the name of another kernel at a size."""
    (tmp_path / "k.pdojo").write_text("kernel k(x) -> (y)\nx f32 [4] heap\ny f32 [4] heap\n\n4 y[{0}] = x[{0}] + 1\n")
    operators = [GOOD["operators"][0], {"kernel": "k.pdojo", "name": "relu_f32_4x8"}]
    with pytest.raises(
        UsageError, match=r"^spec\.toml: operators\[1\]: .* 'relu_f32_4x8\.pdojo'; give one of the operators another"
    ):
        entries_of(spec_of({**GOOD, "operators": operators}, "spec.toml", tmp_path))


def test_licences_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "latin").write_bytes(b"\xa9")
    for name, reason in (
        ("none", "No such file or directory"),
        (".", "Is a directory"),
        ("latin", "it is no UTF-8 text"),
    ):
        spec = spec_of({**GOOD, "licence_file": name}, "spec.toml", tmp_path)
        with pytest.raises(UsageError, match=rf"^spec\.toml: key 'licence_file': cannot read '.*': {reason}$"):
            package_files(spec, ["x86_64-unknown-linux-gnu"])


def test_files_that_are_no_specification(tmp_path: Path) -> None:
    path = tmp_path / "spec.toml"
    with pytest.raises(UsageError, match="cannot read the specification"):
        read_spec(path)
    path.write_text('name = "small\n')
    with pytest.raises(UsageError, match=r"is no TOML: .*line 1"):
        read_spec(path)


def test_entries() -> None:
    """Sorted by operator, number of sizes and sizes; types, rows and kernels of files in one library."""
    data = {**GOOD, "operators": [operator(shapes=["8x4", "4x8"], dtypes=["f32", "bf16"], rows=True)["operators"][0]]}
    entries = entries_of(spec_of(data, "spec.toml", Path()))
    assert [entry.name for entry in entries if entry.operator == "softmax_f32"] == [
        "softmax_f32_4x8",
        "softmax_f32_8x4",
        "softmax_f32_1to262143x8",
        "softmax_f32_1to524287x4",
        "softmax_f32_1to4194304x8",
        "softmax_f32_1to8388608x4",
        "softmax_f32_1to2147483647x4",
        "softmax_f32_1to2147483647x8",
    ]
    assert len(entries) == 16
    assert [entry.is_timed for entry in entries] == [True] * 6 + [False] * 2 + [True] * 6 + [False] * 2
    assert entries[2].arrays[0].shape == ("R", 8)
    assert [a.direction for a in entries[0].arrays] == ["in", "out"]


def test_versions_for_parts_of_ranges() -> None:
    """Few rows of a product, and small products; listed parts, and those of one value, are not made twice."""
    row = {"kernel": "matmul", "shapes": ["1..64x16x1..64", "1..8x16x1..64", "7..7x16x5"]}
    entries = entries_of(spec_of({**GOOD, "operators": [row]}, "spec.toml", Path()))
    sizes = [(entry.sizes["M"], entry.sizes["N"]) for entry in entries]
    assert sizes == [
        (7, 5),
        (1, range(1, 65)),
        (range(1, 9), range(1, 65)),
        (range(1, 33), range(1, 33)),
        (range(1, 65), range(1, 65)),
    ]


def test_kernels_of_files(tmp_path: Path) -> None:
    (tmp_path / "mine.pdojo").write_text(
        "size N = 4\ntype T = f32\n\nkernel mine(x) -> (y)\nsize M in 1..8\nx T [N, M] heap\ny T [N, M] heap\n\n"
        "N M y[{0},{1}] = x[{0},{1}]\n"
    )
    row = {"kernel": "mine.pdojo", "shapes": ["5", "N=7", "8..16/8x3"], "dtypes": ["f64"]}
    entries = entries_of(spec_of({**GOOD, "operators": [row]}, "spec.toml", tmp_path))
    assert [entry.name for entry in entries] == ["mine_f64_8to16by8x3", "mine_f64_5x1to8", "mine_f64_7x1to8"]
    assert entries[1].arrays[0].shape == (5, "M")


def test_kernels_whose_sizes_callers_give(tmp_path: Path) -> None:
    (tmp_path / "own.pdojo").write_text(
        "kernel twice(x) -> (y)\nsize N in 1..8\nx f32 [N] heap\ny f32 [(N+2)] heap\n\n"
        "(N+2) y[{0}] = 0\nN y[{0}] = x[{0}]"
    )
    spec = spec_of({**GOOD, "operators": [{"kernel": "own.pdojo"}]}, "spec.toml", tmp_path)
    (entry,) = entries_of(spec)
    assert (entry.name, entry.sizes, entry.arrays[1].shape) == ("twice_1to8", {"N": range(1, 9)}, ("N+2",))
    spec = spec_of({**GOOD, "operators": [{"kernel": "own.pdojo", "shapes": ["1..16"]}]}, "spec.toml", tmp_path)
    with pytest.raises(UsageError, match=r"1\.\.16: the size N is 1 to 8, not 16"):
        entries_of(spec)


def test_numerics_and_constants() -> None:
    row = {"kernel": "softmax", "shapes": ["4x8"], "numerics": ["contract"]}
    (entry,) = entries_of(spec_of({**GOOD, "operators": [row]}, "spec.toml", Path()))
    assert [each.value for each in entry.kernel.permitted] == ["contract"]


def test_levels() -> None:
    data = {**GOOD, "levels": ["x86-64-avx2", "neoverse-v2", "x86-64-amx", "x86-64-avx512", "aarch64-neon", "rv64gcv"]}
    levels = levels_of(spec_of(data, "spec.toml", Path()), measure=False)
    names = [level.name for level in levels]
    assert names == ["neoverse-v2", "aarch64-neon", "rv64gcv", "x86-64-amx", "x86-64-avx512", "x86-64-avx2"]
    assert not any(level.is_measured for level in levels)
    assert all(feature_tests(level.machine) for level in levels)


@pytest.mark.parametrize(
    ("level", "message"),
    [("nvidia-sm90", "is no CPU"), ("x86-64-avx3", "unknown machine"), ("toy", "is no CPU")],
)
def test_refused_levels(level: str, message: str) -> None:
    with pytest.raises(UsageError, match=rf"^spec\.toml: key 'levels': .*{message}"):
        levels_of(spec_of({**GOOD, "levels": [level]}, "spec.toml", Path()), measure=False)


def test_a_search_needs_a_level_that_runs_here() -> None:
    other = "rv64gcv" if pdojo.machine().architecture != "riscv64" else "neoverse-v2"
    with pytest.raises(UsageError, match=r"'tuning\.search': this computer runs no level"):
        levels_of(spec_of({**GOOD, "levels": [other], "tuning": {"search": "evolve"}}, "s", Path()), measure=True)


def test_the_level_of_this_computer() -> None:
    """It has the features that a program can detect, and its file reads as the same machine."""
    (level,) = levels_of(spec_of({**GOOD, "levels": ["host"]}, "spec.toml", Path()), measure=True)
    assert level.is_measured
    assert level.machine.features == detectable(pdojo.machine())
    assert len(feature_tests(level.machine)) > 0


def test_budgets_are_part_of_the_effort() -> None:
    assert TuningSpec().text != TuningSpec(search="evolve").text != TuningSpec(search="evolve", seed=1).text


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("ResNet-50", "resnet_50"),
        ("3d", "d"),
        ("", "model"),
        ("math", "math_model"),
        ("pd", "pd_model"),
        ("Größe", "gr__e"),
    ],
)
def test_libraries_of_models_have_names(title: str, name: str) -> None:
    assert model_library(title) == name


def test_files_have_one_kernel(tmp_path: Path) -> None:
    text = "kernel {}(x) -> (y)\nx f32 [4] heap\ny f32 [4] heap\n\n4 y[{{0}}] = x[{{0}}]\n\n"
    (tmp_path / "two.pdojo").write_text(text.format("a") + text.format("b"))
    data = {**GOOD, "operators": [{"kernel": "two.pdojo"}]}
    with pytest.raises(
        UsageError, match=r"operators\[0\]: .* has the kernels a, b; .* for a library in a file of its own$"
    ):
        entries_of(spec_of(data, "spec.toml", tmp_path))


def test_unsigned_integers_are_unsigned_in_the_header() -> None:
    """Where every statement reads them so; the others keep their sign."""
    rows = [{"kernel": "matmul_i8", "shapes": ["2x4x3"]}, {"kernel": "relu", "shapes": ["4x8"]}]
    spec = spec_of({**GOOD, "operators": rows}, "spec.toml", Path())
    text = header_text(spec, operators_of(entries_of(spec)), [])
    assert "const uint8_t *a, const int8_t *b, int32_t *c);" in text
    assert "const float *x, float *y);" in text
    assert text.startswith("/* SPDX-License-Identifier: NOASSERTION */\n")


def test_features_have_bits_of_their_own() -> None:
    """Of CPUID and of the auxiliary vector: no two features are the same bit, but crc32, which is part of SSE4.2."""
    assert TESTS["x86_64"]["crc32"] == TESTS["x86_64"]["sse4.2"]
    for architecture, known in TESTS.items():
        bits = [test for name, tests in known.items() for test in tests if name != "crc32"]
        assert len(set(bits)) == len(bits), architecture
        assert all(test.bit < 64 for test in bits)


@pytest.mark.parametrize(
    ("name", "state"),
    [("x86-64-avx2", 0x6), ("x86-64-avx512", 0xE6), ("x86-64-amx", 0x600E6), ("neoverse-v2", 0)],
)
def test_registers_that_the_system_must_keep(name: str, state: int) -> None:
    """XCR0: SSE and AVX; opmask and both halves of ZMM; tile configuration and data."""
    assert state_of(pdojo.machine(name)) == state
