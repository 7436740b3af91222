"""Tables of an experiment, for the terminal and for a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from statistics import median

from pdojo_tools.tuning.limits import cost_text, duration, many
from rich.console import Console
from rich.markup import escape
from rich.rule import Rule

from benchmarks.origin import processor_of
from benchmarks.perfllm.paired import STRICT, comparisons, mean_ratio
from benchmarks.perfllm.results import Done
from benchmarks.perfllm.sampling import PARTS
from benchmarks.perfllm.statistics import LEVEL, NEAR, RESAMPLES, Findings, Range, contests, standings
from benchmarks.tables import table

EVALUATIONS = (100, 400, 1000, 2000)
"""Evaluations at which fractions are shown, in addition to the budget."""
SECONDS = (10, 30, 100, 300, 1000)
"""Seconds at which fractions are shown."""


@dataclass(frozen=True)
class Sheet:
    """A table: the first column and the columns in `words` have words, the others numbers."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    words: tuple[int, ...] = (0,)
    task: str | None = None
    """The task of the table; None for all tasks."""


def sheets(findings: Findings, against: str) -> list[Sheet]:
    """All tables of an experiment, the most important first; methods are compared with `against`."""
    tasks = [task for task in findings.tasks if findings.has_reference(task)]
    return [
        *_proposals(findings),
        _standings(findings),
        _contests(findings, against),
        *(_shares(findings, task) for task in tasks),
        _phases(findings),
        _parts(findings),
    ]


def print_sheets(console: Console, found: Sequence[Sheet]) -> None:
    """Print tables with their notes."""
    for sheet in found:
        console.print(Rule(escape(sheet.title), align="left"))
        console.print(table(sheet.headings, [[escape(cell) for cell in row] for row in sheet.rows], words=sheet.words))
        for note in sheet.notes:
            console.print(escape(note), highlight=False, soft_wrap=True)


def conditions(findings: Findings) -> list[str]:
    """The notes for all tables: the origin of the results, and the load of the machine."""
    settings = findings.settings
    cells = findings.cells()
    load = " or ".join(map(str, sorted({done.jobs for done in cells})))
    commits = sorted({done.commit for done in cells})
    lines = [
        f"grid {settings['grid']['name']}, {processor_of(settings)}, commit {', '.join(commits)}; "
        f"number of searches: {len(cells)}",
        f"seconds are those of a machine on which {load} of the searches ran at once, each on one processor, and on "
        "which other programs may have run",
    ]
    if len(commits) > 1:
        lines.append("the searches are of several commits: their programs and times may differ for that reason")
    missing = [task for task in findings.tasks if not findings.has_reference(task)]
    if missing:
        lines.append(f"without the heuristic's cost, and therefore left out: {', '.join(missing)}")
    return lines


def _proposals(findings: Findings) -> list[Sheet]:
    """Learned proposals beside uniform ones; no table without them."""
    found = comparisons(findings)
    rows: list[tuple[str, ...]] = []
    for each in found:
        wins = sum(pair.learned < pair.uniform for pair in each.pairs)
        losses = sum(pair.learned > pair.uniform for pair in each.pairs)
        numbers = f"{each.uniform:.0f}", f"{each.learned:.0f}", f"{mean_ratio(each.pairs):.2f}", f"{each.p:.2g}"
        rows.append((each.method, each.group, str(len(each.pairs)), str(wins), str(losses), *numbers, each.verdict))
        for task in dict.fromkeys(pair.task for pair in each.pairs):
            own = [pair for pair in each.pairs if pair.task == task]
            medians = (f"{median(values):.0f}" for values in ([p.uniform for p in own], [p.learned for p in own]))
            wins, losses = sum(p.learned < p.uniform for p in own), sum(p.learned > p.uniform for p in own)
            rows.append(("", task, str(len(own)), str(wins), str(losses), *medians, f"{mean_ratio(own):.2f}", "", ""))
    note = (
        f"median evaluations until {NEAR:.0%} of the speed of the best program of any search, one more than the budget "
        "if it is not reached; ratio: geometric mean over pairs of one kernel and seed; p: one-sided signed-rank test, "
        f"with Holm's correction for the two groups; half: p is below {STRICT} and the learned median is at most half"
    )
    headings = ("", "kernels", "pairs", "fewer", "more", "uniform", "learned", "ratio", "p", "")
    return [Sheet("Learned proposals", headings, tuple(rows), (note,), words=(0, 1, 9))] if found else []


def _standings(findings: Findings) -> Sheet:
    rows = tuple(
        (
            each.method,
            f"{each.reached} of {each.tasks}",
            f"{each.cells_reached} of {each.cells}",
            *(f"{n:,.0f}" if isfinite(n) else "-" for n in (each.arrival, each.arrival_at_best)),
        )
        for each in standings(findings)
    )
    note = (
        f"kernels: those of which the median over seeds has at least {NEAR:.0%} of the heuristic's speed; evaluations: "
        "the median over all searches until one has, - if half of them never have; of the best: until a search has as "
        "much of the speed of the best program that any search of the kernel found"
    )
    return Sheet(
        f"At least {NEAR:.0%} of the heuristic",
        ("", "kernels", "searches", "evaluations", "of the best"),
        rows,
        (note,),
    )


