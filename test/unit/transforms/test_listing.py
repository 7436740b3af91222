"""Lists of moves: of one family or place they are part of the whole list; long programs are asked in small parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from pdojo import load
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation import parse_notation
from pdojo.dialect.view.copying import Copier
from pdojo.dialect.view.nest import Nest, Node
from pdojo.errors import IllegalMove, LocationError
from pdojo.passes.passes import run_pass
from pdojo.transforms.apply import candidates
from pdojo.transforms.game import Game
from pdojo.transforms.promises import Promises
from pdojo.transforms.registry import transformation, transformation_names


def chain(number: int) -> str:
    """A program of elementwise nests, each of which reads what the one before has written."""
    names = ["x", *(f"t{k}" for k in range(number - 1)), "y"]
    lines = ["kernel chain(x) -> (y)", *(f"{name} f32 [16, 18] heap" for name in ("x", "y", *names[1:-1])), ""]
    lines += [f"16 18 {names[k + 1]}[{{0}},{{1}}] = exp({names[k]}[{{0}},{{1}}])" for k in range(number)]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("on", ["x86-64-avx2", "toy-gpu", "snitch"])
def test_a_family_or_a_place_is_part_of_the_list(on: str) -> None:
    game = Game(load("softmax:4x8"), machine(on))
    everything = [str(move) for move in game.moves()]
    refused = [str(refusal.move) for refusal in game.refused()]
    by_family = [str(move) for name in transformation_names() for move in game.moves(name)]
    assert by_family == everything
    for at in ("y", "y:0", "e:1", "m#1"):
        here = [str(move) for move in game.moves(at=at)]
        assert here == [move for move in everything if _is_at(game, move, at)]
        assert [str(r.move) for r in game.refused(at=at)] == [move for move in refused if _is_at(game, move, at)]
    assert [str(m) for m in game.moves("tile_scope", "y:1")] == [
        m for m in everything if m.startswith("tile_scope@y:1{")
    ]
    with pytest.raises(LocationError, match="there is no array 'q'"):
        game.moves(at="q")
    with pytest.raises(IllegalMove, match="did you mean 'tile_scope'"):
        game.moves("tile_scop")


def _is_at(game: Game, move: str, at: str) -> bool:
    """Whether a move is at a location, which names different sites for different families."""
    name, _, rest = move.partition("@")
    kind = transformation(name)
    try:
        return kind.resolve(game.program, rest.partition("{")[0]) == kind.resolve(game.program, at)
    except LocationError:
        return False


def copied(monkeypatch: pytest.MonkeyPatch, ask: Callable[[], object]) -> int:
    """The number of top-level nodes that are copied while a question is asked."""
    number, copy = 0, Copier.copy

    def counted(self: Copier, roots: Sequence[Node]) -> Nest:
        nonlocal number
        number += len(roots)
        return copy(self, roots)

    with monkeypatch.context() as patched:
        patched.setattr(Copier, "copy", counted)
        ask()
    return number


def test_questions_about_long_programs_are_asked_of_small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four times the nests have sixteen times the pairs, but only four times the copies of nests."""
    short, long = (Game(parse_notation(chain(n))[0], machine("x86-64-avx2")) for n in (6, 24))
    few, many = copied(monkeypatch, short.moves), copied(monkeypatch, long.moves)
    assert many <= 5 * few


@pytest.mark.parametrize("played", [False, True])
def test_the_list_is_that_of_rehearsals(monkeypatch: pytest.MonkeyPatch, played: bool) -> None:
    """Without promises, every move that is listed leads to a legal program, and no other is missing."""
    game = Game(parse_notation(chain(4))[0], machine("x86-64-avx2"))
    if played:
        run_pass("heuristic", game)
    listed = [(verdict.move, verdict.is_legal) for verdict in candidates(game.program)]
    tried = Game(game.kernel, machine("x86-64-avx2"))
    for name in transformation_names():
        monkeypatch.setattr(transformation(name), "promises", Promises())
    assert [(verdict.move, verdict.is_legal) for verdict in candidates(tried.program)] == listed


def test_room_in_registers_depends_on_when_a_buffer_is_used() -> None:
    """Moves around a buffer change its time of use, not its uses; answers about its memory are then given anew."""
    arrays = [f"{name} f64 [20] {'register' if name == 'r' else 'heap'}" for name in "xyzvrtu"]
    copies = [f"20:u {to}[{{0}}] = {source}[{{0}}]" for to, source in ("rx", "ux", "vu", "yr", "tx", "zt")]
    text = "\n".join(["kernel k(x) -> (y, z, v)", *arrays, "", *copies, ""])
    game = Game(parse_notation(text)[0], machine("snitch"))
    wanted = "set_location@t{location=register}"
    assert wanted in map(str, game.moves("set_location", "t"))
    for name in "yvuyvuvu":
        game.apply(f"swap_nodes@{name}:0")
    assert wanted not in map(str, game.moves("set_location", "t"))
    with pytest.raises(IllegalMove, match="register buffers would take 320 bytes"):
        game.apply(wanted)
