"""Machine descriptions: the shipped files, users' files with mistakes, the host."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import pytest
from pdojo_tools.opt import main as opt

import pdojo.dialect.machines
from pdojo.backends.llvm.optimize import processor
from pdojo.dialect.functions import DTYPES
from pdojo.dialect.machines import host as detection
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.machines.machine_file import machine_facts, machine_from_json, machine_to_json
from pdojo.dialect.machines.registry import host, machine, machines
from pdojo.errors import LoweringError, UsageError

FOLDER = Path(pdojo.dialect.machines.__path__[0])
WHOLE = 'name = "m"\nvector_bytes = [16]\nvector_registers = 8\ngather = false\nthreads = 1\n'


def written(folder: Path, text: str, name: str = "m.toml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


@pytest.mark.parametrize("name", [n for n in machines() if n != "host"])
def test_shipped(name: str) -> None:
    described = machine(name)
    assert described.name == name
    assert described.description
    assert machine_from_json(json.loads(json.dumps(machine_to_json(described)))) == described
    for dtype in DTYPES:
        assert all(n >= 2 for n in described.vector_lanes(dtype))


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.toml")), ids=lambda p: p.stem)
def test_every_number_has_a_source(path: Path) -> None:
    """A group of lines that state numbers stands below a comment; models for tests say that theirs are made up."""
    text = path.read_text()
    if path.stem.startswith("toy"):
        assert "made up" in text
        return
    commented = False
    for line in text.splitlines():
        if line.startswith("#") or not line:
            commented = bool(line)
        elif re.match(r"\w+ = [^\"]*\d", line):
            assert commented, f"{path.name}: {line}"


@pytest.mark.parametrize("name", [n for n in machines() if n != "host"])
def test_processors_with_vectors_state_their_rates(name: str) -> None:
    """The defaults are the least that a processor has; those that are known have numbers of their own."""
    described = machine(name)
    if described.architecture and described.vector_bytes and not described.gpu.warp_size:
        assert described.cpu.pipe_bytes
        assert described.cpu.passes(described.vector_bytes[0]) == 1


def test_wide_vectors_take_several_passes() -> None:
    zen4, server = machine("x86-64-zen4"), machine("x86-64-avx512")
    assert [zen4.cpu.passes(n) for n in (16, 32, 64)] == [1, 1, 2]
    assert [server.cpu.passes(n) for n in (16, 32, 64)] == [1, 1, 1]
    assert machine("toy").cpu.passes(64) == 1


def test_facts_of_hardware() -> None:
    assert machine("x86-64-avx512").vector_lanes("f32") == (4, 8, 16)
    assert machine("aarch64-neon").vector_lanes("f32") == (2, 4)
    assert machine("rv64gcv").vector_lanes("f64") == (2, 4)
    assert machine("nvidia-sm90").vector_lanes("f32") == (2, 4)
    assert machine("amd-gfx942").gpu.warp_size == 64
    assert machine("snitch").vector_lanes("f32") == (2,)
    assert machine("snitch").vector_lanes("i32") == ()
    assert (machine("snitch").snitch.frep_instructions, machine("snitch-2024").snitch.frep_instructions) == (32, 16)
    assert machine("snitch-2024").snitch.stream_registers == machine("snitch").snitch.stream_registers == 3


MISTAKES = {
    "unknown key": (WHOLE + "vectr_bytes = [16]\n", "key 'vectr_bytes': no such key; did you mean 'vector_bytes'?"),
    "far key": (WHOLE + "xyzzy = 1\n", "key 'xyzzy': no such key; known keys are name, vector_bytes,"),
    "text": (
        WHOLE + "[gpu]\nwarp_size = 'big'\n",
        "key 'gpu.warp_size': must be a whole number of at least 0, not 'big'",
    ),
    "truth": (
        WHOLE + "[gpu]\nwarp_size = true\n",
        "key 'gpu.warp_size': must be a whole number of at least 0, not true",
    ),
    "negative": (
        WHOLE + "[gpu]\nwarp_size = -1\n",
        "key 'gpu.warp_size': must be a whole number of at least 0, not -1",
    ),
    "no atomic operation": (
        WHOLE + '[gpu]\natomics = ["add.f31"]\n',
        "key 'gpu.atomics': 'add.f31' is no accumulation; write add.f32, max.i32, umin.i64 ...",
    ),
    "no accumulation of floats": (WHOLE + '[gpu]\natomics = ["umax.f32"]\n', "'umax.f32' is no accumulation"),
    "no atomic product": (WHOLE + '[gpu]\natomics = ["mul.i32"]\n', "device code has no atomic operation 'mul.i32'"),
    "no atomic maximum of floats": (WHOLE + '[gpu]\natomics = ["max.f32"]\n', "has no atomic operation 'max.f32'"),
    "a sign for a name": (WHOLE + '[gpu]\natomics = ["+.f32"]\n', "'+.f32' is no accumulation"),
    "flushing what is not there": (
        WHOLE + '[gpu]\natomics = ["add.f64"]\nflushing_atomics = ["add.f32"]\n',
        "key 'gpu.flushing_atomics': 'add.f32' is not among gpu.atomics",
    ),
    "order": (
        WHOLE + "cache_bytes = [8, 4]\n",
        "key 'cache_bytes': must be a list of positive whole numbers, ascending",
    ),
    "zero": (WHOLE + "cache_bytes = [0]\n", "key 'cache_bytes': must be a list of positive whole numbers, ascending"),
    "no memory": (WHOLE + "cache_bytes = []\n", "key 'cache_bytes': must name at least one memory"),
    "features": (WHOLE + "features = [1]\n", "key 'features': must be a list of texts, not [1]"),
    "lanes": (WHOLE + "lanes = { f31 = [4] }\n", "key 'lanes': must be a table of lane counts of at least 2"),
    "one lane": (WHOLE + "lanes = { f32 = [1] }\n", "key 'lanes': must be a table of lane counts of at least 2"),
    "no name": (WHOLE.replace('name = "m"\n', ""), "key 'name': missing; write name = \"m\""),
    "strange name": (WHOLE.replace('"m"', '"m/n"'), "key 'name': 'm/n' is no name of a machine"),
    "own name": (WHOLE.replace('"m"', '"toy"'), "key 'name': 'toy' is a machine that pdojo brings"),
    "missing": (WHOLE.replace("gather = false\n", ""), "key 'gather': missing; write gather = false or inherit it"),
    "threads": (WHOLE.replace("threads = 1", "threads = 0"), "key 'threads': must be at least 1"),
    "power": (WHOLE + "cache_line = 48\n", "key 'cache_line': must be a power of two, not 48"),
    "no unit": (
        WHOLE + "[cpu]\nfma_pipes = 0\n",
        "key 'cpu.fma_pipes': must be at least 1; leave it out if it is unknown",
    ),
    "half a unit": (
        WHOLE + "[cpu]\nload_pipes = 0.5\n",
        "key 'cpu.load_pipes': must be a whole number of at least 0, not 0.5",
    ),
    "no wait": (WHOLE + "[cpu]\nfma_latency = 0\n", "key 'cpu.fma_latency': must be at least 1"),
    "odd unit": (WHOLE + "[cpu]\npipe_bytes = 24\n", "key 'cpu.pipe_bytes': must be a power of two, not 24"),
    "block": (
        WHOLE + "[gpu]\nwarp_size = 32\nblock_threads = 40\n",
        "key 'gpu.block_threads': must be a multiple of warp_size = 32",
    ),
    "half a loop": (WHOLE + "[snitch]\nfrep_trips = 4\n", "key 'snitch.frep_instructions': must not be 0"),
    "half a stream": (WHOLE + "[snitch]\nstream_registers = 4\n", "key 'snitch.stream_dims': must not be 0"),
    "parent": (WHOLE + "inherits = 'vax'\n", "key 'inherits': unknown machine 'vax'"),
    "parent's kind": (
        WHOLE + "inherits = 1\n",
        "key 'inherits': must be the name of a machine or of a file, in quotes",
    ),
    "circle": (
        WHOLE + "inherits = 'm.toml'\n",
        "key 'inherits': the files inherit in a circle: m.toml inherits m.toml",
    ),
    "absent parent": (WHOLE + "inherits = 'n.toml'\n", "n.toml': No such file"),
    "syntax": ("name = \n", "m.toml' is no TOML: Invalid value (at line 1, column 8)"),
    "bytes": ("\0", "m.toml' is no TOML: "),
    "digits": ("threads = " + "9" * 4400, "m.toml' is no TOML: a number has thousands of digits"),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_mistake(case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, expected = MISTAKES[case]
    path = written(tmp_path, text)
    kernel = written(tmp_path, "kernel f(x) -> (y)\nx f32 [8] heap\ny f32 [8] heap\n8 y[{0}] = x[{0}]\n", "f.pdojo")
    assert opt([str(kernel), "--machine", str(path)]) == 2
    shown = capsys.readouterr().err
    assert expected in shown
    assert shown.count("error:") == 1


def test_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot read the machine file '.*none.toml': No such file"):
        machine(str(tmp_path / "none.toml"))
    (tmp_path / "latin.toml").write_bytes(b"name = '\xff'")
    with pytest.raises(UsageError, match="it is no UTF-8 text"):
        machine(str(tmp_path / "latin.toml"))


def test_inheritance(tmp_path: Path) -> None:
    written(tmp_path, WHOLE + "[gpu]\nwarp_size = 4\nblock_threads = 8\n", "parent.toml")
    child = written(tmp_path, 'inherits = "parent.toml"\nname = "child"\nthreads = 3\n', "child.toml")
    described = machine(str(child))
    assert (described.name, described.threads, described.vector_bytes) == ("child", 3, (16,))
    assert (described.gpu.warp_size, described.gpu.block_threads) == (4, 8)
    assert (
        machine(str(written(tmp_path, 'inherits = "host"\nname = "mine"\n', "mine.toml"))).features == host().features
    )


def test_machine_in_a_kernel(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The kernel fact is a name; the option takes the path of a file, too, and the file's name is printed."""
    path = written(tmp_path, 'inherits = "toy"\nname = "mine-3"\nlanes = { f32 = [3] }\n', "my machine.toml")
    text = "kernel f(x) -> (y)\nmachine mine-3\nx f32 [3] heap\ny f32 [3] heap\n\n3 y[{0}] = x[{0}]\n"
    kernel = written(tmp_path, text, "f.pdojo")
    assert opt([str(kernel), "-t", "notation", "--apply=vectorize@y:0"]) == 2
    assert "unknown machine 'mine-3'" in capsys.readouterr().err
    assert opt([str(kernel), "-t", "notation", f"--machine={path}", "--apply=vectorize@y:0"]) == 0
    assert capsys.readouterr().out == text.replace("3 y", "3:v y")
    assert opt([str(kernel), "-t", "notation", "--machine=toy", "--apply=vectorize@y:0"]) == 1
    assert "extent 3 is no vector length of toy for f32: 2, 4" in capsys.readouterr().err


