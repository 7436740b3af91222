"""`make bench-compare`: the changes between two results of the benchmark, the greatest losses first.

The default for BEFORE are the stored results of the same processor: benchmarks/results/SUITE-N-threads-PROCESSOR.json.
The default for AFTER is the newest bench-*.json there.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pdojo_tools.command import Arguments, tool
from pdojo_tools.outputs import write_output
from rich.console import Console
from rich.markup import escape

from benchmarks.held import held_out
from benchmarks.origin import JSON, kind_of, origin, processor_of
from benchmarks.records import Record, geometric_mean, read_results, results_of
from benchmarks.report import title
from benchmarks.tables import console_for, number, table
from benchmarks.unseen import unseen_names
from pdojo.backends.measure import Ok
from pdojo.errors import UsageError
from pdojo.kernels import TABLE_3

RESULTS = Path(__file__).parent / "results"
NOTICED = 0.05
"""Relative change above which a figure is coloured."""


@dataclass(frozen=True)
class Results:
    """A file of results."""

    path: Path
    settings: JSON
    records: tuple[Record, ...]

    @staticmethod
    def read(path: Path) -> Results:
        """The results in a file. Raises UsageError for a file without results of this benchmark on a processor."""
        settings, records = read_results(path)
        if "simulated" in settings:
            raise UsageError(f"'{path}' has simulated cycles, which are compared exactly; this compares times")
        return Results(path, settings, tuple(records))

    @property
    def said(self) -> str:
        """The file and its origin, for people."""
        return f"{self.path.name}: {origin(self.settings)}"


@dataclass(frozen=True)
class Change:
    """One workload before and after."""

    before: Record
    after: Record

    @property
    def ratio(self) -> float | None:
        """Factor by which our ratio to the fastest peer rose; None if either is missing."""
        return _quotient(self.after.ratio, self.before.ratio)

    @property
    def share(self) -> float | None:
        """Factor by which our fraction of the roofline rose; None if either is missing."""
        return _quotient(self.after.share_of_roofline(self.after.ours), self.before.share_of_roofline(self.before.ours))

    @property
    def rank(self) -> float:
        """Sort key of the table: change of the ratio, else of the fraction of the roofline; lost results first.

        Workloads never measured against anything come last.
        """
        if self.after.median is None and self.before.median is not None:
            return 0.0
        return next((change for change in (self.ratio, self.share) if change is not None), float("inf"))


def _quotient(after: float | None, before: float | None) -> float | None:
    return None if after is None or before is None else after / before


def _arguments() -> Arguments:
    parser = Arguments(prog="python -m benchmarks.compare", description=__doc__)
    add = parser.add_argument
    add("after", nargs="?", metavar="AFTER.json", help="new results; the newest bench-*.json by default")
    add("before", nargs="?", metavar="BEFORE.json", help="older results; the stored ones of this processor by default")
    add("--across-processors", action="store_true", help="compare results of different processors all the same")
    add("--keep", action="store_true", help="then store AFTER as the results of its processor")
    return parser


@tool
def main(args: Sequence[str] | None) -> None:
    """Run the tool."""
    given = _arguments().parse_args(args)
    if given.keep and given.before is not None:
        raise UsageError("--keep replaces the stored results of the processor; leave out BEFORE")
    console = console_for()
    after = Results.read(newest(RESULTS) if given.after is None else Path(given.after))
    if given.before is not None:
        before = [Results.read(Path(given.before))]
        if not given.across_processors:
            require_one_processor(before[0], after)
    else:
        before = stored(RESULTS, after)
        if not before and not given.keep:
            raise UsageError(
                f"there are no stored results of these workloads on '{processor_of(after.settings)}' with as many "
                f"threads in '{RESULTS}'; name a file to compare with, or store these with --keep"
            )
    if before:
        _print(console, before, after)
    if given.keep:
        for path in keep(RESULTS, after):
            console.print(f"stored as {path}", highlight=False, soft_wrap=True)


def newest(folder: Path) -> Path:
    """The newest results of a run without a given output file. Raises UsageError if there are none."""
    found = sorted(folder.glob("bench-*.json"))
    if not found:
        raise UsageError(f"there is no bench-*.json in '{folder}'; run the benchmark, or name a file")
    return found[-1]


def require_one_processor(before: Results, after: Results) -> None:
    """Raise UsageError if two results are of different or unknown processors."""
    names = {each.path: processor_of(each.settings) for each in (before, after)}
    if names[before.path] is None or names[before.path] != names[after.path]:
        shown = ", ".join(f"'{path}' is of {name or 'an unknown one'}" for path, name in names.items())
        raise UsageError(f"results of different processors: {shown}; --across-processors compares them")


def stored(folder: Path, after: Results) -> list[Results]:
    """Stored results of the same processor and numbers of threads, with common workloads."""
    processor = processor_of(after.settings)
    if processor is None:
        raise UsageError(f"'{after.path}' does not say of which processor it is; name a file to compare with")
    paths = [path for n in after.settings["threads"] for path in sorted(folder.glob(file_name("*", n, processor)))]
    found = [Results.read(path) for path in paths if path.resolve() != after.path.resolve()]
    for each in found:
        # Different processors may have the same name in file names.
        require_one_processor(each, after)
    return [each for each in found if changes([each], after)]


def file_name(suite: str, threads: int, processor: str) -> str:
    """The name of stored results."""
    return f"{suite}-{threads}-thread{'s' * (threads > 1)}-{kind_of(processor)}.json"


def keep(folder: Path, after: Results) -> list[Path]:
    """Store results, one file for each number of threads. Raises UsageError if they are no suite, or incomplete."""
    processor = processor_of(after.settings)
    if processor is None:
        raise UsageError(f"'{after.path}' does not say of which processor it is")
    written: list[Path] = []
    for n in after.settings["threads"]:
        records = [record for record in after.records if record.threads == n]
        if all(record.ratio is None for record in records):
            raise UsageError("no peer was measured; `make peers` installs PyTorch, ONNX Runtime and JAX")
        suite = suite_of(folder, {record.label for record in records})
        if suite is None:
            raise UsageError(
                "these workloads are neither Table 3 nor the held-out shapes, the unseen kernels or those of a stored "
                "file"
            )
        path, settings = folder / file_name(suite, n, processor), {**after.settings, "threads": [n]}
        write_output(json.dumps(slim(results_of(settings, records)), separators=(",", ":")) + "\n", str(path))
        written.append(path)
    return written


def slim(results: JSON) -> JSON:
    """The results without traces, and without the environment of each outcome, which the settings have."""
    return {**results, "records": [_slim(record) for record in results["records"]]}


def _slim(record: JSON) -> JSON:
    rows: list[JSON] = [{**row, "outcome": {**row["outcome"], "environment": {}}} for row in record["rows"]]
    return {**{key: value for key, value in record.items() if key != "trace"}, "rows": rows}


def suite_of(folder: Path, labels: set[str]) -> str | None:
    """The name of a set of workloads; None if it is no suite."""
    for suite, known in (("table3", TABLE_3), ("held", held_out()), ("unseen", unseen_names())):
        if labels == set(known):
            return suite
    for path in sorted(folder.glob("*-thread*-*.json")):
        if labels == {record.label for record in Results.read(path).records}:
            return path.name.partition("-")[0]
    return None


def changes(before: Sequence[Results], after: Results) -> list[Change]:
    """Workloads in both, with equal numbers of threads and equal caches; the greatest losses first."""
    known = {_key(record): record for results in before for record in results.records}
    found = [Change(known[_key(record)], record) for record in after.records if _key(record) in known]
    return sorted(found, key=lambda change: change.rank)


def _key(record: Record) -> tuple[str, int, bool]:
    return record.label, record.threads, record.data["cold"]


def remarks(before: Sequence[Results], after: Results) -> Iterator[str]:
    """Differences, besides our code, that change times."""
    for each in before:
        old, new = each.settings, after.settings
        if processor_of(old) != processor_of(new):
            yield f"other processor: {processor_of(old)} before, {processor_of(new)} after"
        for package in sorted({*old.get("versions", {}), *new.get("versions", {})}):
            versions = old.get("versions", {}).get(package), new.get("versions", {}).get(package)
            if versions[0] != versions[1]:
                yield f"{package}: {versions[0] or 'none'} before, {versions[1] or 'none'} after ({each.path.name})"
        for name in ("expert", "search"):
            if old.get(name) != new.get(name):
                yield f"--{name}: {old.get(name)} before, {new.get(name)} after ({each.path.name})"
        if _is_steady(each) != _is_steady(after):
            which = "before" if _is_steady(after) else "after"
            yield f"times {which} are not steady: pauses made calls slower ({each.path.name}; docs/measurement.md)"


def _is_steady(results: Results) -> bool:
    rows = (row.outcome for record in results.records for row in record.rows)
    return any(outcome.steady is not None for outcome in rows if isinstance(outcome, Ok))


def _print(console: Console, before: Sequence[Results], after: Results) -> None:
    for name, each in (*(("before", each) for each in before), ("after", after)):
        console.print(f"{name}: {each.said}", highlight=False, soft_wrap=True, markup=False)
    found = changes(before, after)
    if not found:
        raise UsageError("no workload is in both, with the same number of threads and the same caches")
    headings = ("threads", "ratio before", "after", "change", "of roofline before", "after", "change", "fastest peer")
    console.print(table(("", *headings), map(_cells, found), words=(0, 8)))
    for text, values in (
        ("ratio to the fastest peer", [c.ratio for c in found]),
        ("part of the roofline", [c.share for c in found]),
    ):
        known = [value for value in values if value is not None]
        mean = geometric_mean(known)
        if mean is not None:
            console.print(
                f"{text}: times {mean:.3f} by geometric mean over {len(known)} of {len(found)}", highlight=False
            )
    for text in dict.fromkeys(remarks(before, after)):
        console.print(escape(text), style="yellow", highlight=False, soft_wrap=True)
    _print_missing(console, before, after)


def _print_missing(console: Console, before: Sequence[Results], after: Results) -> None:
    old = {_key(record): record.label for results in before for record in results.records}
    new = {_key(record): record.label for record in after.records}
    for name, one, other in (("before", old, new), ("after", new, old)):
        only = [f"{one[key]} ({key[1]})" for key in one if key not in other]
        if only:
            console.print(f"only {name}: {', '.join(only)}", highlight=False, soft_wrap=True, markup=False)


def _cells(change: Change) -> list[str]:
    before, after = change.before, change.after
    peers = [None if each.fastest_peer is None else title(each.fastest_peer) for each in (before, after)]
    peer = peers[1] if peers[0] == peers[1] else f"{peers[0]}, now {peers[1]}"
    return [
        escape(after.label),
        str(after.threads),
        *(number(each.ratio) for each in (before, after)),
        _coloured(change.ratio),
        *(number(each.share_of_roofline(each.ours), ".0%") for each in (before, after)),
        _coloured(change.share),
        escape(peer or "-"),
    ]


def _coloured(change: float | None) -> str:
    if change is None:
        return "-"
    colour = "red" if change < 1 - NOTICED else "green" if change > 1 + NOTICED else "default"
    return f"[{colour}]{change - 1:+.0%}[/{colour}]"


if __name__ == "__main__":
    sys.exit(main())
