"""Builds: the folder, equal bytes, interruption, replacement, other architectures, C programs, the database."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pdojo_tools import lib

import pdojo
from differential.cross import PLATFORMS
from loaded_library import Loaded, placed, poisoned, require_compiler, small_spec
from pdojo.dialect.assumptions import with_alignment
from pdojo.dialect.machines.registry import host
from pdojo.dialect.notation import parse_notation, print_notation
from pdojo.errors import MeasurementError, UsageError
from pdojo.library.build import build_library
from pdojo.library.levels import read_level
from pdojo.library.linking import compiler_for
from pdojo.library.manifest import MANIFEST, digest, digests, entry_from_json
from pdojo.library.objects import compile_program
from pdojo.library.programs import BuildListener, Finished
from pdojo.library.publishing import check_digests
from pdojo.search.database import Database
from pdojo.search.tuning.scheduled_kernel import make_moves
from pdojo.transforms.trace import Trace

EXAMPLE = Path(__file__).parents[3] / "examples" / "library"
TINY: dict[str, Any] = {"operators": [{"kernel": "relu", "shapes": ["4x8"]}], "levels": ["host"]}


class Stop(BuildListener):
    """Ends a build after a number of programs; counts those that are made."""

    def __init__(self, after: int = 1000) -> None:
        self.after, self.count, self.kept = after, 0, 0

    def made(self, finished: Finished) -> None:
        self.count += not finished.is_kept
        self.kept += finished.is_kept
        if self.count == self.after:
            raise KeyboardInterrupt


def test_the_folder(built: Path) -> None:
    data = json.loads((built / MANIFEST).read_text())
    assert data["files"] == digests(built)
    check_digests(built)
    entries = [entry_from_json(entry) for entry in data["entries"]]
    assert [entry.name for entry in entries][:2] == ["matmul_f32_2x9x9", "matmul_f32_3x5x6"]
    assert {entry.dispatch for entry in entries} == {"exact", "chunk", "row"}
    assert {variant.level for entry in entries for variant in entry.variants} == set(data["levels"])
    assert not (built.parent / ".dist.building").exists()
    assert (built / "LICENSE").read_text() == "SPDX-License-Identifier: MIT\n"


def test_programs_are_replayed_from_the_folder(built: Path) -> None:
    """Kernel, trace and machine as text give the digests of program and object file in the manifest."""
    data = json.loads((built / MANIFEST).read_text())
    chosen = ("matmul_f32_6x10x8", "matmul_f32_3x5x7", "softmax_f32_4x16_chunk")
    entries = [entry for entry in map(entry_from_json, data["entries"]) if entry.name in chosen]
    assert len(entries) == len(chosen)
    for entry in entries:
        (plain,) = parse_notation((built / entry.kernel).read_text())
        for variant in entry.variants:
            machine = read_level(built, variant.level)
            made = make_moves(with_alignment(plain, variant.align), machine, None, Trace.load(built / variant.trace))
            assert digest(print_notation(made.after).encode()) == variant.program
            assert digest(compile_program(made.after, machine, variant.symbol).code) == variant.object
            assert (len(made.game.trace.steps) == 0) == (entry.name == "matmul_f32_3x5x7")


def test_nothing_is_exported_but_the_functions(built: Path, small: Loaded) -> None:
    if shutil.which("nm") is None:
        pytest.skip("no nm here; Debian and Ubuntu have it in binutils")
    listed = subprocess.run(
        ["nm", "-D", "--defined-only", small.library._name], capture_output=True, text=True, check=True
    )
    names = {line.split()[2].partition("@")[0] for line in listed.stdout.splitlines() if " A " not in line}
    functions = {"create", "create_level", "destroy", "message", "version", "level", "softmax_f32", "matmul_f32"}
    assert names == {f"small_{name}" for name in functions}


def test_two_builds_have_the_same_bytes(tmp_path: Path) -> None:
    require_compiler()
    folders = [tmp_path / "one" / "dist", tmp_path / "another" / "place"]
    for folder in folders:
        folder.parent.mkdir()
        build_library(small_spec(**TINY), folder)
    first, second = ({p.relative_to(f): p.read_bytes() for p in f.rglob("*") if p.is_file()} for f in folders)
    assert first == second


def test_an_interrupted_build_goes_on(tmp_path: Path) -> None:
    require_compiler()
    spec, folder = small_spec(levels=["host"]), tmp_path / "dist"
    with pytest.raises(KeyboardInterrupt):
        build_library(spec, folder, listener=Stop(after=2))
    assert not folder.exists()
    # A program of which only a half was written is made again.
    kept = sorted((tmp_path / ".dist.building" / "programs").glob("*.json"))
    assert len(kept) == 2
    kept[0].write_text(kept[0].read_text()[:40])
    second = Stop()
    build_library(spec, folder, listener=second)
    assert second.kept == 1
    check_digests(folder)
    assert not (tmp_path / ".dist.building").exists()


def test_a_killed_build_goes_on(tmp_path: Path) -> None:
    """The process is killed between two programs, as if by kill -9; nothing stays locked."""
    require_compiler()
    script = (
        "import os, sys\nfrom pathlib import Path\nfrom loaded_library import small_spec\n"
        "from pdojo.library.build import build_library\nfrom pdojo.library.programs import BuildListener\n"
        "class Kill(BuildListener):\n    def made(self, finished):\n        os.kill(os.getpid(), 9)\n"
        "build_library(small_spec(operators=[{'kernel': 'relu', 'shapes': ['4x8']}], levels=['host']),"
        " Path(sys.argv[1]), listener=Kill())\n"
    )
    folder = tmp_path / "dist"
    paths = {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), *sys.path])}
    killed = subprocess.run([sys.executable, "-c", script, folder], env={**os.environ, **paths}, check=False)
    assert killed.returncode == -9
    assert not folder.exists()
    listener = Stop()
    build_library(small_spec(**TINY), folder, listener=listener)
    assert (listener.kept, listener.count) == (1, 1)


def test_other_specifications_do_not_take_old_programs(tmp_path: Path) -> None:
    require_compiler()
    with pytest.raises(KeyboardInterrupt):
        build_library(small_spec(**TINY), tmp_path / "dist", listener=Stop(after=1))
    listener = Stop()
    build_library(small_spec(**{**TINY, "threads": 1}), tmp_path / "dist", listener=listener)
    assert (listener.kept, listener.count) == (0, 2)


def test_replacing(tmp_path: Path) -> None:
    require_compiler()
    folder, other = tmp_path / "dist", tmp_path / "other"
    build_library(small_spec(**TINY), folder)
    with pytest.raises(UsageError, match="exists; --force replaces it"):
        build_library(small_spec(**TINY), folder)

    def fails(_: Path) -> None:
        raise MeasurementError("it is wrong")

    before = digests(folder)
    with pytest.raises(MeasurementError, match="it is wrong"):
        build_library(small_spec(version="9.0.0", **TINY), folder, check=fails, force=True)
    assert digests(folder) == before
    build_library(small_spec(version="9.0.0", **TINY), folder, force=True)
    assert json.loads((folder / MANIFEST).read_text())["version"] == "9.0.0"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dist"]
    other.mkdir()
    (other / "precious.txt").write_text("text")
    with pytest.raises(UsageError, match="is no library of pdojo"):
        build_library(small_spec(**TINY), other, force=True)
    assert (other / "precious.txt").read_text() == "text"


def test_a_library_that_was_about_to_be_replaced_comes_back(tmp_path: Path) -> None:
    """A process was killed between the two renames."""
    require_compiler()
    folder = tmp_path / "dist"
    build_library(small_spec(**TINY), folder)
    folder.rename(tmp_path / ".dist.old")
    with pytest.raises(UsageError, match="exists; --force replaces it"):
        build_library(small_spec(**TINY), folder)
    check_digests(folder)


def test_damaged_libraries(built: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(built, copy)
    (copy / "kernels" / "matmul_f32_3x5x7.pdojo").write_text("kernel nothing")
    (copy / "added").write_text("")
    with pytest.raises(MeasurementError, match=r"damaged: added, kernels/matmul_f32_3x5x7\.pdojo"):
        check_digests(copy)


def test_measured_choices_are_kept(tmp_path: Path) -> None:
    """The first build races; the second one takes its choices from the database, and has the same bytes."""
    require_compiler()
    spec = small_spec(**{**TINY, "tuning": {"measure": True}})
    hows: list[str] = []

    class Hows(BuildListener):
        def made(self, finished: Finished) -> None:
            hows.append(finished.how)

    with Database(tmp_path / "search.sqlite") as database:
        for name in ("one", "two"):
            build_library(spec, tmp_path / name, database=database, listener=Hows())
    assert hows == ["tuned", "adapted", "database", "adapted"]
    assert digests(tmp_path / "one") == digests(tmp_path / "two")


@pytest.mark.slow
def test_programs_of_searches_are_taken(tmp_path: Path) -> None:
    """The best program of `pdojo.tune` for this computer is that of the library's own level."""
    require_compiler()
    path = tmp_path / "search.sqlite"
    tuned = pdojo.tune("relu:4x8", threads=2, search="evolve", evaluations=3, seed=1, database=path)
    hows: list[str] = []

    class Hows(BuildListener):
        def made(self, finished: Finished) -> None:
            hows.append(finished.how)

    with Database(path) as database:
        spec = small_spec(**{**TINY, "tuning": {"measure": True}})
        found = build_library(spec, tmp_path / "dist", database=database, listener=Hows())
    assert hows == ["database", "adapted"]
    assert found.entries[0].variants[0].program == digest(print_notation(tuned.kernel).encode())


