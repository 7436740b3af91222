"""Elements of HTML. All text that is not `Html` is escaped, so that no program can inject markup."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


class Html(str):
    """Text in HTML."""

    __slots__ = ()


def html(value: object) -> Html:
    """A value as HTML, escaped unless it is `Html`."""
    return value if isinstance(value, Html) else Html(escape(str(value), quote=True))


def joined(pieces: Iterable[object], between: str = "") -> Html:
    """The pieces, joined."""
    return Html(escape(between, quote=True).join(html(piece) for piece in pieces))


def tag(name: str, *content: object, **attributes: str) -> Html:
    """An element. `kind` is its class; other keywords are its attributes."""
    given = {"class" if name == "kind" else name: value for name, value in attributes.items() if value}
    text = "".join(f' {name}="{escape(value, quote=True)}"' for name, value in given.items())
    return Html(f"<{name}{text}>{joined(content)}</{name}>")


def table(headings: Sequence[object], rows: Iterable[Sequence[object]], *, left: Iterable[int] = (0,)) -> Html:
    """A table. Columns with indices in `left` hold words, the others numbers."""
    words = set(left)

    def cells(row: Sequence[object], kind: str) -> Html:
        return tag("tr", *(tag(kind, value, kind="" if k in words else "number") for k, value in enumerate(row)))

    body = joined(cells(row, "td") for row in rows)
    return tag("div", tag("table", tag("thead", cells(headings, "th")), tag("tbody", body)), kind="wide")


def section(title: str, anchor: str, *content: object) -> Html:
    """A section with its heading."""
    return tag("section", tag("h3", title), *content, id=anchor)


def folded(summary: str, *content: object) -> Html:
    """A section that is initially folded."""
    return tag("details", tag("summary", summary), *content)


def listing(text: str) -> Html:
    """Preformatted text."""
    return tag("pre", tag("code", text))


def note(text: object) -> Html:
    """A remark."""
    return tag("p", text, kind="note")
