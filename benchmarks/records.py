"""Results: records of workloads, ratios between them, and files that survive an interruption.

During a run, `NAME.partial.jsonl` holds the settings in its first line and a record in each further line; `NAME.json`
replaces it at the end. A truncated line is measured again.
"""

from __future__ import annotations

import json
import os
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pdojo_tools.outputs import check_writable, write_output

from benchmarks.origin import JSON
from pdojo import files
from pdojo.backends.measure import Ok, Outcome, SimulatedOnSnitch
from pdojo.backends.measure.outcome import Success, outcome_from_json
from pdojo.errors import UsageError

FORMAT = 2
"""Format of the file; format 1 belonged to a script."""
OURS = "pdojo"


@dataclass(frozen=True)
class Row:
    """One implementation and its outcome."""

    library: str
    variant: str
    outcome: Outcome
    tuning_seconds: float | None = None
    """Seconds spent on the search; None without a search."""

    @property
    def title(self) -> str:
        """The name in tables."""
        return f"{self.library}: {self.variant}"


@dataclass(frozen=True)
class Record:
    """One workload with one number of threads."""

    label: str
    threads: int
    rows: tuple[Row, ...]
    data: JSON
    """The record as stored."""

    @staticmethod
    def from_json(data: JSON) -> Record:
        """The record in a file. Raises ValueError for other data."""
        try:
            rows = tuple(
                Row(r["library"], r["variant"], outcome_from_json(r["outcome"]), r.get("tuning_seconds"))
                for r in data["rows"]
            )
            return Record(data["label"], data["threads"], rows, data)
        except (KeyError, TypeError) as error:
            raise ValueError(f"no record: {error!r}") from None

    @property
    def ours(self) -> Row | None:
        """Our program: the search's if there was one; None if nothing was measured."""
        return next((row for row in reversed(self.rows) if row.library == OURS), None)

    @property
    def passed(self) -> Row | None:
        """The pass's program, at which the search started; None if there was no search."""
        first = next((row for row in self.rows if row.library == OURS), None)
        return None if first is self.ours else first

    @property
    def median(self) -> float | None:
        """Our median; None if our program failed."""
        return None if self.ours is None or not isinstance(self.ours.outcome, Ok) else self.ours.outcome.median

    @property
    def failures(self) -> list[str]:
        """The reasons for missing results of ours: of the last row, or of every row of a simulated core.

        A record without rows, such as a search, has none.
        """
        if not self.rows:
            return []
        if self.ours is None:
            return ["not measured"]
        ours = [row for row in self.rows if row.library == OURS]
        if not any(isinstance(row.outcome, SimulatedOnSnitch) for row in ours):
            ours = ours[-1:]
        return [row.outcome.summary.splitlines()[0] for row in ours if not isinstance(row.outcome, Success)]

    @property
    def fastest_peer(self) -> Row | None:
        """The fastest variant of all libraries, by medians, among those with correct results."""
        return fastest(row for row in self.rows if row.library != OURS)

    @property
    def ratio(self) -> float | None:
        """Our speed-up over the fastest peer; None if either is missing."""
        return self.ratio_to(self.fastest_peer)

    def ratio_to(self, row: Row | None) -> float | None:
        """Our speed-up over a row; None if either is missing."""
        if row is None or self.median is None or not isinstance(row.outcome, Ok):
            return None
        return row.outcome.median / self.median

    @property
    def ratio_of_minima(self) -> float | None:
        """The same as `ratio`, by the fastest samples."""
        return self._ratio_of_minima(row for row in self.rows if row.library != OURS)

    @property
    def gain(self) -> float | None:
        """The speed-up of the search's program over the pass's; None if either is missing."""
        return self.ratio_to(self.passed)

    @property
    def gain_of_minima(self) -> float | None:
        """The same as `gain`, by the fastest samples."""
        return None if self.passed is None else self._ratio_of_minima([self.passed])

    def _ratio_of_minima(self, others: Iterable[Row]) -> float | None:
        minima = [row.outcome.minimum for row in others if isinstance(row.outcome, Ok)]
        if not minima or self.ours is None or not isinstance(self.ours.outcome, Ok):
            return None
        return min(minima) / self.ours.outcome.minimum

    @property
    def unconfirmed(self) -> list[Row]:
        """Rows whose plain loop differs from the samples."""
        return [row for row in self.rows if isinstance(row.outcome, Ok) and not row.outcome.is_confirmed]

    def share_of_roofline(self, row: Row | None) -> float | None:
        """The roofline's time divided by the row's median; None if either is missing."""
        found = self.data.get("roofline")
        if found is None or row is None or not isinstance(row.outcome, Ok):
            return None
        return found["seconds"] / row.outcome.median


def fastest(rows: Iterable[Row]) -> Row | None:
    """The row with the smallest median; None if none was measured."""
    timed = [(row.outcome.median, number, row) for number, row in enumerate(rows) if isinstance(row.outcome, Ok)]
    return min(timed)[2] if timed else None


def geometric_mean(values: Sequence[float]) -> float | None:
    """The geometric mean; None without values."""
    return statistics.geometric_mean(values) if values else None


def summary(records: Sequence[Record]) -> JSON:
    """Geometric means by number of threads: speed-ups over others, and fractions of the roofline."""
    return {str(n): _summary([r for r in records if r.threads == n]) for n in sorted({r.threads for r in records})}


