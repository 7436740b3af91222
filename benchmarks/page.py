"""`python -m benchmarks.page`: the chart of Table 3 and the figures of README.md, from the stored results.

`make bench` calls it after it has stored the results of its processor.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path

from pdojo_tools.command import Arguments, run_tool
from pdojo_tools.outputs import write_output

from benchmarks.chart import CHART, Panel, drawn, panel_of, shown_files, started
from benchmarks.compare import RESULTS

README = Path(__file__).parents[1] / "README.md"
BEGIN, END = "<!-- python -m benchmarks.page -->", "<!-- end -->"
BEHIND = 0.95
"""Ratio to the fastest peer below which a workload is counted."""
SUITES = {"held": "60 shapes drawn at random", "unseen": "20 kernels that are in no library"}
"""Stored suites besides Table 3, by the beginning of their files' names."""


def main(args: Sequence[str] | None = None) -> int:
    """Run the tool; returns the exit code."""
    return run_tool(_run, args)


def _run(args: Sequence[str] | None) -> None:
    Arguments(prog="python -m benchmarks.page", description=__doc__).parse_args(args)
    write_page()


def write_page() -> None:
    """Write the chart and the figures of README.md."""
    write_output(drawn([panel_of(path) for path in shown_files()]), str(CHART))
    write_output(with_figures(README.read_text(encoding="utf-8"), figures()), str(README))


def with_figures(page: str, text: str) -> str:
    """The page with this text between the marks."""
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}\n{text}\n{END}{rest.partition(END)[2]}"


def figures() -> str:
    """The sentence on the newest results of Table 3, the chart, and a row for each stored file."""
    *processors, device = map(panel_of, shown_files())
    newest = processors[-1]
    lines = [
        f"On an {newest.machine}, pdojo's programs are {newest.mean:.2f} times as fast as the fastest of",
        f"{_listed(newest.peers)},",
        "by geometric mean over the sixteen rows of the paper's Table 3.",
        "",
        "![The fastest peer's time over pdojo's for each row of the paper's Table 3](docs/table3.svg)",
        "",
        "| time of the fastest peer / time of pdojo | geometric mean |",
        "| --- | --- |",
        *(_row("Table 3", panel) for panel in reversed(processors)),
        *_suites(),
        _row("Table 3", device),
    ]
    return "\n".join(lines)


def _suites() -> Iterator[str]:
    for suite, title in SUITES.items():
        for path in sorted(RESULTS.glob(f"{suite}-2-threads-*.json"), key=started, reverse=True):
            yield _row(title, panel_of(path))


def _row(title: str, panel: Panel) -> str:
    day, ratios = date.fromisoformat(panel.date), panel.ratios
    least = min(ratios, key=lambda name: ratios[name])
    behind = sum(ratio < BEHIND for ratio in ratios.values())
    return (
        f"| {title}{'' if panel.is_raced else ', the pass alone'}; {_listed(panel.peers)}; {panel.machine} "
        f"({day.day} {day:%B %Y}) | **{panel.mean:.2f}**, least {ratios[least]:.2f} ({least}), "
        f"{behind} of {len(ratios)} below {BEHIND} |"
    )


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


if __name__ == "__main__":
    sys.exit(main())
