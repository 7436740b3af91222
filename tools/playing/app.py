"""The game on the screen. The game, the measurements and the code each compute in their own thread."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from threading import Event

from pdojo_tools.playing.app_shell import BINDINGS, AppShell
from pdojo_tools.playing.background_worker import BackgroundWorker
from pdojo_tools.playing.choice import ListedMove
from pdojo_tools.playing.dialogs import Ask
from pdojo_tools.playing.generated import code_lines, forms_for
from pdojo_tools.playing.moves_pane import MovesPane
from pdojo_tools.playing.page import Marks, difference, marks_of
from pdojo_tools.playing.session import GameView, PlaySession, State, find_candidates, preview, spell_count
from pdojo_tools.playing.stopwatch import PlayStopwatch, PlayTimings
from pdojo_tools.playing.trace_pane import TracePane, summary
from textual import on
from textual.binding import Binding
from textual.widgets import OptionList, TabbedContent

from pdojo.backends.measure import Options, Success
from pdojo.errors import PdojoError
from pdojo.transforms.game import Skipped
from pdojo.transforms.move import Move


class PlayApp(AppShell):
    """The application; `options` are the options of measurements."""

    BINDINGS = [  # noqa: RUF012  # as the library declares it
        Binding("slash", "filter", "filter", key_display="/", priority=True),
        Binding("u", "undo", "undo"),
        Binding("y", "redo", "redo", show=False),
        Binding("t", "time", "time"),
        Binding("x", "stop", "stop timing", show=False),
        Binding("c", "code", "code"),
        Binding("r", "refused", "refused", show=False),
        Binding("e", "explain", "explain", show=False),
        Binding("a", "any_move", "any move", show=False, priority=True),
        *BINDINGS,
    ]

    def __init__(self, session: PlaySession, path: str | None = None, options: Options | None = None) -> None:
        super().__init__(session, path)
        self.times = PlayTimings()
        self._clock, self._coder = BackgroundWorker("clock"), BackgroundWorker("code")
        self._stopwatch = PlayStopwatch(session.game.machine, self.view.states[0], options)
        self._looking = Event()
        """Set to cancel the search for moves."""
        self._timing: Event | None = None
        """Set to cancel the current measurement; None if there is none."""
        self._timing_since = 0.0
        self._form = forms_for(session.game.machine)[0]
        self._coded: tuple[str, str] | None = None
        """The program's fingerprint, and the form of its code that is shown or being generated."""

    # The screen.

    def on_mount(self) -> None:
        """Show the first state."""
        self.set_interval(0.25, self._show_status)
        self.board.moves.move_tree.focus()
        self._look(self.view)

    def on_unmount(self) -> None:
        """End all threads."""
        self._looking.set()
        for lane in (self._game, self._clock, self._coder):
            lane.close()
        if self._timing is None:
            self._stopwatch.close()
        else:
            # The measuring thread closes it.
            self._timing.set()
            self._stopwatch.interrupt()

    def show(self, view: GameView) -> None:
        """Show a state; look for its moves if it is new."""
        is_new = view.number != self.view.number
        self.view = view
        if is_new:
            self._look(view)
        self._show_status()

    def _look(self, view: GameView) -> None:
        self._looking.set()
        self._looking = Event()
        board = self.board
        board.show_game(view, self.times)
        board.moves.show(None)
        board.show_preview("", [])
        self.run_worker(partial(self._find_moves, view, self._looking), group="moves", exclusive=True)
        self._show_code()

    def _show_status(self) -> None:
        doing = ""
        if self._timing is not None:
            doing = f"timing: {self._stopwatch.phase} {time.monotonic() - self._timing_since:.0f} s"
        self.show_status(summary(self.view, self.times, doing))

    # Moves.

    async def _find_moves(self, view: GameView, stopped: Event) -> None:
        entries = await self.done(self._game, find_candidates, view.now, stopped)
        if view.number == self.view.number:
            self.board.moves.show(entries or [])

    @on(MovesPane.Highlighted)
    @on(OptionList.OptionHighlighted, "#trace")
    @on(TabbedContent.TabActivated, "#right")
    def _highlighted(self) -> None:
        """Show the change of the highlighted move, or of the highlighted step of the trace."""
        board, states = self.board, self.view.states
        if board.is_open("moves"):
            self.run_worker(partial(self._preview, self.view, board.moves.highlighted), group="preview", exclusive=True)
        elif board.is_open("trace"):
            board.show_program(self.view, Marks())
            number = board.trace.highlighted or 0
            if 0 < number < len(states):
                lines = difference(states[number - 1].page.lines, states[number].page.lines)
                board.show_preview(str(self.view.steps[number - 1].move), lines)
            else:
                board.show_preview("", [])

    async def _preview(self, view: GameView, entry: ListedMove | None) -> None:
        """Show the place and the change of a move, unless the cursor moves on at once."""
        if entry is None:
            self.board.show_program(view, Marks())
            self.board.show_preview("", [])
            return
        await asyncio.sleep(0.05)
        marks = await self.done(self._game, marks_of, view.now.page, view.now.program, entry.move)
        if entry.refusal is not None:
            lines = [f"refused: {entry.refusal.reason}", *entry.refusal.witness.splitlines()]
        else:
            lines = await self.done(self._game, preview, view.now, entry.move)
        is_current = view.number == self.view.number and self.board.is_open("moves")
        if is_current and self.board.moves.highlighted is entry:
            self.board.show_program(view, marks or Marks())
            self.board.show_preview(str(entry.move), lines or [], prose=entry.refusal is not None)

    @on(MovesPane.Chosen)
    def _chosen(self, event: MovesPane.Chosen) -> None:
        if event.entry.refusal is not None:
            self.say(str(event.entry.refusal), error=True)
        else:
            self._make(event.entry.move)

    def _make(self, move: Move) -> None:
        async def make() -> None:
            view = await self.done(self._game, self.session.make, move)
            if view is not None:
                self.show(view)

        self.run_worker(make, group="game")

    def action_any_move(self) -> None:
        """Ask for a move and make it."""
        entry = self.board.moves.highlighted

        def make(text: str | None) -> None:
            if text is None:
                return
            try:
                self._make(Move.parse(text))
            except PdojoError as error:
                self.say(str(error), error=True)

        self.push_screen(Ask("Which move?", "" if entry is None else str(entry.move)), make)

    def action_filter(self) -> None:
        """Focus the filter."""
        self.board.open("moves")
        self.screen.set_focus(self.board.moves.filter)

    def action_refused(self) -> None:
        """Toggle the refused moves."""
        self.board.open("moves")
        self.board.moves.toggle_refused()

    def action_explain(self) -> None:
        """Explain the highlighted move."""
        entry = self.board.moves.highlighted
        if entry is None:
            self.say("highlight a move first")
            return

        async def explain(move: Move) -> None:
            self.board.show_preview(f"{move}: asking ...", [])
            lines = await self.done(self._game, self.session.explain, move)
            self.board.show_preview(str(move), lines or [], prose=True)

        self.run_worker(partial(explain, entry.move), group="preview", exclusive=True)

    # The trace.

    def action_undo(self) -> None:
        """Take the last move back."""
        if self.view.steps:
            self._undo(-1)
        else:
            self.say("there is no move to undo")

    @on(TracePane.Delete)
    def _delete(self, event: TracePane.Delete) -> None:
        self._undo(event.index)

    def _undo(self, index: int) -> None:
        async def undo() -> None:
            done = await self.done(self._game, self.session.undo, index)
            if done is not None:
                view, skipped = done
                self.show(view)
                self._report(skipped)

        self.run_worker(undo, group="game")

    def _report(self, skipped: list[Skipped]) -> None:
        if skipped:
            self.say(f"{spell_count(len(skipped))} lost, made later and no longer legal (y takes the undo back):")
            self.say("\n".join(map(str, skipped)), error=True)

    def action_redo(self) -> None:
        """Take the last undo back."""

        async def redo() -> None:
            view = await self.done(self._game, self.session.redo)
            if view is not None:
                self.show(view)

        self.run_worker(redo, group="game")

    # Times and code.

    def action_time(self) -> None:
        """Time the program, and the plain one the first time."""
        if self._timing is not None:
            self.say("a measurement is under way; x gives it up")
            return
        view = self.view
        plain = view.states[0]
        wanted = {state.fingerprint: (moves, state) for moves, state in ((0, plain), (len(view.steps), view.now))}
        if view.now is not plain and self.times.latest(plain) is not None:
            wanted.pop(plain.fingerprint, None)
            wanted[view.now.fingerprint] = len(view.steps), view.now
        self._timing, self._timing_since = Event(), time.monotonic()
        self._show_status()
        self.run_worker(partial(self._time, list(wanted.values()), self._timing), group="clock")

    async def _time(self, wanted: list[tuple[int, State]], stopped: Event) -> None:
        outcomes = await self.done(self._clock, self._stopwatch.measure, [state for _, state in wanted], stopped)
        self._timing = None
        for (moves, state), outcome in zip(wanted, outcomes or (), strict=False):
            self.times.add(moves, state, outcome)
            if not isinstance(outcome, Success):
                self.say(f"after {spell_count(moves)}: {outcome.summary}", error=True)
        self.board.show_times(self.view, self.times)
        self._show_status()

    def action_stop(self) -> None:
        """Cancel the measurement."""
        if self._timing is None:
            self.say("nothing is being measured")
        else:
            self._timing.set()
            self._stopwatch.interrupt()

    def action_code(self) -> None:
        """Show the code; if it is shown, show its next form."""
        if self.board.is_open("code"):
            forms = forms_for(self.session.game.machine)
            self._form = forms[(forms.index(self._form) + 1) % len(forms)]
        self.board.open("code")
        self._show_code()

    @on(TabbedContent.TabActivated, "#left")
    def _show_code(self) -> None:
        """Generate the code if its tab is open and the program or the form has changed."""
        wanted = self.view.now.fingerprint, self._form
        if not self.board.is_open("code") or wanted == self._coded:
            return
        self._coded = wanted
        self.board.show_code(self._form, ["generating ..."], "")
        self.run_worker(partial(self._generate, wanted, self.view.now), group="code", exclusive=True)

    async def _generate(self, wanted: tuple[str, str], state: State) -> None:
        form = wanted[1]
        lines = await self.done(self._coder, code_lines, state.program.kernel, self.session.game.machine, form)
        if wanted == self._coded:
            self.board.show_code(form, lines or [], state.program.nest.name)