def _summary(records: Sequence[Record]) -> JSON:
    libraries = list(dict.fromkeys(row.library for r in records for row in r.rows if row.library != OURS))
    rows = list(dict.fromkeys((row.library, row.variant) for r in records for row in r.rows if row.library != OURS))
    return {
        "workloads": len(records),
        "without_result": [r.label for r in records if r.median is None],
        "unconfirmed": [f"{r.label}, {row.title}" for r in records for row in r.unconfirmed],
        "fastest_peer": _mean(r.ratio for r in records),
        "fastest_peer_by_minima": _mean(r.ratio_of_minima for r in records),
        "pass": _mean(r.gain for r in records),
        "pass_by_minima": _mean(r.gain_of_minima for r in records),
        "roofline_share": _mean(r.share_of_roofline(r.ours) for r in records),
        "fastest_peer_roofline_share": _mean(r.share_of_roofline(r.fastest_peer) for r in records),
        "libraries": {
            library: _mean(r.ratio_to(fastest(row for row in r.rows if row.library == library)) for r in records)
            for library in libraries
        },
        "variants": {
            f"{library}: {variant}": _mean(
                r.ratio_to(fastest(row for row in r.rows if (row.library, row.variant) == (library, variant)))
                for r in records
            )
            for library, variant in rows
        },
    }


def _mean(values: Iterable[float | None]) -> JSON:
    """The geometric mean, the number of values and the least value."""
    known = [value for value in values if value is not None]
    return {"geometric_mean": geometric_mean(known), "workloads": len(known), "least": min(known, default=None)}


class Partial:
    """The file that grows during a run."""

    def __init__(self, path: Path, settings: JSON, records: Sequence[Record]) -> None:
        self.path = path
        self.settings = settings
        self.records = list(records)

    @staticmethod
    def create(output: Path, settings: JSON) -> Partial:
        """A new file next to the output. Raises UsageError if it cannot be written, or if an old one exists."""
        path = output.with_suffix(".partial.jsonl")
        check_writable(str(output))
        try:
            path.touch(exist_ok=False)
            append_line(path, {"format": FORMAT, "output": str(output.absolute()), "settings": settings})
        except FileExistsError:
            raise UsageError(
                f"'{path}' is left from an interrupted run; go on with --resume {path}, or remove it"
            ) from None
        except OSError as error:
            raise UsageError(f"cannot write '{path}': {error.strerror}") from None
        return Partial(path, settings, [])

    @staticmethod
    def resume(path: Path) -> tuple[Partial, Path]:
        """An interrupted run and its output file. Raises UsageError for any other file."""
        text = read_text(path)
        whole = whole_lines(text)
        try:
            header = json.loads(text.partition("\n")[0])
            if header["format"] != FORMAT:
                raise UsageError(f"'{path}' has format {header['format']}, and this version writes {FORMAT}")
            partial = Partial(path, header["settings"], [])
            output = Path(header["output"])
        except (ValueError, KeyError, TypeError):
            raise UsageError(f"'{path}' is no file of an interrupted benchmark (NAME.partial.jsonl)") from None
        try:
            partial.records = [Record.from_json(json.loads(line)) for line in whole[1:]]
        except ValueError as error:
            raise UsageError(f"'{path}' is damaged: {error}") from None
        check_writable(str(output))
        try:
            drop_rest(path, whole)
        except OSError as error:
            raise UsageError(f"cannot write '{path}': {error.strerror}") from None
        return partial, output

    def has(self, label: str, threads: int) -> bool:
        """True if this workload was measured with this number of threads."""
        return any((r.label, r.threads) == (label, threads) for r in self.records)

    def add(self, data: JSON) -> Record:
        """Add a record, and write it to disk at once."""
        record = Record.from_json(data)
        append_line(self.path, data)
        self.records.append(record)
        return record

    def finish(self, output: Path, means: JSON | None = None) -> None:
        """Write the results and remove the partial file; `means` replaces the usual summary."""
        results = results_of(self.settings, self.records, means)
        write_output(json.dumps(results, indent=1) + "\n", str(output))
        self.path.unlink()


def results_of(settings: JSON, records: Sequence[Record], means: JSON | None = None) -> JSON:
    """The contents of a file of results; `means` replaces the usual summary."""
    return {
        "format": FORMAT,
        # The database's path is useless elsewhere.
        "settings": {name: value for name, value in settings.items() if name != "database"},
        "summary": summary(records) if means is None else means,
        "records": [record.data for record in records],
    }


def append_line(path: Path, data: JSON) -> None:
    """Append a line of JSON to a file; it is on disk afterwards."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(data) + "\n")
        file.flush()
        os.fsync(file.fileno())


def whole_lines(text: str) -> list[str]:
    """The lines that end with a newline: a run that is killed may leave a part of one behind them."""
    return text.split("\n")[:-1]


def drop_rest(path: Path, lines: Sequence[str]) -> None:
    """Cut a file off after its first lines; a file without a rest is not written."""
    size = sum(len(line.encode()) + 1 for line in lines)
    if path.stat().st_size > size:
        os.truncate(path, size)


MOST_BYTES = 1 << 28
"""Greatest size of a file of results in bytes."""


def read_text(path: Path) -> str:
    """The text of a file. Raises UsageError if it cannot be read."""
    try:
        return files.read_text(path, MOST_BYTES)
    except OSError as error:
        raise UsageError(f"cannot read '{path}': {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"'{path}' is no text") from None


def read_results(path: Path) -> tuple[JSON, list[Record]]:
    """The settings and the records of a finished run. Raises UsageError for any other file."""
    try:
        data = json.loads(read_text(path))
        if data["format"] != FORMAT:
            raise UsageError(f"'{path}' has format {data['format']}, and this version reads {FORMAT}")
        return data["settings"], [Record.from_json(record) for record in data["records"]]
    except (ValueError, KeyError, TypeError):
        raise UsageError(f"'{path}' has no results of the benchmark") from None
