"""Output of `pdojo-db`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import unified_diff
from typing import Any

from pdojo_tools.tuning.limits import many
from rich.console import Console
from rich.markup import escape
from rich.rule import Rule
from rich.table import Table

from pdojo.search.database.queries import ProblemStanding, RunSummary, StoredProgram, moves_in

DIGITS = 8
"""Number of digits of a hash in tables."""
_LISTED = 12
"""Greatest number of shown measurements of a program, the latest ones."""


def cost(value: float | None, unit: str) -> str:
    """A cost for people; seconds are shown as milliseconds."""
    if value is None:
        return "-"
    return f"{value * 1e3:.4g} ms" if unit == "s" else f"{value:.6g} {unit}".rstrip()


def times(gain: float | None, beside: str) -> str:
    """A factor of speed in words; `-` for None."""
    return "-" if gain is None else f"{gain:.2f}x {beside}"


def short(hashed: str | None) -> str:
    """The first digits of a hash."""
    return "-" if hashed is None else hashed[:DIGITS]


def standing_table(standings: Sequence[ProblemStanding]) -> Table:
    """The best of every problem, on two or three lines each, so that 80 columns suffice."""
    table = _table(("id", "kernel", "machine"), ("best", "tried"))
    for one in standings:
        table.add_row(
            _lines(short(one.problem), one.evaluator),
            _lines(one.kernel, f"{one.shape} {one.dtype}"),
            _lines(one.machine, many(one.threads, "thread")),
            _lines(
                cost(one.cost, one.unit),
                *([] if one.gain is None else [times(one.gain, one.beside)]),
                *([] if one.moves is None else [many(one.moves, "move")]),
            ),
            _lines(f"{one.programs} in {many(one.runs, 'run')}", f"{one.failures} failed"),
        )
    return table


def run_table(runs: Sequence[RunSummary]) -> Table:
    """Runs, the oldest first, two lines each."""
    table = _table(("id", "kernel", "strategy", "started"), ("best", "evaluations"))
    for one in runs:
        spent = "" if one.seconds is None else f", {one.seconds:.0f} s"
        table.add_row(
            _lines(short(one.run), one.evaluator),
            _lines(one.kernel, f"{one.shape} {one.dtype}"),
            _lines(f"{one.strategy}, {one.seed}", one.neighbourhood),
            _lines(one.started[:16].replace("T", " "), f"{one.state}{spent}"),
            _lines(
                times(one.gain, "start") if one.is_timed else cost(one.cost, one.unit),
                f"{'start' if one.is_timed else 'of'} {cost(one.root, one.unit)}",
            ),
            _lines(str(one.evaluations), f"{one.failures} failed"),
        )
    return table


def _table(left: Sequence[str], right: Sequence[str]) -> Table:
    table = Table(box=None, padding=(0, 1, 1, 0), pad_edge=False)
    for heading in left:
        table.add_column(heading, overflow="fold")
    for heading in right:
        table.add_column(heading, justify="right", overflow="fold")
    return table


def _lines(*texts: str) -> str:
    return "\n".join(map(escape, texts))


def print_details(console: Console, found: Mapping[str, Any]) -> None:
    """Print the details of a row."""
    match found["kind"]:
        case "problem":
            _print_problem(console, found)
        case "run":
            _print_run(console, found)
        case kind:
            _title(console, f"{kind} {found['hash']}")
            if kind == "trace":
                _print_trace(console, found["trace"])
            _text(console, found["text"])
            _print_origin(console, found)


def _print_problem(console: Console, found: Mapping[str, Any]) -> None:
    _title(console, f"{found['kernel']} {found['shape']} {found['dtype']}, problem {found['hash']}")
    if found["label"]:
        _line(console, f"workload {found['label']}")
    _line(console, f"machine {found['machine']}, threads {found['facts'].get('threads', '?')}")
    if not found["bests"]:
        _line(console, "nothing was evaluated yet")
    for best in found["bests"]:
        standing = best["standing"]
        _title(console, f"{standing['evaluator']}, settings {standing['settings'][:DIGITS]}")
        _line(
            console,
            f"plain {cost(standing['plain'], standing['unit'])}, best {cost(standing['cost'], standing['unit'])}"
            f" ({times(standing['gain'], standing['beside'])})",
        )
        counts = f"{standing['programs']} programs, {standing['failures']} failed, {standing['runs']} runs"
        _line(console, counts)
        if "trace" in best:
            _line(console, f"program {standing['program']}")
            _line(console, f"trace {standing['trace']}")
            _print_trace(console, best["trace"])
            _text(console, best["text"])
            _print_origin(console, best)


def _print_run(console: Console, found: Mapping[str, Any]) -> None:
    run = found["summary"]
    unit = run["unit"]
    _title(console, f"run {found['hash']}")
    _line(
        console, f"{run['kernel']} {run['shape']} {run['dtype']} on {run['machine']}, problem {short(run['problem'])}"
    )
    options = {key: value for key, value in run["options"].items() if value not in ({}, None)}
    _line(console, f"{run['strategy']} over {run['neighbourhood']}, seed {run['seed']}, {options}")
    _line(console, f"started {run['started']}, {run['state']}, last change {run['changed']}")
    failed = ", ".join(f"{count} {kind}" for kind, count in found["failed"].items()) or "none"
    seconds = "" if run["seconds"] is None else f" in {run['seconds']:.1f} s"
    _line(console, f"{run['evaluations']} evaluations{seconds}; failures: {failed}")
    table = _table(("evaluation", "trace", "program"), ("seconds", "times the start" if run["is_timed"] else "cost"))
    for row in found["improvements"]:
        table.add_row(
            str(row["number"]),
            short(row["trace"]),
            short(row["program"]),
            f"{row['seconds']:.1f}",
            times(row["gain"], "") if run["is_timed"] else cost(row["cost"], unit),
        )
    console.print(table)
    if found["best_trace"] is not None:
        _print_trace(console, found["best_trace"])
    _line(console, f"evaluator {run['evaluator']}: {found['settings']}")


def _print_trace(console: Console, text: str) -> None:
    moves = moves_in(text)
    _title(console, f"trace: {len(moves)} moves")
    for number, move in enumerate(moves):
        _line(console, f"{number:3}  {move}")
    console.print()


def _print_origin(console: Console, found: Mapping[str, Any]) -> None:
    """Print a program's measurements, traces and runs."""
    _title(console, "measurements")
    table = _table(("measured", "how", "evaluator", "settings", "result"), ("cost",))
    for row in found["measurements"][-_LISTED:]:
        table.add_row(
            escape(row["measured"][:19].replace("T", " ")),
            row["how"],
            escape(row["evaluator"]),
            short(row["settings"]),
            f"[red]{escape(row['failure'])}[/red]" if row["failure"] else "ok",
            cost(row["cost"], row["unit"]) if row["ratio"] is None else f"{row['ratio']:.3f} of the other",
        )
    console.print(table)
    for hashed, settings in found["settings"].items():
        _line(console, f"settings {short(hashed)}: {settings}")
    facts = [row["environment"] for row in found["measurements"] if row["environment"]]
    if facts:
        _line(console, f"environment: {facts[-1]}")
    more = len(found["traces"]) - _LISTED
    listed = ", ".join(map(short, found["traces"][:_LISTED])) + (f" and {more} more" if more > 0 else "")
    _line(console, f"traces that lead here: {listed or 'none'}")
    for seen in found["runs"]:
        _line(console, f"evaluation {seen['number']} of run {short(seen['run'])}")


def print_differences(console: Console, one: StoredProgram, other: StoredProgram) -> None:
    """Print the moves and the programs as differences."""
    if one.problem != other.problem:
        _line(console, "these programs belong to different problems")
    pairs = [
        ("moves", moves_in(one.trace), moves_in(other.trace)),
        ("program", one.program.splitlines(), other.program.splitlines()),
    ]
    for what, before, after in pairs:
        _title(console, what)
        lines = list(unified_diff(before, after, one.title, other.title, lineterm=""))
        for line in lines or ["no difference"]:
            _line(console, line, _STYLES.get(line[0], ""))


_STYLES = {"+": "green", "-": "red", "@": "cyan"}


def print_counts(console: Console, what: str, counts: Mapping[str, int]) -> None:
    """Print the number of rows of each table."""
    listed = ", ".join(f"{count} {table}" for table, count in counts.items() if count)
    _line(console, f"{what}: {listed or 'nothing'}")


def _title(console: Console, text: str) -> None:
    console.print(Rule(escape(text), align="left"))


def _text(console: Console, text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def _line(console: Console, text: str, style: str = "") -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True, style=style)
