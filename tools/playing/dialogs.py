"""Dialogs above the game: questions and help."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

from pdojo_tools.playing.moves_pane import SteadyInput
from pdojo_tools.playing.session import spell_count
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Input, Static

Leaving: TypeAlias = Literal["save", "discard"]
"""Answers on leaving with unsaved moves."""

HELP = """\
Every move that is listed keeps the meaning of the program.

1 program  2 code  3 moves  4 trace  5 times  6 log: go there
Tab    the next pane
z      the pane with the cursor alone on the screen, and back

/      filter the moves: words in the move, or letters in order
up, down   highlight a move: the program shows what it is about,
       and below it stands what it would change
Enter  make the highlighted move; open or close a group
a      make a move as typed: tile_scope@y:1{size=24}
r      refused moves with the reasons, and back
e      explain the highlighted move: the questions and answers

u      undo the last move
d      in the trace: take the highlighted move back; later ones
       stay where they still apply, the others are reported
y      take an undo back

t      time the program and compare its result with that of the
       interpreter; at first, time the plain program too
x      give up a measurement
c      code: assembly, then LLVM IR, C, MLIR
s      save the trace
q      leave; asks where moves are not saved

Marks before lines: + changed by the last move, - lines are gone
above, > what the move names, : what is in it or uses it
"""


class Ask(ModalScreen[str | None]):
    """Asks for a line of text; the result is None if cancelled.

    `doubt` returns an objection to an answer, which is shown; a second Enter gives the answer anyway.
    """

    BINDINGS = [Binding("escape", "cancel", "cancel")]  # noqa: RUF012  # as the library declares it

    def __init__(self, question: str, value: str, doubt: Callable[[str], str | None] = lambda _: None) -> None:
        super().__init__()
        self._question = question
        self._value = value
        self._doubt = doubt
        self._doubted: str | None = None

    def compose(self) -> ComposeResult:
        """Textual's hook: the widgets."""
        with Vertical(classes="dialog"):
            yield Static(self._question, markup=False)
            yield SteadyInput(self._value, compact=True, select_on_focus=False)
            yield Static("Enter: yes, Escape: no", id="doubt", markup=False)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Take the answer, or show the objection."""
        answer = event.value.strip()
        if not answer:
            return
        doubt = None if answer == self._doubted else self._doubt(answer)
        if doubt is None:
            self.dismiss(answer)
            return
        self._doubted = answer
        self.query_one("#doubt", Static).update(doubt)

    def action_cancel(self) -> None:
        """Close without an answer."""
        self.dismiss(None)


class Leave(ModalScreen[Leaving | None]):
    """Asks what to do with unsaved moves; the result None means stay."""

    BINDINGS = [  # noqa: RUF012  # as the library declares it
        Binding("s", "answer('save')", "save and leave"),
        Binding("d", "answer('discard')", "discard and leave"),
        Binding("escape,q", "answer('')", "stay"),
    ]

    def __init__(self, count: int) -> None:
        super().__init__()
        self._count = count

    def compose(self) -> ComposeResult:
        """Textual's hook: the widgets."""
        with Vertical(classes="dialog"):
            yield Static(f"The trace ({spell_count(self._count)}) is not saved.")
            yield Static("s: save it and leave    d: discard it and leave    Escape: stay")

    def action_answer(self, answer: str) -> None:
        """Close with an answer."""
        self.dismiss("save" if answer == "save" else "discard" if answer == "discard" else None)


class Help(ModalScreen[None]):
    """Shows the keys."""

    BINDINGS = [Binding("escape,q,question_mark,enter", "dismiss", "close")]  # noqa: RUF012  # as the library declares it

    def compose(self) -> ComposeResult:
        """Textual's hook: the widgets."""
        with VerticalScroll(classes="dialog help"):
            yield Static(HELP, markup=False)
