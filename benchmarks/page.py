"""`python -m benchmarks.page`: the chart of Table 3 and the figures of README.md, from the stored results.

`make bench` calls it after it has stored the results of its processor.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from statistics import geometric_mean, median

from pdojo_tools.command import Arguments, run_tool
from pdojo_tools.outputs import write_output

from benchmarks.chart import CHART, Panel, drawn, panel_of, shown_files, started
from benchmarks.compare import RESULTS
from benchmarks.models import ratio
from benchmarks.origin import JSON

README = Path(__file__).parents[1] / "README.md"
BEGIN, END = "<!-- python -m benchmarks.page -->", "<!-- end -->"
OURS = "pdojo"
"""Name of our implementation in results of PyTorch."""
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
        "torch-models": ("15 models of PyTorch", "eager, Inductor and Inductor with frozen weights", _of_torch),
        "torch-fusions": ("60 random functions of PyTorch", "eager and Inductor", _of_torch),
        "models": ("9 ONNX models", "ONNX Runtime", _of_onnx),
    }
    for kind, (title, peers, ratios) in kinds.items():
        for path in sorted((RESULTS / "programs").glob(f"{kind}-2-threads-*.json")):
            stored = json.loads(path.read_text(encoding="utf-8"))
            settings = stored["settings"]
            day = date.fromisoformat(settings["started"][:10])
            yield _line(f"{title}; {peers}; {settings['environment']['processor']}, 2 threads", day, ratios(stored))


def _of_torch(stored: JSON) -> dict[str, float]:
    """The ratio to the fastest implementation of PyTorch, by case."""
    found: dict[str, float] = {}
    for name, case in stored["cases"].items():
        ours = case["samples"][OURS]
        others = [each for other, each in case["samples"].items() if other != OURS]
        found[name] = min(median(a / b for a, b in zip(each, ours, strict=True)) for each in others)
    return found


def _of_onnx(stored: JSON) -> dict[str, float]:
    """The ratio to ONNX Runtime, by model."""
    return {each["model"]: 1 / ratio(each) for each in stored["models"]}


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
