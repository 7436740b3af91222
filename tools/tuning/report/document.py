"""The frame of all reports: one file that loads nothing, with all text escaped."""

from __future__ import annotations

from pdojo_tools.tuning.report.elements import Html, tag
from pdojo_tools.tuning.report.style import STYLE


def document(title: str, *content: object) -> str:
    """A whole page: the title as its heading, then the content."""
    head = tag(
        "head",
        Html('<meta charset="utf-8">'),
        Html('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        Html("<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"),
        tag("title", title),
        tag("style", Html(STYLE)),
    )
    body = tag("body", tag("h1", title), *content)
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"