def test_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert opt(["--list-machines"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(machines())
    assert all(len(line.split()) > 1 for line in lines)


def test_code_for_another_architecture() -> None:
    with pytest.raises(
        LoweringError, match="machine 'nvidia-sm90' is of the architecture nvptx64; code for this process"
    ):
        processor(machine("nvidia-sm90"))


FOUND: dict[str, tuple[str, set[str], dict[str, Any]]] = {
    "avx512": ("x86_64", {"avx2", "avx512f"}, {"vector_bytes": (16, 32, 64), "vector_registers": 32}),
    "amx": ("x86_64", {"avx2", "avx512f", "amx-tile"}, {"vector_bytes": (16, 32, 64), "register_bytes": 10240}),
    "avx2": ("AMD64", {"avx2"}, {"vector_bytes": (16, 32), "gather": True}),
    "sse": ("x86_64", set(), {"vector_bytes": (16,), "gather": False}),
    "neon": ("arm64", {"neon"}, {"architecture": "aarch64", "vector_bytes": (8, 16)}),
    "rvv": ("riscv64", {"v", "zvl128b", "zvl512b"}, {"vector_bytes": (64,), "register_bytes": 2048}),
    "scalar": ("riscv64", {"m"}, {"vector_bytes": (), "vector_registers": 0, "architecture": "riscv64"}),
    "other": ("s390x", set(), {"vector_bytes": (), "features": ()}),
}


@pytest.mark.parametrize("case", FOUND)
def test_detection(case: str) -> None:
    architecture, features, expected = FOUND[case]
    described = detection.described(architecture, features)
    assert {key: getattr(described, key) for key in expected} == expected
    assert described.features == tuple(sorted(features))


@pytest.mark.parametrize(
    ("architecture", "features", "core", "like"),
    [
        ("x86_64", {"avx2", "avx512f"}, "znver4", "x86-64-zen4"),
        ("x86_64", {"avx2", "avx512f"}, "sapphirerapids", "x86-64-avx512"),
        ("aarch64", {"neon"}, "neoverse-v2", "neoverse-v2"),
        ("aarch64", {"neon"}, "znver4", "aarch64-neon"),
    ],
)
def test_detection_of_rates(architecture: str, features: set[str], core: str, like: str) -> None:
    described, known = detection.described(architecture, features, core), machine(like)
    assert described.cpu == known.cpu


def test_host() -> None:
    found = host()
    assert isinstance(found, Machine)
    assert found.name == "host"
    assert found.threads >= 1
    assert found.architecture
    assert processor(found).enabled


NARROWER = {"x86_64": "x86-64-avx2", "aarch64": "aarch64-neon", "riscv64": "rv64gcv"}


@pytest.fixture
def narrowed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    """The shipped machine that `host` is narrowed to."""
    name = NARROWER.get(host().architecture)
    if name is None or not set(machine(name).features) <= set(host().features):
        pytest.skip(f"this processor contains none of {', '.join(NARROWER.values())}")
    monkeypatch.setenv(detection.NARROWED, name)
    detection.detect.cache_clear()
    yield machine(name)
    detection.detect.cache_clear()


def test_a_narrowed_host_is_another_machine(narrowed: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its code has only the narrower features; facts, stored results and measurements are its own."""
    found = host()
    assert found.name == "host"
    assert found.description.endswith(f"narrowed to {narrowed.name}")
    assert (found.features, found.vector_bytes, found.cpu) == (narrowed.features, narrowed.vector_bytes, narrowed.cpu)
    for each in (None, found, machine("toy")):
        assert processor(each).enabled == set(narrowed.features)
        assert processor(each).name != llvm.get_host_cpu_name()
    measurements, facts = detection.calibration_file(detection.uncalibrated()), machine_facts(found)
    monkeypatch.delenv(detection.NARROWED)
    detection.detect.cache_clear()
    assert detection.calibration_file(detection.uncalibrated()) != measurements
    assert machine_facts(host()) != facts
    assert processor().name == llvm.get_host_cpu_name()


def test_processes_of_a_narrowed_host_are_narrowed(narrowed: Machine, tmp_path: Path) -> None:
    """A program that needs what the narrower machine lacks is refused, whatever the processor has."""
    text = "kernel f(x) -> (y)\nx f32 [64] heap\ny f32 [64] heap\n\n64 y[{0}] = x[{0}] * 2\n"
    kernel = written(tmp_path, text, "f.pdojo")
    lanes = 2 * narrowed.vector_lanes("f32")[-1]
    wide = written(tmp_path, f"# pdojo trace 1\ntile_scope@y:0{{size={lanes}}}\nvectorize@y:1\n", "f.trace")
    command = [sys.executable, "-m", "pdojo_tools.run", str(kernel), "--no-time", "--trace", str(wide)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert f"extent {lanes} is no vector length of host" in ran.stderr


@pytest.mark.parametrize(
    ("whole", "name", "error"),
    [
        ("x86-64-zen4", "x86-64-avx512", ""),
        ("x86-64-zen4", "x86-64-avx2", ""),
        ("x86-64-avx512", "x86-64-zen4", "can be narrowed to x86-64-avx2, x86-64-avx512, not to 'x86-64-zen4'"),
        ("neoverse-v2", "x86-64-avx2", "can be narrowed to aarch64-neon, neoverse-v2, not to 'x86-64-avx2'"),
        ("x86-64-avx2", "toy", "can be narrowed to x86-64-avx2, not to 'toy'"),
        ("x86-64-avx2", "host", "can be narrowed to x86-64-avx2, not to 'host'"),
    ],
)
def test_narrowing(whole: str, name: str, error: str) -> None:
    if not error:
        assert detection.narrowed(machine(whole), name) == machine(name)
        return
    with pytest.raises(UsageError, match=re.escape(error)):
        detection.narrowed(machine(whole), name)
