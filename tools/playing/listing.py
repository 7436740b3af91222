"""A widget for many lines that draws only the visible ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from pdojo_tools.playing.colour import Painter, plain_painter
from rich.cells import cell_len
from rich.console import Console
from rich.segment import Segment
from textual.app import App
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip


class LineView(ScrollView, can_focus=True):
    """Lines of text, scrolled by keys in both directions."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.lines: Sequence[str] = ()
        """The lines without marks and colours."""
        self._painter: Painter = plain_painter(())

    def show(self, lines: Sequence[str], painter: Painter | None = None, *, stay: bool = True) -> None:
        """Show lines, from the top unless `stay`; `painter` prepends marks of three characters."""
        self.lines = [line if line.isprintable() else _printable(line) for line in lines]
        self._painter = painter or plain_painter(self.lines)
        width = max(map(cell_len, self.lines), default=0) + 3 * (painter is not None)
        self.virtual_size = Size(width, len(self.lines))
        if not stay:
            self.scroll_home(animate=False)
        self.refresh()

    def reveal(self, low: int, high: int) -> None:
        """Scroll the lines from `low` to `high` into view, or at least the first of them."""
        height = self.scrollable_content_region.height
        top = round(self.scroll_y)
        if low < top or low >= top + height:
            self.scroll_to(y=max(0, low - 1), animate=False)
        elif high >= top + height:
            self.scroll_to(y=min(low, high - height + 1), animate=False)

    @property
    def _console(self) -> Console:
        return cast(App[object], self.app).console  # pyright: ignore[reportUnknownMemberType]  # of any result

    def render_line(self, y: int) -> Strip:
        """Textual's hook: a line of the screen."""
        left, top = self.scroll_offset
        width = self.scrollable_content_region.width
        if not 0 <= top + y < len(self.lines):
            return Strip.blank(width, self.rich_style)
        segments = self._painter(top + y).render(self._console)
        return Strip(Segment.apply_style(segments, self.rich_style)).crop_extend(left, left + width, self.rich_style)


def _printable(line: str) -> str:
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in line)
