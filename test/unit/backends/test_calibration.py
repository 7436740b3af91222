"""What was measured on a processor: reading, writing, conclusions, and the tool that measures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pdojo_tools import calibrating
from pdojo_tools.machine import conclusions, main
from rich.console import Console

from pdojo.backends.calibration import processor as calibration
from pdojo.backends.registry import backend_of
from pdojo.dialect.assumptions import with_alignment
from pdojo.dialect.flow.program import Program
from pdojo.dialect.machines import host as detection
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.machines.machine_file import machine_facts, machine_from_json, machine_to_json
from pdojo.dialect.machines.measured import CopyRate, ProcessorMeasurements, ReadRate
from pdojo.dialect.machines.registry import host, machine
from pdojo.dialect.machines.writing import machine_text
from pdojo.dialect.notation import parse_notation
from pdojo.dialect.rules.validate import validate
from pdojo.dialect.view.build import nest_of
from pdojo.errors import UsageError
from pdojo.kernels import workload
from pdojo.passes.passes import run_pass
from pdojo.transforms.game import Game

MIB = 1 << 20


def copies(threads: int, plain: dict[int, float], past: dict[int, float]) -> Iterator[CopyRate]:
    """Rates by footprint in MiB, in GB/s, of plain stores and of those past the caches."""
    for nontemporal, rates in ((False, plain), (True, past)):
        for footprint, rate in rates.items():
            yield CopyRate(threads, footprint * MIB, nontemporal, 1, rate * 1e9)


INTEL = ProcessorMeasurements(
    "Xeon",
    "2026-11-24",
    "pdojo-machine calibrate",
    (
        *copies(1, {1: 92, 8: 60, 32: 31, 96: 24, 256: 15}, {1: 43, 8: 40, 32: 29, 96: 28, 256: 20}),
        *copies(2, {1: 169, 8: 100, 32: 61, 96: 48, 256: 31}, {1: 81, 8: 70, 32: 59, 96: 58, 256: 52}),
    ),
    (ReadRate(1, 256 * MIB, 1, 0, 15e9), ReadRate(1, 256 * MIB, 1, 1024, 18e9), ReadRate(1, 256 * MIB, 4, 4096, 16e9)),
    {"fma_64": 1.1e11, "exp": 5e9},
    1.5e-6,
)
AMD = ProcessorMeasurements(copy=tuple(copies(2, {1: 168, 8: 181, 32: 48, 256: 36}, {1: 52, 8: 55, 32: 52, 256: 52})))


def test_conclusions() -> None:
    """The smallest footprint from which all larger ones agree; another number of threads takes the next smaller one."""
    assert (INTEL.nontemporal_from(1), INTEL.nontemporal_from(2), INTEL.nontemporal_from(8)) == (96 * MIB,) * 3
    assert (INTEL.usable_cache(1), INTEL.usable_cache(2)) == (96 * MIB, 96 * MIB)
    assert INTEL.prefetch_distance(1) == 1024
    assert (AMD.nontemporal_from(2), AMD.usable_cache(2), AMD.prefetch_distance(2)) == (32 * MIB, 8 * MIB, None)
    never = ProcessorMeasurements(copy=tuple(copies(1, {1: 90, 256: 30}, {1: 40, 256: 30})))
    assert never.nontemporal_from(1) is None
    useless = replace(INTEL, read=(ReadRate(1, MIB, 1, 0, 15e9), ReadRate(1, MIB, 1, 512, 15.1e9)))
    assert useless.prefetch_distance(1) == 0


def test_stores_to_several_places() -> None:
    """Stores past the caches to four places in turn are measured for themselves; three places count as four."""
    slow = [CopyRate(2, 256 * MIB, nontemporal=True, streams=4, rate=8e9)]
    measured = replace(AMD, copy=(*AMD.copy, *slow))
    assert [measured.nontemporal_from(2, streams) for streams in (1, 3, 4, 9)] == [32 * MIB, None, None, None]
    described = replace(machine("x86-64-avx2"), threads=2, measured=measured)
    assert (described.streaming_from(1), described.streaming_from(4)) == (32 * MIB, float("inf"))


def test_without_measurements() -> None:
    """A virtual machine reports the last cache of the whole socket: nobody counts on it."""
    assert not ProcessorMeasurements()
    assert (ProcessorMeasurements().usable_cache(1), ProcessorMeasurements().nontemporal_from(1)) == (None, None)
    socket = replace(machine("x86-64-avx512"), threads=2, cache_bytes=(48 << 10, 2 * MIB, 260 * MIB))
    assert (socket.usable_cache, socket.streaming_bytes) == (6 * MIB, 16 * MIB)
    assert machine("toy").usable_cache == machine("toy").streaming_bytes == 256
    assert replace(socket, measured=AMD).streaming_bytes == 32 * MIB


@pytest.mark.parametrize("parent", ["x86-64-avx512", None])
def test_files(tmp_path: Path, parent: str | None) -> None:
    described = replace(
        machine("x86-64-zen4"), name="mine", intrinsics=machine("x86-64-avx512").intrinsics, measured=INTEL
    )
    file = tmp_path / "mine.toml"
    file.write_text(machine_text(described, None if parent is None else machine(parent)))
    read = machine(str(file), trust=True)
    assert read == (described if parent else replace(described, intrinsics=()))
    assert machine_from_json(machine_to_json(read)) == read
    assert machine_facts(read) == machine_facts(replace(read, measured=ProcessorMeasurements()))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("copy = [{ threads = 1 }]", "measured.copy': must be a list of tables: threads, footprint, nontemporal"),
        ("thread_start = -1.0", "measured.thread_start': must be a number of at least 0, not -1.0"),
        ('rates = { exp = "fast" }', "measured.rates': must be a table of numbers of at least 0"),
    ],
)
def test_wrong_files(tmp_path: Path, line: str, message: str) -> None:
    file = tmp_path / "m.toml"
    file.write_text(f'inherits = "toy"\nname = "m"\n[measured]\n{line}\n')
    with pytest.raises(UsageError, match=message):
        machine(str(file))


@pytest.mark.parametrize(("measured", "hinted"), [(AMD, True), (INTEL, False), (ProcessorMeasurements(), True)])
def test_the_pass_follows_them(measured: ProcessorMeasurements, hinted: bool) -> None:
    """32 MiB: past the caches on one processor, kept in them on the other; nobody knows: past 16 MiB."""
    described = replace(machine("x86-64-avx512"), cache_bytes=(48 << 10, 2 * MIB, 260 * MIB), measured=measured)
    game = Game(with_alignment(workload("relu:2048x2064").instantiate(), 64), described)
    run_pass("heuristic", game)
    assert ("!nontemporal" in game.program.text) is hinted


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """Measurements of a second, kept in a folder of the test."""
    for name, value in {"FOOTPRINTS": (1 << 16, 1 << 18), "READ": (1 << 16,), "DISTANCES": (0, 512)}.items():
        monkeypatch.setattr(calibration, name, value)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv(detection.UNCALIBRATED)
    detection.detect.cache_clear()
    yield tmp_path
    detection.detect.cache_clear()


def test_host_uses_what_was_measured(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert not host().measured
    assert main(["calibrate"]) == 0
    said = capsys.readouterr().out
    (file,) = small.rglob("*.toml")
    assert f"wrote {file}" in said
    measured = host().measured
    assert {(r.threads, r.footprint) for r in measured.copy} == {
        (threads, footprint) for threads in {1, host().threads} for footprint in calibration.FOOTPRINTS
    }
    assert {r.prefetch for r in measured.read} == {0, 512}
    assert {"copy", "division", "exp", "gather", "masked_store"} < measured.rates.keys()
    assert all(rate > 0 for rate in measured.rates.values())
    assert replace(host(), measured=ProcessorMeasurements()) == detection.uncalibrated()
    assert main(["show"]) == 0
    assert "[measured]" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "measured"),
    [
        ("x86-64-avx512", {"vpdpbusd_512", "vpdpbusd_512_broadcast", "vdpbf16ps_512", "vdpbf16ps_512_broadcast"}),
        ("x86-64-avx2", {"vpmaddwd_256_broadcast"}),
        ("x86-64-amx", {"tdpbf16ps", "tdpbusd", "tdpbsud", "tdpbssd", "tdpbuud"}),
    ],
)
def test_instructions_that_add_are_measured(name: str, measured: set[str]) -> None:
    """On accumulators in registers; the text is a program that the machine has code for."""
    described = machine(name)
    texts = {i.name: calibration.accumulating_kernel(i, 6, 10) for i in described.intrinsics}
    assert measured <= {name for name, text in texts.items() if text is not None}
    for intrinsic, text in texts.items():
        if text is None:
            continue
        (kernel,) = parse_notation(text)
        features = next(i.features for i in described.intrinsics if i.name == intrinsic)
        able = replace(described, features=tuple(sorted({*described.features, *features})))
        validate(Program(kernel, able))
        backend_of(able).check_lowers(nest_of(kernel), able)


def test_it_is_measured_once(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    console, commands = Console(quiet=True), list[str]()

    def measured(here: Machine, command: str, name: str) -> Machine:
        commands.append(command)
        return replace(here, name=name, measured=INTEL)

    monkeypatch.setattr(calibrating, "measured", measured)
    calibrating.calibrate_once(console, wanted=False)
    assert not list(small.rglob("*.toml"))
    for _ in range(2):
        calibrating.calibrate_once(console)
        assert host().measured == INTEL
    assert commands == [calibrating.COMMAND]


def test_a_file_of_measurements_that_is_damaged_is_one_message(small: Path) -> None:
    file = detection.calibration_file(detection.uncalibrated())
    assert file is not None
    file.parent.mkdir(parents=True)
    file.write_text("name = ")
    with pytest.raises(UsageError, match=r"is no TOML"):
        host()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["calibrate", "--threads", "1"], "--threads needs -o"),
        (["calibrate", "-o", "/nonexistent/m.toml"], "there is no folder"),
        (["calibrate", "-o", "-", "--name", "a b"], "'a b' is no name of a machine"),
        (["show", "x86"], "unknown machine 'x86'"),
        ([], "COMMAND"),
    ],
)
def test_mistakes_are_one_message(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1


def test_the_list_names_all_machines(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0
    assert "x86-64-avx512  x86-64 with AVX-512" in capsys.readouterr().out


def test_what_follows_is_said() -> None:
    described: Machine = replace(machine("x86-64-avx512"), measured=AMD)
    assert conclusions(described)[:2] == ["usable cache: 8 MiB, measured", "stores past the caches pay from 32 MiB on"]
    assert "a guess: nothing was measured" in conclusions(machine("x86-64-avx512"))[0]
