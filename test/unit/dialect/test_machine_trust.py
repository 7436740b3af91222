"""Kernels, traces and machine files are data: what they name is not read, their code runs only where it is trusted."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from pdojo_tools.opt import main as opt
from pdojo_tools.run import main as run
from pdojo_tools.snitch import main as snitch
from pdojo_tools.tune import main as tune

import pdojo
from benchmarks.bench import main as bench
from pdojo.backends.c.targets import c_text
from pdojo.backends.llvm.executable import compile as compile_kernel
from pdojo.dialect.machines.machine_file import machine_from_json, machine_to_json
from pdojo.dialect.machines.registry import introduce, known_machine, machine, machines
from pdojo.dialect.notation import parse_notation
from pdojo.errors import LoweringError, NotationError, UsageError
from pdojo.files import LARGEST
from pdojo.transforms.trace import Trace

KERNEL = "kernel k(x) -> (y)\n{}x f32 [2] heap\ny f32 [2] heap\n\n2{} y[{{0}}] = x[{{0}}]\n"
PLAIN = KERNEL.format("", "")
FILE = """inherits = "toy"
name = "{name}"
[[intrinsics]]
name = "cp"
meaning = '''
kernel cp(a) -> (b)
a f32 [2] heap
b f32 [2] heap

2 b[{{0}}] = a[{{0}}]
'''
[intrinsics.templates]
c = "static inline void cp(float *a, float *b) {{ b[0] = a[0]; b[1] = a[1]; }}"
llvm = '''
define void @cp(ptr %a, ptr %b) alwaysinline {{
  %v = load <2 x float>, ptr %a, align 4
  store <2 x float> %v, ptr %b, align 4
  ret void
}}
'''
"""


@pytest.fixture
def described(tmp_path: Path) -> Path:
    """A machine file with an instruction and its code."""
    path = tmp_path / "m.toml"
    path.write_text(FILE.format(name="trusting"))
    return path


def written(folder: Path, text: str, name: str = "k.pdojo") -> str:
    path = folder / name
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize("path", ["evil/m.toml", "/dev/zero", "m.toml", "..", "a\\b", "", " ", "a\x1b[31m"])
def test_kernels_name_no_files(path: str) -> None:
    with pytest.raises(NotationError, match="a kernel names a machine that is known"):
        parse_notation(KERNEL.format(f'machine "{path}"\n'.replace("\\", "\\\\"), ""))
    with pytest.raises(UsageError, match="is no name of a machine"):
        known_machine(path)


def test_mlir_names_no_files(described: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    body = "{ pdojo.scope %i = 2 { pdojo.op %y[%i] = %x[%i] } }"
    arguments = "in x %x : memref<2xf32>, out y %y : memref<2xf32>"
    text = f'pdojo.kernel @k({arguments}) attributes {{machine = "{described}"}} {body}'
    assert opt([written(tmp_path, text, "k.mlir"), "--list-moves"]) == 1
    assert "a kernel names a machine that is known" in capsys.readouterr().err


def test_traces_name_no_files() -> None:
    with pytest.raises(UsageError, match=r"'evil/m.toml' is no name of a machine"):
        Trace.parse("# pdojo trace 1\nkernel k\nmachine evil/m.toml\n")


def test_code_of_files_needs_trust(described: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """For everything that is printed to be compiled, and for everything that is compiled."""
    kernel = written(tmp_path, KERNEL.format("machine trusting\n", ":m(cp)"))
    for target in ("c", "llvm", "asm", "obj", "c-header"):
        output = tmp_path / f"out.{target}"
        common = [kernel, "-t", target, "-o", str(output), "--machine", str(described)]
        assert opt(common) == 1
        error = capsys.readouterr().err
        assert "'cp', whose template is code of a machine file" in error
        assert "--trust-machine" in error
        assert not output.exists()
        assert opt([*common, "--trust-machine"]) == 0
        assert output.read_bytes()
    timed = [kernel, "--no-time", "--machine", str(described)]
    assert run(timed) == 1
    assert "--trust-machine" in capsys.readouterr().err
    assert run([*timed, "--trust-machine"]) == 0
    tuned = [kernel, "--pass", "none", "--machine", str(described)]
    assert tune(tuned) == 1
    assert "--trust-machine" in capsys.readouterr().err


def test_python_calls_need_trust(described: Path) -> None:
    (kernel,) = parse_notation(KERNEL.format("", ":m(cp)"))
    for compiler in (compile_kernel, c_text):
        with pytest.raises(LoweringError, match=r"trust=True"):
            compiler(kernel, machine=pdojo.machine(str(described)))
        assert compiler(kernel, machine=pdojo.machine(str(described), trust=True))


def test_trust_is_inherited_by_files_alone(described: Path, tmp_path: Path) -> None:
    """What pdojo brings stays trusted; code of a file, and of files that it inherits from, is as the reader says."""
    child = tmp_path / "child.toml"
    child.write_text('inherits = "m.toml"\nname = "child"\n')
    read = {i.name: i.trusted for i in machine(str(child)).intrinsics}
    assert read == {"toy_dot": True, "toy_add": True, "cp": False}
    assert all(i.trusted for i in machine(str(child), trust=True).intrinsics)
    assert all(i.trusted for name in machines() for i in machine(name).intrinsics)


@pytest.mark.parametrize("trust", [False, True])
def test_other_processes_trust_no_more(described: Path, trust: bool) -> None:
    read = machine(str(described), trust=trust)
    assert machine_from_json(json.loads(json.dumps(machine_to_json(read)))) == read
    assert ("untrusted" in machine_to_json(read)) is not trust


def test_names_of_files_are_known_after_they_were_given(described: Path) -> None:
    described.write_text(FILE.format(name="introduced"))
    with pytest.raises(UsageError, match="unknown machine 'introduced'"):
        known_machine("introduced")
    introduce(machine(str(described)))
    assert known_machine("introduced").name == "introduced"
    assert "introduced" not in machines()


def special(folder: Path) -> dict[str, str]:
    """What no tool should read, and how messages call it."""
    pipe = folder / "pipe"
    os.mkfifo(pipe)
    large = folder / "large"
    large.write_bytes(b" " * (LARGEST + 1))
    inside = folder / "folder"
    inside.mkdir()
    kinds = {pipe: "a pipe, a socket or a device", Path("/dev/zero"): "a pipe, a socket or a device"}
    return {str(path): text for path, text in {**kinds, large: "larger than 1 MiB", inside: "irectory"}.items()}


READERS: dict[str, Callable[[str, str], int]] = {
    "opt": lambda path, _: opt([path]),
    "opt of a trace": lambda path, kernel: opt([kernel, "--apply-trace", path]),
    "opt for a machine": lambda path, kernel: opt([kernel, "--list-moves", "--machine", path]),
    "run": lambda path, _: run([path]),
    "run of a trace": lambda path, kernel: run([kernel, "--trace", path]),
    "run for a machine": lambda path, kernel: run([kernel, "--machine", path]),
    "tune": lambda path, _: tune([path]),
    "tune of a trace": lambda path, kernel: tune([kernel, "--trace", path]),
    "tune for a machine": lambda path, kernel: tune([kernel, "--machine", path]),
    "snitch": lambda path, _: snitch([path]),
    "results": lambda path, _: bench(["--show", path]),
    "unfinished results": lambda path, _: bench(["--resume", path]),
}


@pytest.mark.parametrize("reader", READERS)
def test_special_files(reader: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kernel = written(tmp_path, PLAIN)
    for path, expected in special(tmp_path).items():
        assert READERS[reader](path, kernel) in (1, 2)
        shown = capsys.readouterr().err
        assert expected in shown or ("results" in reader and "larger" in expected), shown
        assert shown.count("error:") == 1


def test_benchmarks_name_no_files(described: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench(["--machine", str(described), "-o", str(tmp_path / "out.json")]) == 2
    assert "is no name of a machine" in capsys.readouterr().err
