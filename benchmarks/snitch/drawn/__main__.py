"""`python -m benchmarks.snitch.drawn RESULTS.json`: the results of a run as Markdown."""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.records import read_results
from benchmarks.snitch.drawn.report import page_of

if __name__ == "__main__":
    sys.stdout.write(page_of(read_results(Path(sys.argv[1]))[1]))
