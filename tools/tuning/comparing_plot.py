"""The plot of a comparison: for each kernel the incumbent's speed over evaluations, with bands over seeds."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from math import inf
from pathlib import Path
from typing import Any

from pdojo_tools.tuning.curves import SearchComparison

MISSING = "plots are left out: pip install 'pdojo[bench]'"
_LINES = ("-", "--", ":", "-.")
"""Line styles of neighbourhoods; colours identify strategies."""


def write_plots(comparison: SearchComparison, output: Path) -> list[Path]:
    """Write the plot next to the curves, as PNG and SVG; nothing without matplotlib."""
    if find_spec("matplotlib") is None:
        return []
    import_module("matplotlib").use("Agg")
    with import_module("matplotlib").rc_context({"svg.hashsalt": output.stem}):
        figure = _figure(comparison)
        written: list[Path] = []
        for suffix, metadata in ((".png", None), (".svg", {"Date": None})):
            path = output.with_suffix(suffix)
            figure.savefig(path, dpi=130, bbox_inches="tight", metadata=metadata)
            written.append(path)
        import_module("matplotlib.pyplot").close(figure)
    return written


def _figure(comparison: SearchComparison) -> Any:
    pyplot: Any = import_module("matplotlib.pyplot")
    kernels = comparison.settings["kernels"]
    figure, panes = pyplot.subplots(
        1, len(kernels), figsize=(5.6 * len(kernels) + 1.6, 4.4), squeeze=False, sharey=True
    )
    for axes, kernel in zip(panes[0], kernels, strict=True):
        _draw(axes, comparison, kernel)
    panes[0][0].set_ylabel("speed of the best so far, the best known is 1")
    panes[0][-1].legend(loc="center left", bbox_to_anchor=(1.02, 0.5), fontsize="small")
    return figure


def _draw(axes: Any, comparison: SearchComparison, kernel: str) -> None:
    strategies, neighbourhoods = comparison.settings["strategies"], comparison.settings["neighbourhoods"]
    for line, near in zip(_lines(len(neighbourhoods)), neighbourhoods, strict=True):
        for number, strategy in enumerate(strategies):
            spreads = comparison.speeds(kernel, (strategy, near))
            places = range(len(spreads))
            colour = f"C{number}"
            middle = [spread.middle for spread in spreads]
            axes.step(places, middle, line, where="post", color=colour, label=f"{strategy}, {near}")
            low, high = ([getattr(spread, name) for spread in spreads] for name in ("low", "high"))
            axes.fill_between(places, low, high, step="post", color=colour, alpha=0.13, linewidth=0)
    known = comparison.references.get(kernel)
    if known is not None and known.passed not in (0.0, inf):
        speed = comparison.best_known(kernel) / known.passed
        axes.axhline(speed, color="black", linewidth=0.8, linestyle=(0, (1, 3)))
        axes.annotate("pass", (1, speed), xycoords=("axes fraction", "data"), ha="right", va="top")
    axes.set_title(kernel, fontsize="medium")
    axes.set_xlabel("evaluations")
    axes.set_ylim(0, 1.03)


def _lines(count: int) -> list[str]:
    return [_LINES[k % len(_LINES)] for k in range(count)]