def test_models_of_onnx(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("onnx")
    require_compiler()
    model, spec = tmp_path / "digits.onnx", tmp_path / "spec.toml"
    script = Path(__file__).parents[3] / "examples" / "small_model.py"
    subprocess.run([sys.executable, str(script), str(model)], check=True)
    spec.write_text('name = "digits"\nlevels = ["host"]\ntuning = { measure = false }\n')
    folder = tmp_path / "dist"
    assert lib.main(["build", str(spec), "--from", str(model), "--shape", "batch=2", "-o", str(folder)]) == 0
    assert "library 'digits' 0.1.0" in capsys.readouterr().out
    header = (folder / "include" / "digits.h").read_text()
    assert "int digits_softmax(digits_handle *handle, const float *x, float *y);" in header
    library = Loaded.of(folder, "digits")
    handle = library.create()
    x, y = placed(np.random.default_rng(1).normal(size=(2, 10)).astype(np.float32)), poisoned((2, 10))
    assert library.call("softmax", handle, [], [x, y]) == 0
    np.testing.assert_allclose(y, np.exp(x) / np.exp(x).sum(1, keepdims=True), rtol=1e-5)
    library.function("destroy")(handle)


def test_kernels_of_models(tmp_path: Path) -> None:
    """Kernels with fixed sizes are operators without size arguments; equal ones are one operator."""
    require_compiler()
    kernels = [pdojo.load("relu:4x8"), pdojo.load("relu:4x8"), pdojo.load("relu:2x3")]
    spec = small_spec(operators=[], levels=["host"])
    found = build_library(spec, tmp_path / "dist", [("model", kernel) for kernel in kernels])
    assert [entry.operator for entry in found.entries] == ["relu", "relu_2"]
    library = Loaded.of(tmp_path / "dist")
    handle = library.create()
    for operator, shape in (("relu", (4, 8)), ("relu_2", (2, 3))):
        x, y = placed(np.random.default_rng(1).normal(size=shape).astype(np.float32)), poisoned(shape)
        assert library.call(operator, handle, [], [x, y]) == 0
        assert (y == np.maximum(x, 0)).all()
    library.function("destroy")(handle)


@pytest.mark.parametrize("target", ["neoverse-v2", "rv64gcv"])
def test_other_architectures(target: str, tmp_path: Path) -> None:
    """A C program with the library of another architecture, under qemu-user."""
    platform = PLATFORMS[target]
    platform.require()
    require_compiler(pdojo.machine(target).architecture)
    row = {"kernel": "softmax", "shapes": ["6x16"], "rows": 4}
    build_library(small_spec(levels=[target], operators=[row]), tmp_path / "dist")
    (tmp_path / "main.c").write_text(SOFTMAX)
    (folder,) = (tmp_path / "dist" / "lib").glob("*-linux-gnu")
    command = [
        platform.compiler,
        "-std=gnu11",
        "-Wall",
        "-Wextra",
        "-Werror",
        "main.c",
        "-Idist/include",
        f"-L{folder}",
    ]
    subprocess.run([*command, "-lsmall", "-lm", f"-Wl,-rpath,{folder}", "-o", "main"], cwd=tmp_path, check=True)
    root = f"/usr/{platform.compiler.removesuffix('-gcc')}"
    ran = subprocess.run(
        [*platform.runner, "-L", root, "./main"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == f"{target}\n"


CHOSEN = """
#include <small.h>
#include <stdio.h>

int main(void) {
  float x[32] __attribute__((aligned(64))), y[32];
  small_handle *handle;
  const int code = small_create(&handle, 1);
  if (code == SMALL_LEVEL) puts("none");
  if (code != SMALL_OK) return code != SMALL_LEVEL;
  for (int k = 0; k < 32; k++) x[k] = (float)(k - 16);
  if (small_relu_f32(handle, 4, 8, x, y) != SMALL_OK) return 2;
  for (int k = 0; k < 32; k++)
    if (y[k] != (x[k] > 0 ? x[k] : 0)) return 3;
  puts(small_level(handle));
  small_destroy(handle);
  return 0;
}
"""
VECTORS = "rv64,v=true,vext_spec=v1.0"
PROCESSORS: dict[str, tuple[list[str], dict[str, str]]] = {
    "x86_64": (["x86-64-amx", "x86-64-avx512", "x86-64-avx2"], {"Haswell": "x86-64-avx2", "Nehalem": "none"}),
    "aarch64": (
        ["neoverse-v2", "aarch64-neon"],
        {"cortex-a57": "aarch64-neon", "max,sve128=on,sve-max-vq=1": "neoverse-v2"},
    ),
    "riscv64": (["rv64gcv"], {f"{VECTORS},vlen=256": "rv64gcv", f"{VECTORS},vlen=128": "none", "rv64": "none"}),
}
"""Levels, and the one that is chosen on each processor model of qemu-user."""


@pytest.mark.parametrize("architecture", PROCESSORS)
def test_the_level_follows_the_processor(architecture: str, tmp_path: Path) -> None:
    levels, processors = PROCESSORS[architecture]
    emulator = f"qemu-{architecture}"
    if shutil.which(emulator) is None:
        pytest.skip(f"no {emulator} here; Debian and Ubuntu have it in qemu-user")
    require_compiler(architecture)
    row = {"kernel": "relu", "plain": ["4x8"]}
    build_library(small_spec(levels=levels, operators=[row]), tmp_path / "dist")
    (tmp_path / "main.c").write_text(CHOSEN)
    (folder,) = (tmp_path / "dist" / "lib").glob("*-linux-gnu")
    command = [*compiler_for(architecture).command, "main.c", "-Idist/include", f"-L{folder}", "-lsmall"]
    subprocess.run([*command, f"-Wl,-rpath,{folder}", "-o", "main"], cwd=tmp_path, check=True)
    root = Path(f"/usr/{architecture}-linux-gnu")
    for model, level in processors.items():
        run = [emulator, *(["-L", str(root)] if root.exists() else []), "-cpu", model, "./main"]
        ran = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (ran.returncode, ran.stdout) == (0, f"{level}\n"), (model, ran.stderr)


SOFTMAX = """
#include <math.h>
#include <small.h>
#include <stdio.h>

int main(void) {
  static float x[4000 * 16 + 1], y[4000 * 16 + 1];
  small_handle *handle;
  if (small_create(&handle, 3) != SMALL_OK) return 2;
  for (int k = 0; k < 4000 * 16 + 1; k++) x[k] = (float)(k * 37 % 101) / 25;
  for (int shift = 0; shift < 2; shift++)
    for (int rows = 1; rows <= 4000; rows += rows < 9 ? 1 : 1330) {
      if (small_softmax_f32(handle, rows, 16, x + shift, y + shift) != SMALL_OK) return 3;
      for (int r = 0; r < rows; r++) {
        double sum = 0;
        for (int c = 0; c < 16; c++) sum += exp(x[shift + r * 16 + c]);
        for (int c = 0; c < 16; c++)
          if (fabs(exp(x[shift + r * 16 + c]) / sum - y[shift + r * 16 + c]) > 1e-6) return 4;
      }
    }
  if (small_softmax_f32(handle, 6, 17, x, y) != SMALL_SIZES) return 5;
  puts(small_level(handle));
  small_destroy(handle);
  return 0;
}
"""


def test_the_example(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    require_compiler()
    if shutil.which("gcc") is None:
        pytest.skip("no gcc here; Debian and Ubuntu have it in gcc")
    assert lib.main(["build", str(EXAMPLE / "spec.toml"), "-o", str(tmp_path / "dist")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"12 programs; about \d+ s", lines[0])
    assert re.fullmatch(r"1 of 12: .*: \d+ moves? \(.*\), \d+ s; about \d+ s left", lines[1])
    assert lines[-1].startswith("library 'example' 1.0.0 in ")
    (folder,) = (tmp_path / "dist" / "lib").glob("*-linux-gnu")
    options = [
        "-Wall",
        "-Wextra",
        "-Werror",
        f"-I{tmp_path / 'dist' / 'include'}",
        f"-L{folder}",
        f"-Wl,-rpath,{folder}",
    ]
    main = [str(EXAMPLE / "main.c"), "-lexample", "-lm", "-o", str(tmp_path / "main")]
    subprocess.run(["gcc", "-std=gnu11", *options, *main], check=True)
    ran = subprocess.run([tmp_path / "main"], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("example 1.0.0, level ")


def test_the_generated_c_has_no_warnings(built: Path, tmp_path: Path) -> None:
    compiler = compiler_for(host().architecture)
    for source in ("runtime.c", "dispatch.c"):
        options = ["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-c", str(built / "source" / source)]
        subprocess.run([*compiler.command, *options, "-o", str(tmp_path / "out.o")], check=True)
    header = ["-x", "c++", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", str(built / "include" / "small.h")]
    if shutil.which("g++") is not None:
        subprocess.run(["g++", *header], check=True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-o", "dist"], "name a specification (SPEC.toml), or a model"),
        (["no.toml", "-o", "dist"], "cannot read the specification 'no.toml'"),
        (["no.toml", "-o", "dist", "--shape", "n=1"], "--shape belongs to --from"),
        (["-o", "dist", "--from", "no.onnx"], "no.onnx"),
    ],
)
def test_refused_command_lines(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    if "--from" in arguments:
        pytest.importorskip("onnx")
    assert lib.main(["build", *arguments]) == 2
    out = capsys.readouterr().err
    assert out.startswith("error: ")
    assert message in out
