"""The quick run: what it leaves out exists, and it keeps a judge of each kind."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_long_tests_exist() -> None:
    lines = (ROOT / "test/long.txt").read_text().splitlines()
    assert lines == sorted(set(lines))
    for line in lines:
        path, *_, name = line.split("::")
        assert f"def {name}(" in (ROOT / path).read_text(), line


def test_the_quick_run_keeps_a_test_of_each_judge() -> None:
    files = [
        "test/differential/test_contracted.py",
        "test/property/test_structure.py",
        "test/unit/dialect/test_sizes.py",
    ]
    counts: list[Counter[str]] = []
    for options in ([], ["--quick"]):
        command = [sys.executable, "-m", "pytest", "--collect-only", "-q", *options, *files]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
        assert done.returncode == 0, done.stdout
        counts.append(Counter(line.partition("::")[0] for line in done.stdout.splitlines() if "::" in line))
    everything, quick = counts
    assert [quick[path] for path in files] == [1, 1, everything[files[2]]]
