"""`docs/torch-operators.md`: PyTorch's operators with their status, from results of `qa.torch_ops`.

python -m qa.torch_ops --store results.jsonl
python -m qa.torch_ops --store results.jsonl --gradients --samples 3
python -m qa.torch_page results.jsonl

The page lists the operators of the interpreted f32 run, and the totals of all other runs in the files.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import UTC, date, datetime
from pathlib import Path

from pdojo_tools.outputs import replaced

from qa.torch_ops import STATUSES, Row, stored

PAGE = Path(__file__).parents[1] / "docs" / "torch-operators.md"
BEGIN, END = "<!-- python -m qa.torch_page -->\n", "<!-- end -->\n"
LISTED = ("f32", "interpreted")
"""The elements and the mode of the run whose operators are listed."""


def body(rows: Sequence[Row]) -> str:
    """The generated part of the page."""
    judged = [row for row in rows if row.status != "skipped"]
    lines = ["| status | operators | samples |", "| --- | ---: | ---: |"]
    for status in STATUSES:
        samples = sum(row.counts.get(status, 0) for row in rows)
        lines.append(f"| {status} | {sum(row.status == status for row in rows)} | {samples} |")
    lines += [f"| all | {len(rows)} | {sum(row.samples for row in rows)} |", ""]
    lines += ["| operator | status | samples right | why PyTorch runs calls |", "| --- | --- | ---: | --- |"]
    for row in sorted(judged, key=lambda row: row.operator.lower()):
        wrong = sum(row.counts.get(status, 0) for status in ("wrong", "crash"))
        count = row.samples - row.counts.get("skipped", 0)
        lines.append(f"| `{row.operator}` | {row.status} | {count - wrong} of {count} | {_reason(row)} |")
    return "\n".join(lines) + "\n"


def runs(files: Sequence[Path]) -> str:
    """A table of the runs in files of results, with the samples by status and the dates of the files."""
    groups: dict[tuple[str, str], dict[str, Row]] = {}
    dates: dict[tuple[str, str], date] = {}
    for file in files:
        made = datetime.fromtimestamp(file.stat().st_mtime, UTC).date()
        for (operator, *run), row in stored(file).items():
            groups.setdefault((run[0], run[1]), {})[operator] = row
            dates[run[0], run[1]] = max(made, dates.get((run[0], run[1]), made))
    lines = [f"| elements | run | date | operators | samples | {' | '.join(STATUSES)} |"]
    lines.append("| --- | --- | --- |" + " ---: |" * (len(STATUSES) + 2))
    for run, rows in groups.items():
        counts = [sum(row.counts.get(status, 0) for row in rows.values()) for status in STATUSES]
        cells = [*run, dates[run], len(rows), sum(counts), *counts]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines) + "\n"


def _reason(row: Row) -> str:
    """The most frequent reasons, in a cell of a table."""
    most = sorted(row.reasons, key=lambda reason: -row.reasons[reason])[:2]
    return "; ".join(" ".join(reason.replace("|", "/").split())[:120] for reason in most)


def main(args: Sequence[str] | None = None) -> int:
    """Write the page for files of results."""
    files = [Path(each) for each in (sys.argv[1:] if args is None else args)]
    known = {row.operator: row for file in files for row in stored(file).values() if (row.dtype, row.mode) == LISTED}
    PAGE.write_text(replaced(PAGE.read_text(), BEGIN, f"{runs(files)}\n{body([*known.values()])}", END))
    return 0


if __name__ == "__main__":
    sys.exit(main())
