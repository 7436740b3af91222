"""Compiling the kernels of models: the cache, damaged files, several processes."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from threading import Timer

import numpy as np
import pytest

from pdojo.backends.calling.arrays import aligned
from pdojo.backends.common import processes as pool
from pdojo.backends.llvm.executable import load
from pdojo.backends.llvm.objects import ObjectCode
from pdojo.dialect.machines.measured import ProcessorMeasurements
from pdojo.dialect.machines.registry import host
from pdojo.dialect.notation import parse_notation
from pdojo.errors import UsageError
from pdojo.model import compiling, progress
from pdojo.model.compiling import KernelRequest, compile_kernels

TEXT = """kernel k{number}(x, w) -> (y)
x f32 [8, 16] heap align 64
w f32 [16] heap const align 64
y f32 [8, 16] heap align 64
p f32 [16] heap const

16 p[{{0}}] = w[{{0}}] * {number}
8 16 y[{{0}},{{1}}] = x[{{0}},{{1}}] + p[{{1}}]
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "pdojo" / "kernels"


def request(number: int = 2, expert: str | None = "heuristic") -> KernelRequest:
    return KernelRequest(TEXT.format(number=number), host(), expert)


def check(number: int, requests: list[KernelRequest]) -> None:
    """Compile and run kernels; the numbers of the kernels begin with `number`."""
    x, w = aligned(np.ones((8, 16), np.float32)), aligned(np.arange(16, dtype=np.float32))
    for place, (each, code) in enumerate(zip(requests, compile_kernels(requests), strict=True)):
        (kernel,) = parse_notation(each.text)
        assert np.array_equal(load(kernel, code, 1)(x, w), x + (number + place) * w)


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts of the kernels that were compiled in this process, from now on."""
    texts: list[str] = []
    original = KernelRequest.compiled

    def recorded(self: KernelRequest) -> ObjectCode:
        texts.append(self.text)
        return original(self)

    monkeypatch.setattr(KernelRequest, "compiled", recorded)
    return texts


def test_kernels_are_compiled_once(compiled: list[str], folder: Path) -> None:
    two = [request(2), request(3)]
    check(2, two[:1])
    assert len(compiled) == 1
    check(2, two)
    check(2, two)
    assert sorted(compiled) == [each.text for each in two]
    assert len(list(folder.glob("*.kernel"))) == 2


def test_equal_kernels_of_a_model_are_compiled_once(compiled: list[str]) -> None:
    first, second = compile_kernels([request(), request()])
    assert first is second
    assert len(compiled) == 1


def test_what_determines_the_code_is_in_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    measured = replace(host(), measured=ProcessorMeasurements(thread_start=1e-3))
    others = [
        request(3),
        request(expert=None),
        replace(request(), machine=None),
        replace(request(), machine=replace(host(), threads=host().threads + 1)),
        replace(request(), machine=measured),
    ]
    keys = {request().key, *(each.key for each in others)}
    assert len(keys) == 1 + len(others)
    monkeypatch.setattr(compiling, "versions", lambda: ["another version"])
    assert request().key not in keys


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "other", "foreign"])
def test_damaged_files_are_compiled_again(damage: str, compiled: list[str], folder: Path) -> None:
    check(2, [request()])
    (file,) = folder.glob("*.kernel")
    data = bytearray(file.read_bytes())
    middle = len(data) // 2
    match damage:
        case "cut":
            del data[middle:]
        case "flipped":
            data[middle] ^= 1
        case "empty":
            data.clear()
        case "foreign":
            contents = b'{"code": "AA=="}'
            data = bytearray(sha256(contents).hexdigest().encode() + b"\n" + contents)
        case _:
            data = bytearray(b"0" * 64 + b"\n{}")
    file.write_bytes(data)
    check(2, [request()])
    check(2, [request()])
    assert len(compiled) == 2


def test_code_under_the_name_of_another_kernel_is_not_used(compiled: list[str], folder: Path) -> None:
    check(2, [request(2)])
    (two,) = folder.glob("*.kernel")
    check(3, [request(3)])
    (three,) = set(folder.glob("*.kernel")) - {two}
    two.write_bytes(three.read_bytes())
    check(2, [request(2)])
    assert len(compiled) == 3


def test_nothing_is_stored_in_a_folder_that_is_a_file(compiled: list[str], folder: Path) -> None:
    folder.parent.mkdir()
    folder.write_text("a file")
    check(2, [request()])
    check(2, [request()])
    assert len(compiled) == 2


def test_without_the_cache_nothing_is_stored(compiled: list[str], folder: Path) -> None:
    for _ in range(2):
        compile_kernels([request()], cached=False)
    assert len(compiled) == 2
    assert not folder.exists()


def test_several_processes_give_the_same_code(monkeypatch: pytest.MonkeyPatch) -> None:
    requests = [request(number) for number in range(2, 6)]
    alone = compile_kernels(requests, cached=False)
    monkeypatch.setattr(pool, "PATIENCE", 0.0)
    monkeypatch.setattr(pool, "_processors", lambda: 2)
    together = compile_kernels(requests)
    assert [each.code for each in together] == [each.code for each in alone]


def test_a_refused_kernel_is_refused_by_other_processes_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "PATIENCE", 0.0)
    monkeypatch.setattr(pool, "_processors", lambda: 2)
    with pytest.raises(UsageError, match="unknown pass 'wrong'"):
        compile_kernels([request(2), request(3, expert="wrong")])


# Progress and interrupts


def terminal_output(requests: list[KernelRequest], monkeypatch: pytest.MonkeyPatch) -> str:
    """The bytes that a terminal gets on standard error while kernels are compiled."""
    master, slave = os.openpty()
    with os.fdopen(slave, "w") as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        compile_kernels(requests)
        stream.write("end")
    text = ""
    while not text.endswith("end"):
        text += os.read(master, 1 << 16).decode()
    os.close(master)
    return text


def test_a_terminal_shows_how_many_kernels_are_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    original = progress.Timer

    def at_once(_: float, function: Callable[[], None]) -> Timer:
        function()
        return original(0.0, lambda: None)

    assert terminal_output([request(2)], monkeypatch) == "end"
    monkeypatch.setattr(progress, "Timer", at_once)
    shown = terminal_output([request(2), request(3), request(4)], monkeypatch)
    assert re.search(r"compiling.*0/2.*0:00:0", shown, re.DOTALL)
    assert "2/2" in shown
    assert terminal_output([request(2), request(3)], monkeypatch) == "end"


def test_nothing_is_shown_without_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "SILENT", 0.0)
    compile_kernels([request(2)])
    monkeypatch.setattr(sys, "stderr", None)
    compile_kernels([request(3)])
    assert capsys.readouterr() == ("", "")


INTERRUPTED = """
import signal, sys, time
from pdojo.backends.llvm.objects import ObjectCode
from pdojo.dialect.machines.registry import host
from pdojo.model import compiling, progress
from pdojo.model.compiling import KernelRequest, compile_kernels
from pdojo.backends.common import processes as pool

