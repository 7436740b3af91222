"""Builds: the folder, equal bytes, interruption, replacement, other architectures, C programs, the database."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pdojo_tools import lib

import pdojo
from loaded_library import Loaded, build_unproved, placed, poisoned, require_compiler, small_spec
from pdojo.dialect.assumptions import with_alignment
from pdojo.dialect.notation import parse_notation, print_notation
from pdojo.errors import MeasurementError, UsageError
from pdojo.library.levels import read_level
from pdojo.library.manifest import MANIFEST, digest, digests, entry_from_json, is_open
from pdojo.library.objects import compile_program
from pdojo.library.programs import BuildListener, Finished
from pdojo.library.publishing import check_digests
from pdojo.passes.scheduled_kernel import make_moves
from pdojo.search.database import Database
from pdojo.transforms.trace import Trace
from toolchain import require_tool

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
    assert [is_open(entry.sizes) for entry in entries] == [False] * 5 + [True] * 3
    assert {variant.level for entry in entries for variant in entry.variants} == set(data["levels"])
    assert not (built.parent / ".dist.building").exists()
    assert (built / "LICENSE").read_text() == "SPDX-License-Identifier: MIT\n"
    sources = [path for path in built.rglob("*") if path.suffix in (".c", ".h")]
    assert {path.name for path in sources} == {"small.h", "dispatch.c", "runtime.c", "runtime.h"}
    for source in sources:
        licence = "Apache-2.0 WITH LLVM-exception" if "runtime" in source.name else "MIT"
        assert source.read_text().startswith(f"/* SPDX-License-Identifier: {licence} */\n")


def test_programs_are_replayed_from_the_folder(built: Path) -> None:
    """Kernel, trace and machine as text give the digests of program and object file in the manifest."""
    data = json.loads((built / MANIFEST).read_text())
    chosen = ("matmul_f32_6x10x8", "matmul_f32_3x5x7", "softmax_f32_1to2147483647x16")
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
    require_tool("nm", "--version")
    listed = subprocess.run(
        ["nm", "-D", "--defined-only", small.library._name], capture_output=True, text=True, check=True
    )
    names = {line.split()[2].partition("@")[0] for line in listed.stdout.splitlines() if " A " not in line}
    versions = {line.rpartition("@")[2] for line in listed.stdout.splitlines() if " A " not in line}
    assert versions == {"SMALL_2"}
    functions = {"create", "create_level", "destroy", "message", "version", "level", "softmax_f32", "matmul_f32"}
    assert names == {f"small_{name}" for name in functions}


def test_two_builds_have_the_same_bytes(tmp_path: Path) -> None:
    require_compiler()
    folders = [tmp_path / "one" / "dist", tmp_path / "another" / "place"]
    for folder in folders:
        folder.parent.mkdir()
        build_unproved(small_spec(**TINY), folder)
    first, second = ({p.relative_to(f): p.read_bytes() for p in f.rglob("*") if p.is_file()} for f in folders)
    assert first == second


def test_an_interrupted_build_goes_on(tmp_path: Path) -> None:
    require_compiler()
    spec, folder = small_spec(levels=["host"]), tmp_path / "dist"
    with pytest.raises(KeyboardInterrupt):
        build_unproved(spec, folder, listener=Stop(after=2))
    assert not folder.exists()
    # A program of which only a half was written is made again.
    kept = sorted((tmp_path / ".dist.building" / "programs").glob("*.json"))
    assert len(kept) == 2
    kept[0].write_text(kept[0].read_text()[:40])
    second = Stop()
    build_unproved(spec, folder, listener=second)
    assert second.kept == 1
    check_digests(folder)
    assert not (tmp_path / ".dist.building").exists()


@pytest.mark.slow
def test_a_killed_build_goes_on(tmp_path: Path) -> None:
    """Builds are killed at ten moments; the next one ends with the same bytes, and no library is there half written."""
    require_compiler()

    def ran(folder: Path, last: int | None = None) -> tuple[int, int]:
        """Build in a process that is killed at its operation `last` on files; its exit status, and their number."""
        paths = {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), *sys.path])}
        command = [sys.executable, "-c", _BUILD, str(folder), str(last)]
        done = subprocess.run(command, env={**os.environ, **paths}, stdout=subprocess.PIPE, text=True, check=False)
        return done.returncode, int(done.stdout or 0)

    status, operations = ran(tmp_path / "whole")
    assert status == 0
    wanted = digests(tmp_path / "whole")
    for moment in range(10):
        folder = tmp_path / f"dist{moment}"
        assert ran(folder, operations * (2 * moment + 1) // 20)[0] == -signal.SIGKILL
        if not folder.exists():
            assert ran(folder)[0] == 0
        assert digests(folder) == wanted
        assert [path.name for path in tmp_path.glob(".*")] == []


_BUILD = """
import os, signal, sys
from pathlib import Path
from loaded_library import build_unproved, small_spec
from pdojo.library.verify import check_proof
count = 0
FILES = {"open", "os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.chmod", "shutil.rmtree", "subprocess.Popen"}
def hook(event, arguments):
    global count
    if event in FILES:
        count += 1
        if str(count) == sys.argv[2]:
            os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(hook)
