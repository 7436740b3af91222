"""Digests of our own source: whatever costs depend on is in them, so that no cost outlives the code that it is of."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import pdojo
from pdojo.backends.common import source_digest as sources
from pdojo.backends.common.source_digest import RUNNING, source_digest, whole_digest
from pdojo.backends.gpu.environment import SOURCES as DEVICE
from pdojo.backends.measure.environment import environment
from pdojo.backends.snitch.backend import SOURCES as SIMULATION

FOLDER = Path(pdojo.__file__).parent
_READ = """
import sys
from pathlib import Path
import pdojo
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation import parse_notation

TEXT = "kernel k(x) -> (y)\\nx f32 [4, 8] heap\\ny f32 [4, 8] heap\\n\\n4 8 y[{0},{1}] = exp(x[{0},{1}])\\n"
kernel = parse_notation(TEXT)[0]
"""
_RUN = """
from pdojo.backends.llvm.executable import compile
import pdojo.backends.measure.session
import pdojo.backends.measure.child
compile(kernel)
"""
_SIMULATE = """
from pdojo.backends.measure import KernelReference, MeasuredProgram, Simulated, Simulation
from pdojo.backends.snitch.session import simulate
simulated = simulate(Simulation(MeasuredProgram(TEXT, machine("snitch-xdiv")), KernelReference(TEXT), 0, 10**6), print)
assert isinstance(simulated, Simulated), simulated
"""
_ON_A_DEVICE = """
import pdojo.backends.gpu.executable
import pdojo.backends.gpu.session
from pdojo.backends.gpu.spelling import CudaSpelling
from pdojo.backends.gpu.targets import device_text
kernel = parse_notation(TEXT.replace("4 8 y", "4:g 8:b y"))[0]
assert device_text(kernel, spelling=CudaSpelling(), machine=machine("nvidia-sm90"))
"""
_PRINT = """
folder = Path(pdojo.__file__).parent
for name, module in list(sys.modules.items()):
    if name.split(".")[0] == "pdojo" and module.__file__:
        print("FILE", Path(module.__file__).relative_to(folder).as_posix())
"""
_READING = ("dialect/notation/", "errors.py", "files.py", "__init__.py", "plugins.py")
"""How a program is read does not change what it costs."""


@pytest.mark.parametrize(
    ("work", "patterns"),
    [(_RUN, RUNNING), (_SIMULATE, SIMULATION), (_ON_A_DEVICE, DEVICE)],
    ids=["run", "simulate", "device"],
)
def test_what_runs_is_in_the_digest(work: str, patterns: tuple[str, ...]) -> None:
    code = _READ + work + _PRINT
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    used = {line.removeprefix("FILE ") for line in done.stdout.splitlines() if line.startswith("FILE ")}
    assert len(used) > 40
    covered = {path.relative_to(FOLDER).as_posix() for pattern in patterns for path in FOLDER.glob(pattern)}
    assert not {path for path in used - covered if not path.startswith(_READING)}


def test_a_digest_is_of_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert environment()["lowering"] == source_digest(*RUNNING) != source_digest(*SIMULATION)
    monkeypatch.setattr(sources, "PACKAGE", tmp_path)
    found: set[str] = set()
    for name, text in (("a.py", "1"), ("a.py", "2"), ("b.py", "2")):
        (tmp_path / name).write_text(text)
        # What was asked for before is remembered: code that is loaded does not change.
        whole_digest.cache_clear()
        found.add(source_digest("*.py"))
    assert len(found) == 3
    whole_digest.cache_clear()
