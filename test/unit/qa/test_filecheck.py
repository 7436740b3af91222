"""The lit tests, as one test of pytest."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2] / "filecheck"


def test_lit() -> None:
    lit = Path(sys.executable).parent / "lit"
    done = subprocess.run([lit, "-v", "--no-progress-bar", str(ROOT)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"\n{done.stdout}{done.stderr}"