pool.PATIENCE, pool._processors = 0.0, lambda: 2
held = pool.Pool
def announced(*given):
    made = held(*given)
    results = made.map
    def map_and_announce(*arguments, **named):
        found = results(*arguments, **named)
        print(*made.processes, flush=True)
        return found
    made.map = map_and_announce
    return made
pool.Pool = announced
if sys.argv[1] == "storing":
    compiling.FileCache.store = lambda *_: signal.raise_signal(signal.SIGINT)
text = sys.stdin.read()
try:
    compile_kernels([KernelRequest(text.format(number=n), host(), "heuristic") for n in range(2, 500)])
except KeyboardInterrupt as error:
    kept = error  # its traceback keeps all frames
    print("interrupted", flush=True)
    time.sleep(60)
"""


@pytest.mark.parametrize("moment", ["waiting", "storing"])
def test_an_interrupt_ends_all_processes_and_leaves_no_half_written_files(moment: str, folder: Path) -> None:
    """Also if the exception is kept, as an interactive session does."""
    command = [sys.executable, "-c", INTERRUPTED, moment]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, start_new_session=True) as run:
        assert run.stdin is not None
        assert run.stdout is not None
        assert run.stderr is not None
        run.stdin.write(TEXT)
        run.stdin.close()
        others = [int(word) for word in run.stdout.readline().split()]
        assert others
        if moment == "waiting":
            os.killpg(run.pid, signal.SIGINT)
        try:
            assert run.stdout.readline() == "interrupted\n"
            for other in others:
                with pytest.raises(ProcessLookupError):
                    os.kill(other, 0)
            assert {path.suffix for path in folder.parent.rglob("*") if path.is_file()} <= {".kernel"}
        finally:
            run.kill()
        assert run.stderr.read() == ""
