"""`pdojo-play`, by its keys: what they do to the game, and what is on the screen then."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from pdojo_tools import opt, play
from pdojo_tools.playing import app as playing_app
from pdojo_tools.playing.app import PlayApp
from pdojo_tools.playing.background_worker import BackgroundWorker
from pdojo_tools.playing.choice import ListedMove, filtered
from pdojo_tools.playing.dialogs import Ask, Help, Leave
from pdojo_tools.playing.page import Page, difference, marks_of
from pdojo_tools.playing.session import PlaySession, State
from textual.pilot import Pilot
from textual.widgets import Input

from pdojo.backends.measure import Ok, Options
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation import parse_notation, print_notation
from pdojo.dialect.view.build import nest_of
from pdojo.transforms.game import Game
from pdojo.transforms.move import Move
from pdojo.transforms.trace import Trace

ROWS = """kernel rows(x) -> (y)
x f32 [8, 16] heap
y f32 [8, 16] heap
m f32 [8] heap
e f32 [8, 16] heap

8
| m[{0}] = -inf
| 16 m[{0}] max= x[{0},{1}]
8 16 e[{0},{1}] = x[{0},{1}] - m[{0}]
8 16 y[{0},{1}] = exp(e[{0},{1}])
"""
JOINS = ("join_scopes@m:0",) * 2
QUICK = Options(samples=3, budget=0.01)

Body = Callable[[PlayApp, "Pilot[str]"], Coroutine[Any, Any, None]]


def session(*moves: str, name: str = "x86-64-avx2") -> PlaySession:
    game = Game(parse_notation(ROWS)[0], machine(name))
    for move in moves:
        game.apply(move)
    return PlaySession(game)


def run(body: Body, *moves: str, path: Path | None = None, name: str = "x86-64-avx2") -> PlayApp:
    """Play on a small screen; begins when the moves are listed."""
    app = PlayApp(session(*moves, name=name), None if path is None else str(path), QUICK)

    async def playing() -> None:
        async with app.run_test(size=(80, 24)) as pilot:
            await listed(app, pilot)
            await body(app, pilot)

    asyncio.run(playing())
    return app


async def until(pilot: Pilot[str], condition: Callable[[], bool], seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "this never happened"
        await pilot.pause(0.01)


async def listed(app: PlayApp, pilot: Pilot[str]) -> None:
    await until(pilot, lambda: app.board.moves.entries is not None)
    await pilot.pause()


async def press(app: PlayApp, pilot: Pilot[str], *keys: str) -> None:
    """Press keys that change the program, and wait for its moves."""
    number = app.view.number
    await pilot.press(*keys)
    await until(pilot, lambda: app.view.number > number)
    await listed(app, pilot)


async def choose(app: PlayApp, pilot: Pilot[str], move: str) -> None:
    """Find a move by the filter and make it."""
    await pilot.press("slash")
    app.board.moves.filter.value = move
    await pilot.press("enter")
    await until(pilot, lambda: app.board.moves.highlighted is not None)
    await press(app, pilot, "enter")


def text(app: PlayApp) -> str:
    return "\n".join(app.board.listing("program").lines) + "\n"


def screen(app: PlayApp) -> str:
    """What is on the screen now; it is painted some time after what it shows has changed."""
    strips = app.screen._compositor.render_strips()  # pyright: ignore[reportPrivateUsage]  # as screenshots do it
    return "\n".join(strip.text for strip in strips)


def test_the_screen_shows_program_moves_and_keys() -> None:
    async def body(app: PlayApp, pilot: Pilot[str]) -> None:
        parts = ("rows on x86-64-avx2", "0 moves", "| m[{0}] = -inf", "join_scopes 2", "filter", "undo", "quit")
        await until(pilot, lambda: all(part in screen(app) for part in parts))
        assert app.board.listing("program").lines == ROWS.splitlines()
        assert not app.view.unsaved
        await pilot.press("question_mark")
        assert isinstance(app.screen, Help)
        await pilot.press("escape", "q")

    assert run(body).return_value == ""


def test_the_filter_narrows_while_it_is_typed() -> None:
    async def body(app: PlayApp, pilot: Pilot[str]) -> None:
        moves = app.board.moves
        everything = len(moves.shown)
        await pilot.press("slash", *"JOIN")
        assert {e.move.name for e in moves.shown} == {"join_scopes"}
        joins = len(moves.shown)
        await pilot.press("space", *"m:0")
        assert [str(e.move) for e in moves.shown] == ["join_scopes@m:0"]
        await until(pilot, lambda: f"1 of {everything} legal" in screen(app))
        await pilot.press("enter")
        assert moves.highlighted is not None
        await pilot.press("slash", "escape")
        assert len(moves.shown) == everything > joins > 1
        await pilot.press("slash", *"jnscp")
        assert {e.move.name for e in moves.shown} == {"join_scopes"}
        await pilot.press(*"qqq")
        assert moves.shown == []
        assert moves.highlighted is None

    run(body)


def test_filters_look_at_words_then_at_letters() -> None:
    entries = [ListedMove(Move.parse(m)) for m in ("tile_scope@y:1{size=8}", "tile_dim@e:1{size=8}", "unroll@y:1")]
    assert filtered(entries, " ") == entries
    assert filtered(entries, "Y:1 TILE") == entries[:1]
    assert filtered(entries, "tledim") == entries[1:2]
    assert filtered(entries, "zz") == []


def test_a_highlighted_move_is_marked_and_previewed() -> None:
    async def body(app: PlayApp, pilot: Pilot[str]) -> None:
        await pilot.press("slash", *"join m:0", "enter")
        preview = app.board.listing("preview")
        await until(pilot, lambda: bool(preview.lines))
        assert preview.border_title == "join_scopes@m:0"
        old, new = "-8 16 e[{0},{1}] = x[{0},{1}] - m[{0}]", "+| 16 e[{0},{1}] = x[{0},{1}] - m[{0}]"
        assert {old, new} <= set(preview.lines)
        lines = (" > 8", " : | m[{0}] = -inf", "   8 16 y[{0},{1}] = exp")
        await until(pilot, lambda: all(line in screen(app) for line in lines))
        assert text(app) == ROWS

    run(body)


def test_marks_and_differences() -> None:
    state = session().view.now
    page = state.page
    assert page.text == ROWS

    def marked(move: str) -> tuple[set[str], set[str]]:
        marks = marks_of(page, state.program, Move.parse(move))
        return {page.lines[i] for i in marks.head}, {page.lines[i] for i in marks.part}

    assert marked("unroll@m:1") == ({"| 16 m[{0}] max= x[{0},{1}]"}, set())
    assert marked("parallelize@m:0") == ({"8"}, {"| m[{0}] = -inf", "| 16 m[{0}] max= x[{0},{1}]"})
    assert marked("delete_op@m#0") == ({"| m[{0}] = -inf"}, set())
    head, part = marked("reuse_dims@m:0")
    assert head == {"m f32 [8] heap"}
    assert part == {"| m[{0}] = -inf", "| 16 m[{0}] max= x[{0},{1}]", "8 16 e[{0},{1}] = x[{0},{1}] - m[{0}]"}
    assert marked("unroll@gone:1") == (set(), set())
    assert difference(["a", "b", "c", "d", "e", "f"], ["a", "b", "x", "d", "e"]) == [" b", "-c", "+x", " d", " e", "-f"]
    assert difference(["a"], ["a"]) == []
    joined = session(*JOINS).view.now
    assert joined.page.text == print_notation(joined.program.kernel)
    assert Page.of(nest_of(joined.program.kernel)).lines == joined.page.lines


def test_enter_makes_a_move_and_undo_restores_the_text() -> None:
    async def body(app: PlayApp, pilot: Pilot[str]) -> None:
        await choose(app, pilot, "join_scopes@m:0")
        assert list(map(str, app.session.game.trace.moves)) == ["join_scopes@m:0"]
        assert text(app) == app.session.game.text != ROWS
        await until(pilot, lambda: "not saved" in screen(app))
        await until(pilot, lambda: "+" in {line[:1] for line in screen(app).splitlines()})
        await press(app, pilot, "u")
        assert text(app) == ROWS
        assert app.view.steps == ()
        await pilot.press("u")
        assert "there is no move to undo" in app.messages
        await press(app, pilot, "y")
        assert len(app.view.steps) == 1
        await pilot.press("y")
        await until(pilot, lambda: "there is no undo to take back" in app.messages)

    run(body)


def test_a_typed_move_is_made_or_refused_with_the_reason() -> None:
    async def body(app: PlayApp, pilot: Pilot[str]) -> None:
        for typed, answer in (
            ("reuse_dims@e:0", "'e' would be overwritten before its last read"),
            ("nonsense", "'nonsense' is not a move"),
        ):
            await pilot.press("a")
            app.screen.query_one(Input).value = typed
            await pilot.press("enter")
            await until(pilot, lambda wanted=answer: any(wanted in m for m in app.messages))
        await pilot.press("a")
        app.screen.query_one(Input).value = "tile_scope@y:1{size=4}"
        await press(app, pilot, "enter")
        assert "8 4 4 y[" in text(app)

    run(body)


def test_deleting_a_move_in_the_middle_reports_those_that_are_lost() -> None:
    async def body(app: PlayApp, pilot: Pilot[str]) -> None:
        before = text(app)
        await pilot.press("4", "home", "down", "down")
        assert app.board.listing("preview").border_title == JOINS[1]
        await press(app, pilot, "d")
        names = [step.move.name for step in app.view.steps]
        assert "reuse_dims" not in names
        assert "tile_scope" in names
        said = "\n".join(app.messages)
        assert "1 move lost, made later and no longer legal" in said
        assert "skipped reuse_dims@e:0" in said
        await press(app, pilot, "y")
        assert text(app) == before

    run(body, *JOINS, "reuse_dims@e:0", "tile_scope@y:1{size=8}")


def test_refused_moves_are_listed_with_reasons_and_explained() -> None:
    async def body(app: PlayApp, pilot: Pilot[str]) -> None:
        await pilot.press("r", "slash", *"reuse overwritten", "enter")
        entry = app.board.moves.highlighted
        assert entry is not None
        assert entry.refusal is not None
        await until(pilot, lambda: any("refused: " in line for line in app.board.listing("preview").lines))
        await pilot.press("enter")
        assert str(entry.refusal).splitlines()[0] in app.messages
        assert app.view.steps == ()
        await pilot.press("e")
        await until(pilot, lambda: any("would help" in line for line in app.board.listing("preview").lines))
        await pilot.press("r")
        assert not app.board.moves.refused

    run(body)


def test_the_program_is_timed_and_checked() -> None:
    async def body(app: PlayApp, pilot: Pilot[str]) -> None:
        await pilot.press("t")
        await until(pilot, lambda: "timing: " in screen(app))
        await until(pilot, lambda: bool(app.times.timings))
        outcomes = [t.outcome for t in app.times.timings]
        assert [t.moves for t in app.times.timings] == [0, len(JOINS)]
        assert all(isinstance(o, Ok) and o.check is not None for o in outcomes)
        await pilot.press("4")
        await until(pilot, lambda: re.search("[ um]s join_scopes@m:0", screen(app)) is not None)
        await pilot.press("5")
        await until(pilot, lambda: "1.00x" in screen(app))
        await pilot.press("t")
        await until(pilot, lambda: len(app.times.timings) == 3)
        assert app.times.timings[2].moves == len(JOINS)

    run(body, *JOINS, name="host")


def test_a_measurement_can_be_given_up_and_failures_are_told() -> None:
    async def body(app: PlayApp, pilot: Pilot[str]) -> None:
        await pilot.press("x")
        assert "nothing is being measured" in app.messages
        await pilot.press("t", "t", "x")
        assert "a measurement is under way; x gives it up" in app.messages
        await until(pilot, lambda: "the measurement was given up" in app.messages)
        assert app.times.timings == []

    run(body)

    async def elsewhere(app: PlayApp, pilot: Pilot[str]) -> None:
        await pilot.press("t")
        await until(pilot, lambda: bool(app.times.timings))
        assert any("does not compile" in m for m in app.messages)
        await pilot.press("5")
        await until(pilot, lambda: "does not compile" in screen(app))

    run(elsewhere, name="rv64gcv")


def test_code_is_generated_for_the_program_now() -> None:
    async def body(app: PlayApp, pilot: Pilot[str]) -> None:
        code = app.board.listing("code")
        seen: list[str] = []
        for mark in ("rows:", "define ", "void rows(", "pdojo.kernel @rows"):
            await pilot.press("c")
            await until(pilot, lambda wanted=mark: any(wanted in line for line in code.lines))
            seen.append("\n".join(code.lines))
        assert len(set(seen)) == 4
        await press(app, pilot, "u")
        await until(pilot, lambda: any("pdojo.kernel" in line for line in code.lines))
        assert "\n".join(code.lines) != seen[-1]

    run(body, "join_scopes@m:0")


def test_a_saved_trace_leads_to_the_same_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rows.pdojo").write_text(ROWS)
    Path("rows.trace").write_text("old")

    async def body(app: PlayApp, pilot: Pilot[str]) -> None:
        for move in ("join_scopes@m:0", "tile_scope@y:1{size=8}"):
            await choose(app, pilot, move)
        await pilot.press("s")
        assert isinstance(app.screen, Ask)
        assert app.screen.query_one(Input).value == "rows.trace"
        await pilot.press("enter")
        assert Path("rows.trace").read_text() == "old"
        await pilot.press("enter")
        await until(pilot, lambda: not app.view.unsaved)
        assert "saved 2 moves in rows.trace" in app.messages
        await pilot.press("q")

    app = run(body)
    assert app.return_value == "the trace is in rows.trace"
    assert [str(m) for m in Trace.load("rows.trace").moves] == ["join_scopes@m:0", "tile_scope@y:1{size=8}"]
    assert opt.main(["rows.pdojo", "-t", "notation", "--apply-trace=rows.trace"]) == 0
    assert capsys.readouterr().out == app.session.game.text


def test_leaving_asks_where_moves_are_not_saved(tmp_path: Path) -> None:
    path = tmp_path / "no" / "a.trace"

    async def body(app: PlayApp, pilot: Pilot[str]) -> None:
        await choose(app, pilot, "join_scopes@m:0")
        for key in ("q", "ctrl+c"):
            await pilot.press(key)
            assert isinstance(app.screen, Leave)
            await pilot.press("escape")
            assert not isinstance(app.screen, Leave)
        await pilot.press("q", "s")
        await until(pilot, lambda: isinstance(app.screen, Ask))
        assert any("cannot write" in m for m in app.messages)
        # There may be another place, or this one after all.
        assert app.screen.query_one(Input).value == str(path)
        path.parent.mkdir()
        await pilot.press("enter")
        await until(pilot, lambda: app.return_value is not None)

    assert run(body, path=path).return_value == f"the trace is in {path}"
    assert len(Trace.load(path).moves) == 1

    async def discard(app: PlayApp, pilot: Pilot[str]) -> None:
        await press(app, pilot, "u")
        await pilot.press("q", "d")

    assert run(discard, "join_scopes@m:0", path=path).return_value == "left without saving 0 moves"
    assert len(Trace.load(path).moves) == 1


@pytest.mark.parametrize("job", [int, lambda: int("x")], ids=["done", "failed"])
def test_nothing_is_shown_when_the_screens_are_gone(job: Callable[[], int]) -> None:
    """A timer or a job may end between the last screen and the application."""

    async def body(app: PlayApp, pilot: Pilot[str]) -> None:
        await pilot.press("q")

    app = run(body)
    assert not app.screen_stack
    app.show_status("later")
    lane = BackgroundWorker("late")
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(app.done(lane, job))
    lane.close()


def test_being_ended_loses_no_moves(tmp_path: Path) -> None:
    path = tmp_path / "a.trace"

    async def body(app: PlayApp, pilot: Pilot[str]) -> None:
        await choose(app, pilot, "join_scopes@m:0")
        os.kill(os.getpid(), signal.SIGTERM)
        await until(pilot, lambda: app.return_value is not None)

    assert run(body, path=path).return_code == 128 + signal.SIGTERM
    assert not path.exists()
    assert len(Trace.load(f"{path}.unsaved").moves) == 1


def test_what_is_rescued_finds_a_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    path = tmp_path / "no" / "a.trace"

    async def body(app: PlayApp, pilot: Pilot[str]) -> None:
        await choose(app, pilot, "join_scopes@m:0")
        os.kill(os.getpid(), signal.SIGTERM)
        await until(pilot, lambda: app.return_value is not None)

    for name in ("a.trace.unsaved", "a.trace.unsaved-2"):
        assert str(run(body, path=path).return_value).endswith(f"; the trace is in {name}")
        assert len(Trace.load(Path(name)).moves) == 1


def test_what_is_out_of_date_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = Event()

    def slow(state: State, stopped: Event) -> list[ListedMove] | None:
        if state.page.text != ROWS:
            waiting.set()
            assert stopped.wait(120)
            return [ListedMove(Move.parse("stale@x"))]
        return [ListedMove(Move.parse("join_scopes@m:0"))]

    monkeypatch.setattr(playing_app, "find_candidates", slow)

    async def playing() -> None:
        app = PlayApp(session("join_scopes@m:0"), None, QUICK)
        async with app.run_test(size=(80, 24)) as pilot:
            await until(pilot, waiting.is_set)
            await until(pilot, lambda: "looking for moves" in screen(app))
            await pilot.press("question_mark")
            assert isinstance(app.screen, Help)
            await pilot.press("escape")
            app._looking.set()  # pyright: ignore[reportPrivateUsage]  # a job that ends late
            await press(app, pilot, "u")
            assert [str(e.move) for e in app.board.moves.shown] == ["join_scopes@m:0"]

    asyncio.run(playing())


def test_a_bug_is_told_and_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: PlaySession, move: Move) -> None:
        raise RuntimeError("planted")

    async def body(app: PlayApp, pilot: Pilot[str]) -> None:
        monkeypatch.setattr(PlaySession, "make", broken)
        await pilot.press("slash", *"join", "enter", "enter")
        await until(pilot, lambda: any("planted" in m for m in app.messages))
        assert app.is_running
        assert text(app) == app.session.game.text

    run(body, "join_scopes@m:0")


def test_it_does_without_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")

    async def body(app: PlayApp, pilot: Pilot[str]) -> None:
        await pilot.press("down")
        strips = app.screen._compositor.render_strips()  # pyright: ignore[reportPrivateUsage]  # as screenshots do it
        styles = [segment.style for strip in strips for segment in strip if segment.style is not None]
        assert {c.name for s in styles for c in (s.color, s.bgcolor) if c is not None} <= {"default"}
        assert any(s.reverse for s in styles)

    run(body)


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (["softmux"], "no library kernel of that name; did you mean 'softmax'"),
        (["-"], "standard input is the keyboard here"),
        (["softmax", "-o", "-"], "standard output is the screen here"),
        (["softmax", "--trace", "none.trace"], "cannot read the trace 'none.trace'"),
        (["softmax", "--machine", "cray"], "unknown machine 'cray'"),
        (["softmax", "--frobnicate"], "see pdojo-play --help"),
        (["softmax"], "pdojo-play needs a terminal, and standard input"),
        (["softmax", "-o", "no/such/a.trace"], "there is no folder 'no/such'"),
    ],
)
def test_mistakes(
    args: list[str], text: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with Path(os.devnull).open() as nothing:
        monkeypatch.setattr(sys, "__stdin__", nothing)
        assert play.main(args) == 2
    assert text in capsys.readouterr().err


@contextmanager
def terminal(*arguments: str) -> Generator[tuple[subprocess.Popen[bytes], int]]:
    """The tool on a terminal of its own, without true colours, and our end of it."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80", "LINES": "24"}
    environment.pop("COLORTERM", None)
    process = subprocess.Popen(
        [sys.executable, "-m", "pdojo_tools.play", *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environment,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(theirs)
    try:
        yield process, ours
    finally:
        process.kill()
        process.wait()
        with suppress(OSError):
            os.close(ours)


def test_it_plays_on_a_terminal(tmp_path: Path) -> None:
    kernel = tmp_path / "rows.pdojo"
    kernel.write_text(ROWS)
    with terminal(str(kernel), "--pass", "naive", "--threads", "1") as (process, ours):
        drawn = read_until(ours, b"legal")
        os.write(ours, b"q")
        drawn += read_until(ours, None)
        assert process.wait(120) == 0
    assert b"rows" in drawn
    assert b"38;2;" not in drawn
    assert b"48;2;" not in drawn


def test_a_terminal_that_hangs_up_loses_no_moves(tmp_path: Path) -> None:
    kernel, trace = tmp_path / "rows.pdojo", tmp_path / "a.trace"
    kernel.write_text(ROWS)
    with terminal(str(kernel), "-o", str(trace)) as (process, ours):
        read_until(ours, b"legal")
        os.write(ours, b"/join m:0")
        read_until(ours, b"1 of ")
        os.write(ours, b"\r")
        read_until(ours, b"@m:0")
        os.write(ours, b"\r")
        read_until(ours, b"not saved")
        os.close(ours)
        assert process.wait(120) == 128 + signal.SIGHUP
    assert len(Trace.load(f"{trace}.unsaved").moves) == 1


def read_until(terminal: int, wanted: bytes | None, seconds: float = 120) -> bytes:
    """What a process draws until `wanted` is there, or until it ends."""
    found = b""
    deadline = time.monotonic() + seconds
    while wanted is None or wanted not in found:
        assert time.monotonic() < deadline, found.decode(errors="replace")
        if select.select([terminal], [], [], 0.1)[0]:
            try:
                piece = os.read(terminal, 1 << 16)
            except OSError:
                return found
            if not piece:
                return found
            found += piece
    return found
