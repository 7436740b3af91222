"""What all tests share: deterministic hypothesis in CI, slow tests on request, skips counted with their reasons."""

from __future__ import annotations

import gc
import os
import sys
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, Phase, settings
from pdojo_tools import phases

from pdojo.backends.common import processes
from pdojo.backends.common.gc_pause import collect_rarely

settings.register_profile("ci", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
# Whether something fails, not the smallest case of it: for planted defects.
settings.register_profile("first", settings.get_profile("ci"), phases=[Phase.explicit, Phase.generate], database=None)
settings.register_profile("explore", deadline=None, max_examples=1000, suppress_health_check=[HealthCheck.too_slow])

# What was measured on this processor is not to decide about tests.
os.environ["PDOJO_UNCALIBRATED"] = "1"
# Nor is what was decided about other kernels, and tests write nothing into the user's files.
_DATA = TemporaryDirectory(prefix="pdojo-test-")
os.environ["PDOJO_DATABASE"] = f"{_DATA.name}/search.sqlite"
os.environ["XDG_CACHE_HOME"] = f"{_DATA.name}/cache"
os.environ["XDG_DATA_HOME"] = f"{_DATA.name}/data"
# Nor does the user's terminal: tests make their own.
os.environ["TERM"] = "xterm"
for _name in ("COLUMNS", "FORCE_COLOR", "LINES", "NO_COLOR"):
    os.environ.pop(_name, None)
# Nor does a slow processor, on which phases that are short elsewhere show themselves.
phases.SILENT = 3600.0
# Nor on which work takes so long that other processes are started to help.
processes.PATIENCE = 3600.0
# Tests start the tools of the environment that runs the tests.
os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
# Without a compiler of the system, zig first compiles a C library for each target: once, not in every process.
os.environ.setdefault("ZIG_GLOBAL_CACHE_DIR", str(Path(__file__).parents[1] / "build" / "zig"))


LONG = Path(__file__).parent / "long.txt"
"""The tests that the quick run leaves out, a line each (`qa.long_tests`)."""
JUDGES = ("test/differential/", "test/property/")
"""Folders whose files each are a judge of one kind; the quick run takes one test of each."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--slow` runs the slow tests too, `--quick` a selection, `--without` those that did not pass in another run."""
    parser.addoption("--slow", action="store_true", help="run tests marked slow")
    parser.addoption("--quick", action="store_true", help="run no long tests, and one of each file of judges")
    parser.addoption("--record", type=Path, metavar="FILE", help="write the names of the tests that pass to FILE")
    parser.addoption("--without", type=Path, metavar="FILE", help="leave out the tests that FILE names, a line each")


def pytest_configure(config: pytest.Config) -> None:
    """Use the derandomised profile unless another is named with --hypothesis-profile."""
    if config.getoption("--hypothesis-profile", default=None) is None:
        settings.load_profile("ci")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip slow tests unless asked for; leave out what --quick and --without exclude."""
    if not config.getoption("--slow"):
        for item in items:
            if item.get_closest_marker("slow"):
                item.add_marker(pytest.mark.skip(reason="slow; run with --slow"))
    chosen = _quick(items) if config.getoption("--quick") else set(items)
    recorded: Path | None = config.getoption("--without")
    if recorded is not None:
        passed = set(recorded.read_text(encoding="utf-8").splitlines())
        chosen = {item for item in chosen if item.nodeid not in passed}
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = [item for item in items if item in chosen]


def _quick(items: list[pytest.Item]) -> set[pytest.Item]:
    long = set(LONG.read_text(encoding="utf-8").split())
    rest = [item for item in items if item.nodeid.partition("[")[0] not in long and not item.get_closest_marker("slow")]
    judges = {item.path: item for item in reversed(rest) if item.nodeid.startswith(JUDGES)}
    return {*judges.values(), *(item for item in rest if not item.nodeid.startswith(JUDGES))}


@pytest.fixture(scope="session")
def fibers() -> None:
    """Skip the test if no device code can be compiled for fibers."""
    # Much to load, for few tests.
    from toolchain import require_fibers

    require_fibers()


def pytest_collection_finish() -> None:
    """Let the collector look rarely, as in the tools, and not at what lives until the end."""
    collect_rarely()
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Count the skipped tests by reason, and record those that passed."""
    record: Path | None = terminalreporter.config.getoption("--record")
    if record is not None:
        passed: list[pytest.TestReport] = terminalreporter.stats.get("passed", [])
        record.write_text("".join(f"{report.nodeid}\n" for report in passed), encoding="utf-8")
    reports: list[pytest.TestReport] = terminalreporter.stats.get("skipped", [])
    reasons = Counter(_reason(report) for report in reports)
    if reasons:
        terminalreporter.section("skipped tests by reason")
        for reason, count in reasons.most_common():
            terminalreporter.write_line(f"{count:5d}  {reason}")


def _reason(report: pytest.TestReport) -> str:
    match report.longrepr:
        case (_, _, str(text)):
            return text.removeprefix("Skipped: ")
        case other:
            return str(other)
