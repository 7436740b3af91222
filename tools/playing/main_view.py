"""The main view: the program with a preview and the code on the left, lists on the right."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import TextWrapper

from pdojo_tools.playing.colour import difference_painter, program_painter
from pdojo_tools.playing.listing import LineView
from pdojo_tools.playing.moves_pane import MovesPane
from pdojo_tools.playing.page import Marks
from pdojo_tools.playing.session import GameView
from pdojo_tools.playing.stopwatch import PlayTimings
from pdojo_tools.playing.trace_pane import TimesPane, TracePane
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.widget import Widget
from textual.widgets import TabbedContent, TabPane
from textual.widgets._tabbed_content import ContentTabs

TABS = {"program": "left", "code": "left", "moves": "right", "trace": "right", "times": "right", "log": "right"}
"""The tabs in the order of their keys, with their sides."""


class MainView(Horizontal):
    """The two sides of the screen."""

    def compose(self) -> ComposeResult:
        """Textual's hook: the widgets."""
        with TabbedContent(id="left"):
            with TabPane("1 Program", id="tab-program"), Vertical():
                yield LineView(id="program")
                yield LineView(id="preview")
            with TabPane("2 Code", id="tab-code"):
                yield LineView(id="code")
        with TabbedContent(id="right"):
            with TabPane("3 Moves", id="tab-moves"):
                yield MovesPane()
            with TabPane("4 Trace", id="tab-trace"):
                yield TracePane()
            with TabPane("5 Times", id="tab-times"):
                yield TimesPane()
            with TabPane("6 Log", id="tab-log"):
                yield LineView(id="log")

    def on_mount(self) -> None:
        """Let Tab move between panes; tabs have their own keys."""
        for tabs in self.query(ContentTabs):
            tabs.can_focus = False

    @property
    def moves(self) -> MovesPane:
        """The pane of moves."""
        return self.query_one(MovesPane)

    @property
    def trace(self) -> TracePane:
        """The pane of the trace."""
        return self.query_one(TracePane)

    def listing(self, name: str) -> LineView:
        """One of the listings: `program`, `preview`, `code`, `times`, `log`."""
        return self.query_one(f"#{name}", LineView)

    def is_open(self, tab: str) -> bool:
        """True if a tab is visible."""
        return self.query_one(f"#{TABS[tab]}", TabbedContent).active == f"tab-{tab}"

    def open(self, tab: str) -> None:
        """Show a tab and focus it."""
        if self.screen.maximized is not None:
            self.screen.minimize()
        self.query_one(f"#{TABS[tab]}", TabbedContent).active = f"tab-{tab}"
        pane: Widget = self.moves.move_tree if tab == "moves" else self.trace if tab == "trace" else self.listing(tab)
        self.screen.set_focus(pane)

    def show_game(self, view: GameView, times: PlayTimings) -> None:
        """Show a state: its program, its trace, its times."""
        self.show_program(view, Marks())
        changed = view.changes.changed | view.changes.below_gap
        if changed:
            self.listing("program").reveal(min(changed), max(changed))
        self.show_times(view, times)

    def show_times(self, view: GameView, times: PlayTimings) -> None:
        """Show the measurements."""
        self.trace.show(view, times)
        self.query_one(TimesPane).show(view, times)

    def show_program(self, view: GameView, marks: Marks) -> None:
        """Show the program, with the lines of a move marked."""
        page = view.now.page
        self.listing("program").show(page.lines, program_painter(page, view.changes, marks))
        if marks.head:
            self.listing("program").reveal(min(marks.head), max(marks.head | marks.part))

    def show_preview(self, title: str, lines: Sequence[str], *, prose: bool = False) -> None:
        """Show a difference, or wrapped prose, below the program."""
        listing = self.listing("preview")
        # A title is markup: escape its square brackets.
        listing.border_title = title.replace("[", r"\[")
        if prose:
            listing.show(_wrapped(lines, listing), stay=False)
        else:
            listing.show(lines, difference_painter(lines), stay=False)

    def show_log(self, messages: Sequence[str]) -> None:
        """Show the messages."""
        log = self.listing("log")
        log.show(_wrapped(messages, log))
        log.scroll_end(animate=False)

    def show_code(self, form: str, lines: Sequence[str], name: str) -> None:
        """Show generated code from the top of the function, if it is found."""
        self.query_one("#left", TabbedContent).get_tab("tab-code").label = f"2 Code: {form}"
        listing = self.listing("code")
        listing.show(lines, stay=False)
        first = next((i for i, line in enumerate(lines) if line.startswith((f"{name}:", "define "))), 0)
        listing.scroll_to(y=first, animate=False)


def _wrapped(lines: Sequence[str], listing: LineView) -> list[str]:
    """The lines wrapped to the listing's width; continuation lines are indented."""
    # A pane that was never visible has no width yet.
    width = listing.scrollable_content_region.width or 40
    found: list[str] = []
    for line in lines:
        indent = " " * (len(line) - len(line.lstrip()))
        wrapper = TextWrapper(width, initial_indent=indent, subsequent_indent=f"{indent}  ", break_on_hyphens=False)
        found += wrapper.wrap(line.strip()) or [""]
    return found
