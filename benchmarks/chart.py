"""`python -m benchmarks.chart`: stored results as SVG, with a bar per workload for the ratio to the fastest peer.

The default FILES are the stored results of Table 3 on two threads, one panel for each processor.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from math import log2
from pathlib import Path
from xml.sax.saxutils import escape

from pdojo_tools.command import Arguments, run_tool
from pdojo_tools.outputs import write_output

from benchmarks.compare import RESULTS, Results
from benchmarks.origin import processor_of
from benchmarks.peers import LIBRARIES
from benchmarks.records import geometric_mean
from pdojo.errors import UsageError

CHART = Path(__file__).parents[1] / "docs" / "table3.svg"
STORED = "table3-2-threads-*.json"

LABELS, PANEL, GAP, ROW, HEAD, FOOT = 110, 350, 60, 22, 76, 34
"""Lengths in pixels: the column of names, the bars of a panel, the space between panels, a row, both margins."""
OCTAVES = (-1, 2)
"""Ends of the axis, as powers of two."""
FASTER, SLOWER, INK, PALE = "#2f6f9f", "#b8743a", "#222222", "#888888"


def main(args: Sequence[str] | None = None) -> int:
    """Run the tool; returns the exit code."""
    return run_tool(_run, args)


def _run(args: Sequence[str] | None) -> None:
    parser = Arguments(prog="python -m benchmarks.chart", description=__doc__)
    parser.add_argument("files", nargs="*", metavar="FILES", help="results, one panel each")
    parser.add_argument("-o", "--output", metavar="FILE.svg", default=str(CHART), help="docs/table3.svg by default")
    given = parser.parse_args(args)
    write_output(drawn([Results.read(Path(path)) for path in given.files or shown_files()]), given.output)


def shown_files() -> list[Path]:
    """The stored results in the chart, the newest last."""
    return sorted(RESULTS.glob(STORED), key=lambda path: str(Results.read(path).settings["started"]))


def drawn(panels: Sequence[Results]) -> str:
    """The chart. Raises UsageError if the results differ in workloads, or have no peers."""
    labels = [record.label for record in panels[0].records]
    if any([record.label for record in panel.records] != labels for panel in panels):
        raise UsageError("the results have different workloads")
    width = LABELS + len(panels) * (PANEL + GAP)
    height = HEAD + ROW * len(labels) + FOOT
    rows = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'font-family="Helvetica, Arial, sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
    ]
    rows += [_text(LABELS - 8, _middle(number), label, anchor="end") for number, label in enumerate(labels)]
    for number, panel in enumerate(panels):
        rows += _panel(panel, LABELS + number * (PANEL + GAP))
    return "\n".join([*rows, "</svg>"]) + "\n"


def _panel(results: Results, left: int) -> Iterator[str]:
    ratios = [record.ratio for record in results.records]
    known = [ratio for ratio in ratios if ratio is not None]
    mean = geometric_mean(known)
    if mean is None:
        raise UsageError(f"'{results.path}' has no peers")
    threads = max(record.threads for record in results.records)
    names = [LIBRARIES[name].title for name in results.settings["libraries"]]
    heading = f"{processor_of(results.settings) or 'unknown processor'}, {threads} thread{'s' * (threads > 1)}"
    yield _text(left, 18, f"{heading}: geometric mean {mean:.2f}", weight="bold")
    yield _text(left, 36, f"fastest peer's time / pdojo's, {results.settings['started'][:10]}")
    yield _text(left, 52, f"peers: {', '.join(names)}", colour=PALE)
    bottom = HEAD + ROW * len(ratios)
    for tick in (0.5, 1, 2, 4):
        x = _x(left, tick)
        stroke = INK if tick == 1 else "#dddddd"
        yield f'<line x1="{x}" y1="{HEAD - 8}" x2="{x}" y2="{bottom}" stroke="{stroke}"/>'
        yield _text(x, bottom + 18, f"{tick:g}", anchor="middle", colour=PALE)
    for number, record in enumerate(results.records):
        if record.ratio is None or record.fastest_peer is None:
            yield _text(_x(left, 1) + 6, _middle(number), "no result", colour=PALE)
            continue
        ends = sorted((_x(left, 1), _x(left, record.ratio)))
        colour = FASTER if record.ratio >= 1 else SLOWER
        y = HEAD + ROW * number + 3
        yield f'<rect x="{ends[0]}" y="{y}" width="{ends[1] - ends[0]:.1f}" height="{ROW - 6}" fill="{colour}"/>'
        peer = LIBRARIES[record.fastest_peer.library].title
        yield _text(ends[1] + 5, _middle(number), f"{record.ratio:.2f}", peer)


def _x(left: int, ratio: float) -> float:
    """The place on a panel's axis, clamped to its ends."""
    low, high = OCTAVES
    return round(left + PANEL * (min(max(log2(ratio), low), high) - low) / (high - low), 1)


def _middle(number: int) -> int:
    return HEAD + ROW * number + ROW // 2 + 4


def _text(
    x: float, y: int, text: str, pale: str = "", *, anchor: str = "start", weight: str = "normal", colour: str = INK
) -> str:
    more = f' <tspan fill="{PALE}">{escape(pale)}</tspan>' if pale else ""
    style = f'text-anchor="{anchor}" font-weight="{weight}" fill="{colour}"'
    return f'<text x="{x}" y="{y}" {style}>{escape(text)}{more}</text>'


if __name__ == "__main__":
    sys.exit(main())