spec = small_spec(operators=[{"kernel": "relu", "shapes": ["4x8"]}], levels=["host"])
build_unproved(spec, Path(sys.argv[1]), check=check_proof)
print(count)
"""


def test_other_specifications_do_not_take_old_programs(tmp_path: Path) -> None:
    require_compiler()
    with pytest.raises(KeyboardInterrupt):
        build_unproved(small_spec(**TINY), tmp_path / "dist", listener=Stop(after=1))
    listener = Stop()
    with pytest.raises(KeyboardInterrupt):
        build_unproved(small_spec(**{**TINY, "threads": 1}), tmp_path / "dist", listener=Stop(after=1))
    # The prefix is in the names of symbols.
    build_unproved(small_spec(**{**TINY, "threads": 1, "prefix": "own"}), tmp_path / "dist", listener=listener)
    assert (listener.kept, listener.count) == (0, 2)


def test_replacing(tmp_path: Path) -> None:
    require_compiler()
    folder, other = tmp_path / "dist", tmp_path / "other"
    build_unproved(small_spec(**TINY), folder)
    with pytest.raises(UsageError, match="exists; --force replaces it"):
        build_unproved(small_spec(**TINY), folder)

    def fails(_: Path) -> None:
        raise MeasurementError("it is wrong")

    before = digests(folder)
    with pytest.raises(MeasurementError, match="it is wrong"):
        build_unproved(small_spec(version="9.0.0", **TINY), folder, check=fails, force=True)
    assert digests(folder) == before
    build_unproved(small_spec(version="9.0.0", **TINY), folder, force=True)
    assert json.loads((folder / MANIFEST).read_text())["version"] == "9.0.0"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dist"]
    other.mkdir()
    (other / "precious.txt").write_text("text")
    with pytest.raises(UsageError, match="is no library of pdojo"):
        build_unproved(small_spec(**TINY), other, force=True)
    assert (other / "precious.txt").read_text() == "text"


def test_a_library_that_was_about_to_be_replaced_comes_back(tmp_path: Path) -> None:
    """A process was killed between the two renames."""
    require_compiler()
    folder = tmp_path / "dist"
    build_unproved(small_spec(**TINY), folder)
    folder.rename(tmp_path / ".dist.old")
    with pytest.raises(UsageError, match="exists; --force replaces it"):
        build_unproved(small_spec(**TINY), folder)
    check_digests(folder)


@pytest.mark.parametrize("name", [".dist.old", ".dist.building"])
def test_what_is_no_library_stays(tmp_path: Path, name: str) -> None:
    """A folder or a link of the user has the name of a folder of builds."""
    require_compiler()
    other = tmp_path / "other"
    other.mkdir()
    (other / "precious.txt").write_text("text")
    (tmp_path / name).symlink_to(other)
    for force in (False, True):
        with pytest.raises(UsageError, match=rf"'.*{name}' is "):
            build_unproved(small_spec(**TINY), tmp_path / "dist", force=force)
    if name == ".dist.old":
        (tmp_path / name).unlink()
        other.rename(tmp_path / name)
        with pytest.raises(UsageError, match="is no library of pdojo"):
            build_unproved(small_spec(**TINY), tmp_path / "dist", force=True)
    assert sorted(path.name for path in tmp_path.rglob("*.txt")) == ["precious.txt"]
    assert not (tmp_path / "dist").exists()


def test_operators_with_names_of_the_runtime(tmp_path: Path) -> None:
    require_compiler()
    (tmp_path / "k.pdojo").write_text("kernel k(x) -> (y)\nx f32 [4] heap\ny f32 [4] heap\n\n4 y[{0}] = x[{0}] + 1\n")
    own = [{"kernel": str(tmp_path / "k.pdojo"), "name": name} for name in ("pd", "levels", "call", "int")]
    build_unproved(small_spec(operators=own, levels=["host"]), tmp_path / "dist")
    library = Loaded.of(tmp_path / "dist")
    handle = library.create()
    x = placed(np.random.default_rng(3).normal(size=4).astype(np.float32))
    for name in ("pd", "levels", "call", "int"):
        y = poisoned((4,))
        assert library.call(name, handle, [], [x, y]) == 0
        np.testing.assert_array_equal(y, x + 1)
    library.function("destroy")(handle)


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
            build_unproved(spec, tmp_path / name, database=database, listener=Hows())
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
        found = build_unproved(spec, tmp_path / "dist", database=database, listener=Hows())
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


def test_models_of_onnx_at_ranges(tmp_path: Path) -> None:
    """Extents of one name are one size, which calls give."""
    onnx = pytest.importorskip("onnx")
    require_compiler()
    text = """<ir_version: 8, opset_import: ["" : 17]>
    m (float[n, k] x, float[n] z) => (float[n] y) { s = ReduceMax <axes = [1], keepdims = 0> (x) y = Add (s, z) }"""
    model, spec, folder = tmp_path / "m.onnx", tmp_path / "spec.toml", tmp_path / "dist"
    model.write_bytes(onnx.parser.parse_model(text).SerializeToString())
    spec.write_text('name = "open"\nlevels = ["host"]\ntuning = { measure = false }\n')
    assert lib.main(["build", str(spec), "--from", str(model), "--shape", "n=1..6,k=2..8/2", "-o", str(folder)]) == 0
    library = Loaded.of(folder, "open")
    handle, random = library.create(), np.random.default_rng(1)
    for n, k in ((1, 2), (6, 8), (5, 4)):
        x, z = (placed(random.normal(size=shape).astype(np.float32)) for shape in ((n, k), (n,)))
        y = poisoned((n,))
        assert library.call("reducemax_add", handle, [n, k], [x, z, y]) == 0
        np.testing.assert_allclose(y, x.max(1) + z, rtol=1e-6)
    for sizes in ([7, 2], [1, 3]):
        assert library.call("reducemax_add", handle, sizes, [x, z, y]) != 0
    library.function("destroy")(handle)


def test_kernels_of_models(tmp_path: Path) -> None:
    """Kernels with fixed sizes are operators without size arguments; equal ones are one operator."""
    require_compiler()
    kernels = [pdojo.load("relu:4x8"), pdojo.load("relu:4x8"), pdojo.load("relu:2x3")]
    spec = small_spec(operators=[], levels=["host"])
    found = build_unproved(spec, tmp_path / "dist", [("model", kernel) for kernel in kernels])
    assert [entry.operator for entry in found.entries] == ["relu", "relu_2"]
    library = Loaded.of(tmp_path / "dist")
    handle = library.create()
    for operator, shape in (("relu", (4, 8)), ("relu_2", (2, 3))):
        x, y = placed(np.random.default_rng(1).normal(size=shape).astype(np.float32)), poisoned(shape)
        assert library.call(operator, handle, [], [x, y]) == 0
        assert (y == np.maximum(x, 0)).all()
    library.function("destroy")(handle)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-o", "dist"], "name a specification (SPEC.toml), a model"),
        (["no.toml", "-o", "dist"], "cannot read the specification 'no.toml'"),
        (["no.toml", "-o", "dist", "--weights", "beside"], "--weights belongs to a model on the command line"),
        (["--torch", "-o", "dist"], "name a specification (SPEC.toml), a model"),
        (["nothing", "--torch", "-o", "dist"], "'nothing' names no function; write MODULE:FUNCTION"),
        (["no.toml", "-o", "dist", "--shape", "n=1"], "--shape belongs to an ONNX model"),
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


def test_folders_with_brackets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A message is no markup: `[/b]` would be an error of it."""
    require_compiler()
    spec, folder = tmp_path / "spec.toml", tmp_path / "a[" / "b]"
    folder.parent.mkdir()
    # A byte order mark and lines of another system.
    text = 'name = "small"\ntuning = { measure = false }\n[[operators]]\nkernel = "relu"\nplain = ["4x8"]\n'
    spec.write_bytes(text.replace("\n", "\r\n").encode("utf-8-sig"))
    assert lib.main(["build", str(spec), "-o", str(folder)]) == 0
    assert f"in {folder}: 1 entry, 2 programs for" in capsys.readouterr().out
