"""`python -m benchmarks.page`: the chart of Table 3 and the figures of README.md, from the stored results.

`make bench` calls it after it has stored the results of its processor.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from statistics import geometric_mean

from pdojo_tools.command import Arguments, tool
from pdojo_tools.outputs import replaced, write_output

from benchmarks.chart import CHART, Panel, drawn, panel_of, shown_files, started
from benchmarks.compare import RESULTS
from benchmarks.contests import Contest
from benchmarks.origin import processor_of
from benchmarks.records import OURS, Record, read_results
from pdojo.errors import UsageError

README = Path(__file__).parents[1] / "README.md"
BEGIN, END = "<!-- python -m benchmarks.page -->", "<!-- end -->"
BEHIND = 0.95
"""Ratio to the fastest peer below which a workload is counted."""
SUITES = {"held": "60 shapes drawn at random", "unseen": "20 kernels that are in no library"}
"""Stored suites besides Table 3, by the beginning of their files' names."""


@tool
def main(args: Sequence[str] | None) -> None:
    """Run the tool."""
    Arguments(prog="python -m benchmarks.page", description=__doc__).parse_args(args)
    write_page()


def write_page() -> None:
    """Write the chart and the figures of README.md."""
    write_output(drawn([panel_of(path) for path in shown_files()]), str(CHART))
    write_output(replaced(README.read_text(encoding="utf-8"), BEGIN, figures(), END), str(README))


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
        *_programs(),
        _row("Table 3", device),
    ]
    return "\n".join(lines)


def _suites() -> Iterator[str]:
    for suite, title in SUITES.items():
        for path in sorted(RESULTS.glob(f"{suite}-2-threads-*.json"), key=started, reverse=True):
            yield _row(title, panel_of(path))


def _programs() -> Iterator[str]:
    """Rows for functions and models of PyTorch, and for ONNX models, from the stored results."""
    kinds = {
        "torch-models": (
            "15 models of PyTorch, some also for 8 inputs or in bf16",
            "eager, Inductor and Inductor with frozen weights",
        ),
        "torch-fusions": ("60 random functions of PyTorch", "eager and Inductor"),
        "models": ("9 ONNX models", "ONNX Runtime"),
        "public": ("[ONNX files](docs/public-models.md) of 32 packages", "ONNX Runtime"),
    }
    for kind, (title, peers) in kinds.items():
        runs = [read_results(path) for path in (RESULTS / "programs").glob(f"{kind}-2-threads-*.json")]
        for processor in sorted({str(processor_of(settings)) for settings, _ in runs}):
            own = [run for run in runs if processor_of(run[0]) == processor]
            own.sort(key=lambda run: run[0]["started"])
            # Of a case that was measured several times, the last figure.
            ran = [record for _, records in own for record in records if kind != "public" or not record.failures]
            ratios = {record.label: least_ratio(record) for record in ran}
            day = date.fromisoformat(own[-1][0]["started"][:10])
            yield _line(f"{title}; {peers}; {processor}, 2 threads", day, ratios)


def least_ratio(record: Record) -> float:
    """The ratio to the fastest other implementation, by pairs of samples. Raises UsageError if there is none."""
    contests = [Contest.of(record, row) for row in record.rows if row.library != OURS]
    ratios = [each.ratio for each in contests if each is not None]
    if not ratios:
        raise UsageError(f"{record.label} has no times to compare")
    return min(ratios)


def _row(title: str, panel: Panel) -> str:
    what = f"{title}{'' if panel.is_raced else ', the pass alone'}; {_listed(panel.peers)}; {panel.machine}"
    return _line(what, date.fromisoformat(panel.date), panel.ratios)


def _line(what: str, day: date, ratios: Mapping[str, float]) -> str:
    least = min(ratios, key=lambda name: ratios[name])
    behind = sum(ratio < BEHIND for ratio in ratios.values())
    return (
        f"| {what} ({day.day} {day:%B %Y}) | **{geometric_mean(ratios.values()):.2f}**, least {ratios[least]:.2f} "
        f"({least}), {behind} of {len(ratios)} below {BEHIND} |"
    )


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


if __name__ == "__main__":
    sys.exit(main())
