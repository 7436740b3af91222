"""The screen around a game: messages, background jobs, saving and leaving."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import tempfile
import traceback
from collections.abc import Callable
from itertools import chain, count
from pathlib import Path
from types import FrameType
from typing import ParamSpec, TypeVar

from pdojo_tools.playing.background_worker import BackgroundWorker
from pdojo_tools.playing.dialogs import Ask, Help, Leave, Leaving
from pdojo_tools.playing.look import CSS, THEME
from pdojo_tools.playing.main_view import TABS, MainView
from pdojo_tools.playing.session import GameView, PlaySession, spell_count
from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.screen import ModalScreen
from textual.widgets import Footer, Input, Static

from pdojo.errors import PdojoError

P = ParamSpec("P")
T = TypeVar("T")

BINDINGS = (
    Binding("s", "save", "save", priority=True),
    Binding("z", "zoom", "zoom", show=False),
    Binding("question_mark", "help", "help", key_display="?"),
    Binding("q", "leave", "quit"),
    Binding("ctrl+c,ctrl+q", "leave", "quit", show=False, priority=True),
    *(Binding(str(n), f"open('{tab}')", tab, show=False) for n, tab in enumerate(TABS, 1)),
)
"""The keys of the shell's actions, last in the footer."""

LONGEST = 8
"""Greatest number of a message's lines shown outside of the log."""


class AppShell(App[str]):
    """An application with a game; its result is the farewell message."""

    CSS = CSS
    ENABLE_COMMAND_PALETTE = False

    def __init__(self, session: PlaySession, path: str | None) -> None:
        # Textual reads NO_COLOR before there is a theme, and then chooses between no colours and greys.
        super().__init__(ansi_color=True)
        self.register_theme(THEME)
        self.theme = THEME.name
        self.session = session
        self.path = path
        """The file of the trace; None to ask for it."""
        self.view: GameView = session.view
        self.saved = False
        """True if the trace was stored."""
        self.messages: list[str] = []
        self._game = BackgroundWorker("game")
        self._status = ""

    def compose(self) -> ComposeResult:
        """Textual's hook: the widgets."""
        yield Static("", id="status", markup=False)
        yield MainView()
        yield Footer(compact=True, show_command_palette=False)

    @property
    def board(self) -> MainView:
        """The two sides of the screen."""
        # The bottom screen, since a dialog may be above it.
        return self.screen_stack[0].query_one(MainView)

    def on_mount(self) -> None:
        """Handle lost connections."""
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self._terminated)
        self._on_hangup = signal.signal(signal.SIGHUP, self._hung_up)

    def on_unmount(self) -> None:
        """Restore the signal handler."""
        signal.signal(signal.SIGHUP, self._on_hangup)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """True if a key is active.

        Keys that open an input act before the next key is handled, unless an input is open.
        """
        if action in ("filter", "any_move", "save"):
            return not isinstance(self.focused, Input) and not isinstance(self.screen, ModalScreen)
        return super().check_action(action, parameters)

    def show_status(self, text: str) -> None:
        """Show the status line; it is drawn only if it changed, for slow connections."""
        # The line, and then its screen, are gone when the application closes.
        for screen in self.screen_stack[:1]:
            for status in screen.query("#status").results(Static):
                if text != self._status:
                    self._status = text
                    status.update(text)

    def say(self, text: str, *, error: bool = False) -> None:
        """Show a message for some seconds and in the log."""
        self.messages += [*text.splitlines(), ""]
        self.board.show_log(self.messages)
        shown = "\n".join(text.splitlines()[-LONGEST:])
        self.notify(shown, severity="error" if error else "information", timeout=8 if error else 4, markup=False)

    async def done(self, lane: BackgroundWorker, job: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
        """The result of a job; None if it failed, which is reported.

        Raises CancelledError if the application closes.
        """
        result, failure = None, ""
        try:
            result = await lane.run(job, *args, **kwargs)
        except PdojoError as error:
            failure = str(error)
        except Exception:  # noqa: BLE001  # a bug that one move shows must not lose all the others
            failure = f"this is a bug in pdojo:\n{traceback.format_exc()}"
        if not self.is_running:
            # There are no screens to show the result on.
            raise asyncio.CancelledError
        if failure:
            self.say(failure, error=True)
        return result

    def show(self, view: GameView) -> None:
        """Show a state of the game."""
        raise NotImplementedError

    def action_open(self, tab: str) -> None:
        """Open a tab."""
        self.board.open(tab)

    def action_zoom(self) -> None:
        """Toggle between the focused pane alone and all panes."""
        if self.screen.maximized is not None:
            self.screen.minimize()
        else:
            self.screen.action_maximize()

    def action_help(self) -> None:
        """Show the keys."""
        self.push_screen(Help())

    # Saving and leaving.

    def action_save(self) -> None:
        """Store the trace."""
        self._save(lambda: None)

    def _save(self, then: Callable[[], None]) -> None:
        """Store the trace, ask for the file if it is not known, and call `then`."""

        async def save(path: str) -> None:
            view = await self.done(self._game, self.session.save, path)
            if view is None:
                # Another file may work.
                ask(path)
                return
            self.path, self.saved = path, True
            self.show(view)
            self.say(f"saved {spell_count(len(view.steps))} in {path}")
            then()

        def start(path: str | None) -> None:
            if path is not None:
                self.run_worker(save(path), group="game")

        def ask(path: str) -> None:
            self.push_screen(Ask("Save the trace in which file?", path, _doubt), start)

        if self.path is not None:
            start(self.path)
        else:
            ask(self._default_path)

    @property
    def _default_path(self) -> str:
        return re.sub(r"[^\w.-]", "_", self.view.now.program.nest.name) + ".trace"

    def action_leave(self) -> None:
        """End the game; ask if moves would be lost."""
        if isinstance(self.screen, Leave):
            return
        if not self.view.unsaved:
            self._end()
            return

        def answered(answer: Leaving | None) -> None:
            if answer == "save":
                self._save(self._end)
            elif answer == "discard":
                self.exit(f"left without saving {spell_count(len(self.view.steps))}")

        self.push_screen(Leave(len(self.view.steps)), answered)

    def _end(self) -> None:
        self.exit(f"the trace is in {self.path}" if self.saved else "")

    def _terminated(self) -> None:
        """Handle SIGTERM."""
        self.exit(f"ended by SIGTERM{self._rescued()}", return_code=128 + signal.SIGTERM)

    def _hung_up(self, number: int, frame: FrameType | None) -> None:
        """Handle SIGHUP: the terminal is gone, and drawing may block for ever."""
        self._rescued()
        os._exit(128 + number)

    def _rescued(self) -> str:
        """Store an unsaved trace next to its file or wherever possible; returns the message about it."""
        if not self.view.unsaved:
            return ""
        wanted = Path(f"{self.path or self._default_path}.unsaved")
        reason = ""
        for folder in (wanted.parent, Path(), Path(tempfile.gettempdir())):
            path = _free(folder / wanted.name)
            try:
                self.session.save(str(path))
            except PdojoError as error:
                reason = reason or str(error)
            else:
                return f"; the trace is in {path}"
        return f"; {reason}; the trace was\n{self.session.game.trace.dump()}"


def _free(path: Path) -> Path:
    """The path, numbered if it is taken, so that earlier rescued files stay."""
    others = (path.with_name(f"{path.name}-{number}") for number in count(2))
    return next(each for each in chain([path], others) if not each.exists())


def _doubt(path: str) -> str | None:
    return f"'{path}' exists; Enter again replaces it" if Path(path).exists() else None
