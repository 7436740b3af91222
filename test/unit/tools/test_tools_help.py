"""Every tool says what it does."""

from __future__ import annotations

import tomllib
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import pytest
from pdojo_tools import opt, tune

import pdojo
from pdojo.dialect.machines.registry import machine
from pdojo.kernels import PRESETS
from pdojo.names import EVALUATORS, EXPERT_PASSES
from pdojo.passes.registry import kind_of_machine
from pdojo.search.evaluators.named import evaluators_of

ROOT = Path(__file__).parents[3]
COMMANDS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
MODULES = [f"pdojo_tools.{place.partition(':')[2]}" for place in COMMANDS.values()]
CHECKS = ["benchmarks.bench", "benchmarks.demo", "qa.completeness", "qa.fuzz", "qa.fuzz_inputs", "qa.mutants"]


@pytest.mark.parametrize("module", [*MODULES, *CHECKS])
def test_help(module: str, capsys: pytest.CaptureFixture[str]) -> None:
    """All texts of options are formatted: a percent sign alone would end that."""
    arguments = ["list", "--help"] if module.endswith(".db") else ["--help"]
    with pytest.raises(SystemExit) as ended:
        import_module(module).main(arguments)
    assert not ended.value.code
    out = capsys.readouterr().out
    assert out.startswith("usage: ")
    assert "--help" in out


def printed(module: str, option: str, capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as ended:
        import_module(module).main([option])
    assert not ended.value.code
    return capsys.readouterr().out


@pytest.mark.parametrize("module", MODULES)
def test_version(module: str, capsys: pytest.CaptureFixture[str]) -> None:
    """pdojo's own version comes first; a kernel or a command may be missing."""
    assert printed(module, "--version", capsys).startswith(f"pdojo {pdojo.__version__} (xDSL {version('xdsl')}, ")


def test_kernels_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert tune.main(["--list-kernels"]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert {row.split()[0] for row in rows} == {*pdojo.kernels(), *PRESETS}
    assert "softmax             R=24576 C=512  f32" in rows


@pytest.mark.parametrize("target", opt.TARGETS.split(", "))
def test_targets_of_the_help_are_known(target: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert opt.main(["no-such-file", "-t", target]) == 2
    assert capsys.readouterr().err.startswith("error: there is no file 'no-such-file'")


def test_names_of_the_help_are_those_of_the_kinds_of_machines() -> None:
    machines = [machine(name) for name in ("x86-64-avx2", "nvidia-sm90", "amd-gfx942", "snitch")]
    known = [evaluators_of(each) for each in machines]
    assert {name for each in known for name in each} == set(EVALUATORS)
    assert {tuple(kind_of_machine(each).passes) for each in machines} == {EXPERT_PASSES}