def _contests(findings: Findings, against: str) -> Sheet:
    rows = tuple(
        (
            each.method,
            str(each.better),
            str(each.worse),
            str(each.equal),
            f"{each.p:.2g}",
            f"{each.ratio:.3f}",
            f"{each.low:.3f} to {each.high:.3f}",
            each.verdict,
        )
        for each in contests(findings, against)
    )
    headings = ("", "faster", "slower", "equal", "p", "ratio", f"{1 - LEVEL:.0%} interval", "")
    notes = (
        f"the best programs beside those of {against}, in pairs of the same kernel and seed; p: sign test, two-sided, "
        f"with Holm's correction for {many(len(rows), 'method')}; ratio: geometric mean of the factors by which they "
        f"are faster; interval: {RESAMPLES} bootstrap samples of kernels, then of seeds",
        f"faster, slower: p is below {LEVEL} and the interval excludes 1. The test takes all pairs as independent, "
        "which those of one kernel are not; the interval does not",
    )
    return Sheet(f"Beside {against}", headings, rows, notes, words=(0, 7))


def _shares(findings: Findings, task: str) -> Sheet:
    known = findings.references[task]
    cells = findings.cells(task)
    budget = max(done.budget for done in cells)
    numbers = [*(n for n in EVALUATIONS if n < budget), budget]
    slowest = max(done.seconds for done in cells)
    times = [s for s in SECONDS if s < slowest]
    rows: list[tuple[str, ...]] = []
    for method in findings.methods:
        own = findings.cells(task, method)
        if own:
            by_number = (findings.shares(task, method, lambda done, n=n: done.after(n)) for n in numbers)
            by_time = (findings.shares(task, method, lambda done, s=s: done.at(s)) for s in times)
            cells_of = [_range(Range.of(shares)) for shares in (*by_number, *by_time)]
            rows.append((method, str(len(own)), *cells_of, duration(median(done.seconds for done in own))))
    headings = ("", "seeds", *(f"{n:,}" for n in numbers), *(f"{s} s" for s in times), "took")
    note = (
        f"share of the heuristic's speed, its cost over that of the best: median (least to greatest) over seeds, after "
        f"evaluations and after seconds; plain {cost_text(known.plain, known.unit)}, heuristic "
        f"{cost_text(known.expert, known.unit)} ({many(known.moves, 'move')}); a search that has ended keeps its best"
    )
    return Sheet(task, headings, tuple(rows), (note,), task=task)


def _range(found: Range) -> str:
    if found.count == 1:
        return f"{found.middle:.2f}"
    return f"{found.middle:.2f} ({found.low:.2f} to {found.high:.2f})"


def _phases(findings: Findings) -> Sheet:
    cells = findings.cells()
    phases = list(dict.fromkeys(phase for done in cells for phase in done.spent))
    rows: list[tuple[str, ...]] = []
    for method in findings.methods:
        own = findings.cells(method=method)
        seconds, made = sum(done.seconds for done in own), sum(done.made for done in own)
        processor = sum(done.processor_seconds for done in own)
        spent = [sum(done.spent.get(phase, 0.0) for done in own) / max(seconds, 1e-9) for phase in phases]
        failed = sum(sum(done.failures.values()) for done in own) / max(1, made)
        rate = made / max(seconds, 1e-9)
        rows.append(
            (
                method,
                f"{rate:.1f}",
                f"{seconds / max(1, made) * 1e3:.0f}",
                f"{processor / max(1, made) * 1e3:.0f}",
                f"{failed:.0%}",
                *(f"{s:.0%}" for s in spent),
                f"{max(0.0, 1 - sum(spent)):.0%}",
            )
        )
    note = (
        "evaluations a second, milliseconds of each by the clock and of processors, programs that failed, and the "
        "driver's phases as shares of the clock; phases exceed it together where a simulation runs beside proposals"
    )
    return Sheet(
        "Where the time goes: phases",
        ("", "a second", "ms", "processor ms", "failed", *phases, "rest"),
        tuple(rows),
        (note,),
    )


def _parts(findings: Findings) -> Sheet:
    rows: list[tuple[str, ...]] = []
    for method in findings.methods:
        own = findings.cells(method=method)
        rows.append((method, *(f"{_mean_share(own, part):.0%}" for part in PARTS)))
    note = (
        "shares of the time by what the search did, looked at 50 times a second: moves (drawn, judged, made, printed), "
        "encode (features, embeddings), learn (values of actions, updates; fits of a cost model), evaluate "
        "(waiting for simulations or measurements), store (database)"
    )
    return Sheet("Where the time goes: parts", ("", *PARTS), tuple(rows), (note,))


def _mean_share(cells: Sequence[Done], part: str) -> float:
    """The fraction of a part in the time of all cells together."""
    total = sum(done.seconds for done in cells)
    return sum(done.parts[part] * done.seconds for done in cells) / max(total, 1e-9)
