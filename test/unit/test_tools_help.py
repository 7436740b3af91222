"""Every tool says what it does."""

from __future__ import annotations

import tomllib
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
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
