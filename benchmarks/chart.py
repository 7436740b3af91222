"""`python -m benchmarks.chart`: stored results as SVG, with a bar per workload for the ratio to the fastest peer.

The default FILES are the stored results of Table 3 on two threads, and the newest of a GPU; each has a panel.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log2
from pathlib import Path
from statistics import geometric_mean
from xml.sax.saxutils import escape

from pdojo_tools.command import Arguments, tool
from pdojo_tools.outputs import write_output

from benchmarks.compare import RESULTS, Results
from benchmarks.gpu.parent import Results as DeviceResults
from benchmarks.gpu.tables import best
from benchmarks.origin import processor_of
from benchmarks.peers import LIBRARIES
from pdojo.errors import UsageError

CHART = Path(__file__).parents[1] / "docs" / "table3.svg"
STORED = "table3-2-threads-*.json"
DEVICES = "gpu/*.json"
EXACT = {"strict": "PyTorch", "compile": "torch.compile"}
"""The peers on a GPU that use no TF32, with their titles."""

LABELS, PANEL, GAP, ROW, HEAD, FOOT = 110, 240, 80, 22, 76, 34
"""Lengths in pixels: the column of names, the bars of a panel, the space between panels, a row, both margins."""
OCTAVES = (-1, 2)
"""Ends of the axis, as powers of two."""
FASTER, SLOWER, INK, PALE = "#2f6f9f", "#b8743a", "#222222", "#888888"


@dataclass(frozen=True)
class Bar:
    """A workload: the time of the fastest peer divided by ours; None without a result."""

    workload: str
    ratio: float | None
    peer: str


@dataclass(frozen=True)
class Panel:
    """The bars of a machine."""

    machine: str
    date: str
    peers: Sequence[str]
    is_raced: bool
    """Whether ours is the fastest variant of the pass, not its first program."""
    bars: Sequence[Bar]

    @property
    def ratios(self) -> dict[str, float]:
        """The ratios by workload, without those that have no result. Raises UsageError if there are none."""
        known = {bar.workload: bar.ratio for bar in self.bars if bar.ratio is not None}
        if not known:
            raise UsageError(f"the results of {self.machine} have no peers")
        return known

    @property
    def mean(self) -> float:
        """The geometric mean of the ratios."""
        return geometric_mean(self.ratios.values())


@tool
def main(args: Sequence[str] | None) -> None:
    """Run the tool."""
    parser = Arguments(prog="python -m benchmarks.chart", description=__doc__)
    parser.add_argument("files", nargs="*", metavar="FILES", help="results, one panel each")
    parser.add_argument("-o", "--output", metavar="FILE.svg", default=str(CHART), help="docs/table3.svg by default")
    given = parser.parse_args(args)
    write_output(drawn([panel_of(Path(path)) for path in given.files or shown_files()]), given.output)


def shown_files() -> list[Path]:
    """The stored results in the chart: those of processors, the newest last, then those of a GPU."""
    processors = sorted(RESULTS.glob(STORED), key=started)
    return [*processors, max(RESULTS.glob(DEVICES))]


def started(path: Path) -> str:
    """The time at which the run of stored results of a processor began."""
    return str(Results.read(path).settings["started"])


def panel_of(path: Path) -> Panel:
    """The panel of a file of results. Raises UsageError for another file."""
    try:
        return _device_panel(DeviceResults.read(path))
    except UsageError:
        return _processor_panel(Results.read(path))


def _processor_panel(results: Results) -> Panel:
    threads = max(record.threads for record in results.records)
    return Panel(
        f"{processor_of(results.settings) or 'unknown processor'}, {threads} thread{'s' * (threads > 1)}",
        results.settings["started"][:10],
        [LIBRARIES[name].title for name in results.settings["libraries"]],
        bool(results.settings.get("race")),
        [
            Bar(r.label, r.ratio, "" if r.fastest_peer is None else LIBRARIES[r.fastest_peer.library].title)
            for r in results.records
        ],
    )


def _device_panel(results: DeviceResults) -> Panel:
    bars: list[Bar] = []
    for workload, row in results.of("time").items():
        times = {name: row["warm"][name] for name in EXACT if name in row.get("warm", ())}
        peer = min(times, key=lambda name: times[name], default=None)
        bars.append(
            Bar(workload, None, "") if peer is None else Bar(workload, times[peer] / best(row["warm"])[1], EXACT[peer])
        )
    return Panel(
        results.device["name"],
        results.started[:10],
        [f"{EXACT['strict']} without TF32", EXACT["compile"]],
        True,
        bars,
    )


def drawn(panels: Sequence[Panel]) -> str:
    """The chart. Raises UsageError if the panels differ in workloads, or have no peers."""
    labels = [bar.workload for bar in panels[0].bars]
    if any([bar.workload for bar in panel.bars] != labels for panel in panels):
        raise UsageError("the results have different workloads")
    width = LABELS + len(panels) * (PANEL + GAP)
    height = HEAD + ROW * len(labels) + FOOT
    rows = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'font-family="Helvetica, Arial, sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
    ]
    rows += [_text(LABELS - 8, _middle(number), label, anchor="end") for number, label in enumerate(labels)]
    rows.append(_text(LABELS - 8, height - FOOT + 18, "peer / ours", anchor="end", colour=PALE))
    for number, panel in enumerate(panels):
        rows += _panel(panel, LABELS + number * (PANEL + GAP))
    return "\n".join([*rows, "</svg>"]) + "\n"


def _panel(panel: Panel, left: int) -> Iterator[str]:
    yield _text(left, 18, panel.machine, weight="bold")
    yield _text(left, 36, f"geometric mean {panel.mean:.2f}", panel.date)
    yield _text(left, 52, ", ".join(panel.peers), colour=PALE)
    bottom = HEAD + ROW * len(panel.bars)
    for tick in (0.5, 1, 2, 4):
        x = _x(left, tick)
        stroke = INK if tick == 1 else "#dddddd"
        yield f'<line x1="{x}" y1="{HEAD - 8}" x2="{x}" y2="{bottom}" stroke="{stroke}"/>'
        yield _text(x, bottom + 18, f"{tick:g}", anchor="middle", colour=PALE)
    for number, bar in enumerate(panel.bars):
        if bar.ratio is None:
            yield _text(_x(left, 1) + 6, _middle(number), "no result", colour=PALE)
            continue
        ends = sorted((_x(left, 1), _x(left, bar.ratio)))
        colour = FASTER if bar.ratio >= 1 else SLOWER
        y = HEAD + ROW * number + 3
        yield f'<rect x="{ends[0]}" y="{y}" width="{ends[1] - ends[0]:.1f}" height="{ROW - 6}" fill="{colour}"/>'
        yield _text(ends[1] + 5, _middle(number), f"{bar.ratio:.2f}", bar.peer)


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
