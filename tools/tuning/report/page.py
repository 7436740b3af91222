"""The page of a report, with a chapter for each kernel."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from pdojo_tools.tuning.limits import cost_text, times_text
from pdojo_tools.tuning.report.chapter import Chapter
from pdojo_tools.tuning.report.document import document
from pdojo_tools.tuning.report.elements import Html, joined, note, table, tag

_SECTIONS = (
    ("summary", "Summary"),
    ("convergence", "Convergence"),
    ("program", "Program"),
    ("trace", "Trace"),
    ("code", "Code"),
    ("failures", "Failures"),
    ("time", "Time"),
    ("provenance", "Provenance"),
)
_OF_SEARCHES = ("convergence", "failures", "time")


def page(chapters: Sequence[Chapter], made: str, models: Html) -> str:
    """The whole page; `made` gives the time and the tool, `models` is about whole models."""
    title = f"pdojo-tune: {', '.join(chapter.result.task.title for chapter in chapters)}"
    overview = _overview(chapters) if len(chapters) > 1 else _links(chapters[0], 0)
    bodies = [chapter.html(number) for number, chapter in enumerate(chapters)]
    return document(title, note(made), models, overview, *bodies)


def _links(chapter: Chapter, number: int) -> Html:
    shown = [
        (anchor, name) for anchor, name in _SECTIONS if chapter.result.found is not None or anchor not in _OF_SEARCHES
    ]
    return tag("nav", *(joined([tag("a", name, href=f"#k{number}-{anchor}"), " "]) for anchor, name in shown))


def _overview(chapters: Sequence[Chapter]) -> Html:
    rows: list[tuple[object, ...]] = []
    for number, chapter in enumerate(chapters):
        times = {each.title: each.cost for each in chapter.result.timed}
        # Without a search, the programs are called `before` and `after`.
        plain = times.get("plain", times.get("before", inf))
        passed = times.get("pass", times.get("after", inf))
        tuned = chapter.result.timed[-1].cost if chapter.result.timed else inf
        link = tag("a", chapter.result.task.title, href=f"#k{number}")
        gains = [times_text(cost, tuned) if cost < inf else "-" for cost in (plain, passed)]
        rows.append((link, cost_text(tuned, chapter.result.unit), *gains))
    return table(("kernel", "tuned", "times plain", "times the pass"), rows)
