"""Parts that all tables and runs of the benchmarks share."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import TypeVar

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from pdojo.backends.common.gc_pause import collect_now

WIDTH = 150
"""Width of files with tables."""
T = TypeVar("T")


def console_for(width: int = WIDTH) -> Console:
    """The console of a run; files get wide tables."""
    console = Console()
    return console if console.is_terminal else Console(width=width)


def table(headings: Sequence[str], rows: Iterable[Sequence[str]], *, words: Collection[int] = (0,)) -> Table:
    """A table; the columns `words` have words, which wrap, the others numbers. Cells are markup, headings are not."""
    found = Table()
    for number, heading in enumerate(headings):
        found.add_column(escape(heading), justify="left" if number in words else "right", no_wrap=number not in words)
    for row in rows:
        found.add_row(*row)
    return found


@contextmanager
def progress_bar(console: Console, total: int) -> Generator[tuple[Callable[[str], None], Callable[[], None]]]:
    """A bar: the first function names the current activity, the second counts one more as done."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    # A frequently redrawn display would be foreign load.
    with Progress(*columns, console=console, refresh_per_second=1, transient=True) as progress:
        bar = progress.add_task("", total=total)
        yield lambda text: progress.update(bar, description=escape(text)), lambda: progress.advance(bar)


def run_jobs(
    console: Console, jobs: Sequence[T], label_of: Callable[[T], str], run: Callable[[T, Callable[[str], None]], None]
) -> None:
    """Run jobs under a bar that names the current one and its activity, which `run` tells."""
    with progress_bar(console, len(jobs)) as (tell, advance):
        for job in jobs:
            label = label_of(job)
            run(job, lambda what, label=label: tell(f"{label}: {what}"))
            collect_now()
            advance()


def number(value: float | None, form: str = ".2f") -> str:
    """A number as text; - for None."""
    return "-" if value is None else format(value, form)


def first_line(text: str, most: int) -> str:
    """The first line of a text, cut to fit a table."""
    line = text.splitlines()[0]
    return line if len(line) <= most else f"{line[: most - 3]}..."
