"""Moves, traces and locations as data; the game that takes any move back; transformations as patterns."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from xdsl.pattern_rewriter import PatternRewriteWalker

from pdojo.dialect.attributes import Numerics
from pdojo.dialect.canonical import canonicalize
from pdojo.dialect.flow.program import Program
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation import parse_notation, print_notation
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.semantics.oracle.compare import equivalent
from pdojo.dialect.view.build import nest_of
from pdojo.dialect.view.locations import find_array, find_dimension, find_node, location_of
from pdojo.errors import IllegalMove, LocationError, UsageError
from pdojo.transforms.apply import apply, legal_moves
from pdojo.transforms.game import Game
from pdojo.transforms.mapping.cpu import Unroll
from pdojo.transforms.move import Move, parse_moves
from pdojo.transforms.passes import Everywhere
from pdojo.transforms.registry import TRANSFORMATION_NAMES, transformation
from pdojo.transforms.storage.slots import ReuseDims
from pdojo.transforms.structure.fusion import JoinScopes
from pdojo.transforms.structure.tiling import TileScope
from pdojo.transforms.trace import Step, Trace
from qa.inverses import lost_on_the_way_back

TOY = machine("toy")

SOFTMAX = """
kernel softmax(x) -> (y)
x f32 [4, 8] heap
y f32 [4, 8] heap
m f32 [4] heap
s f32 [4] heap
e f32 [4, 8] heap

4
| m[{0}] = -inf
| 8 m[{0}] max= x[{0},{1}]
4 8 e[{0},{1}] = x[{0},{1}] - m[{0}]
4 8 e[{0},{1}] = exp(e[{0},{1}])
4
| s[{0}] = 0
| 8 s[{0}] += e[{0},{1}]
4 8 y[{0},{1}] = e[{0},{1}] / s[{0}]
"""

PLAIN = """
kernel plain(x) -> (y)
x f32 [8] heap
y f32 [8] heap
t f32 [8] heap

8 t[{0}] = x[{0}] + 1
8 y[{0}] = exp(t[{0}])
"""


def kernel(text: str) -> KernelOp:
    return parse_notation(text)[0]


def game(text: str, on: Machine = TOY) -> Game:
    return Game(kernel(text), on)


def tree(state: Game) -> str:
    return print_notation(state.kernel).partition("\n\n")[2]


class TestMove:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("join_scopes@t:0", Move("join_scopes", "t:0")),
            ("tile_scope@t#1:0{size=16}", Move("tile_scope", "t#1:0", (("size", 16),))),
            (" hint @ y { kind = prefetch , access=1 } ", Move("hint", "y", (("kind", "prefetch"), ("access", 1)))),
            ('expand@%4.o{into=t index="{0},{1}"}', Move("expand", "%4.o", (("into", "t"), ("index", "{0},{1}")))),
            ('split_scopes@t:0{after=-1 id="3"}', Move("split_scopes", "t:0", (("after", -1), ("id", "3")))),
            ("unmap@y:0{}", Move("unmap", "y:0")),
            (
                r'insert_op@y:0{text="4 t[{0}]!lane(\"a\\\\b\") = 1" place=after}',
                Move("insert_op", "y:0", (("text", r'4 t[{0}]!lane("a\\b") = 1'), ("place", "after"))),
            ),
            (r'insert_op@y{text="a\nb;c"}', Move("insert_op", "y", (("text", "a\nb;c"),))),
        ],
    )
    def test_parse(self, text: str, expected: Move) -> None:
        assert Move.parse(text) == expected
        assert Move.parse(str(expected)) == expected

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("", "'' is not a move; write name@location"),
            ("join_scopes", "'join_scopes' is not a move"),
            ("join_scopes@", "'join_scopes@' is not a move"),
            ("Join@t", "'Join@t' is not a move"),
            ("tile_scope@t{size=16", "is not a move"),
            ("tile_scope@t{size}", "cannot read the parameters at 'size'"),
            ("tile_scope@t{size=4 size=8}", "parameter 'size' is given twice"),
            ("tile_scope@t{size=4 =}", "cannot read the parameters at '='"),
        ],
    )
    def test_malformed(self, text: str, message: str) -> None:
        with pytest.raises(IllegalMove) as error:
            Move.parse(text)
        assert message in str(error.value)

    def test_lists_split_at_commas_outside_braces(self) -> None:
        moves = parse_moves('tile_scope@t:0{size=4, outer=a}, unroll@t:1,expand@z{into=t index="{0},{1}"}')
        assert [m.name for m in moves] == ["tile_scope", "unroll", "expand"]

    def test_moves_are_values(self) -> None:
        tile = Move.parse("tile_scope@t:0{size=4}")
        assert len({tile, Move.parse("tile_scope@t:0{ size=4 }")}) == 1
        assert sorted([tile, Move.parse("join_scopes@t:0")])[1] == tile
        assert str(tile.moved_to("%3")) == "tile_scope@%3{size=4}"

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("tile_scpoe@t:0{size=4}", "unknown move 'tile_scpoe'; did you mean 'tile_scope'?"),
            ("fly@t:0", "unknown move 'fly'; known are join_scopes, split_scopes"),
            ("tile_scope@t:0", "parameter 'size' is missing; write tile_scope@t:0{size=...}"),
            ("tile_scope@t:0{sise=4}", "'tile_scope' has no parameter 'sise'; did you mean 'size'?"),
            ("swap_scopes@t:0{size=4}", "'swap_scopes' has no parameter 'size'; it has none"),
            ("tile_scope@t:0{size=big}", "parameter 'size' must be an integer, not 'big'"),
            ("set_location@t{location=1}", "parameter 'location' must be a word, not '1'"),
        ],
    )
    def test_moves_that_fit_no_transformation(self, text: str, message: str) -> None:
        with pytest.raises(IllegalMove) as error:
            game(PLAIN).apply(text)
        assert message in str(error.value)


class TestLocations:
    def test_the_shortest_form_comes_back(self) -> None:
        nest = nest_of(kernel(SOFTMAX))
        for node in (*nest.scopes, *nest.leaves):
            assert find_node(nest, location_of(nest, node)) is node
        assert [location_of(nest, s) for s in nest.scopes][:6] == ["m:0", "m:1", "e#0:0", "e#0:1", "e#1:0", "e#1:1"]
        assert [location_of(nest, leaf) for leaf in nest.leaves][:4] == ["m#0", "m#1", "e#0", "e#1"]

    def test_ambiguity_is_judged_on_the_node(self) -> None:
        nest = nest_of(kernel(SOFTMAX))
        assert find_node(nest, "m:0") is find_node(nest, "m#1:0")
        assert find_node(nest, "m:1") is find_node(nest, "m#1:1")

    @pytest.mark.parametrize(
        ("location", "message"),
        [
            ("e:0", "location 'e:0' is ambiguous; candidates: e#0:0, e#1:0"),
            ("m", "location 'm' is ambiguous; candidates: m#0, m#1"),
            ("q:0", "there is no array 'q'; the arrays are x, y, m, s, e"),
            ("x:0", "no op writes 'x'; locations name the op by its output"),
            ("y:2", "the op is inside 2 scopes, depths count from 0"),
            ("m#2", "'m' is written by 2 ops"),
            ("m#", "'m#' is not a location; write array, array#k, array:depth or array#k:depth"),
            ("%nope", "no node has that identifier any more"),
        ],
    )
    def test_errors(self, location: str, message: str) -> None:
        with pytest.raises(LocationError) as error:
            find_node(nest_of(kernel(SOFTMAX)), location)
        assert message in str(error.value)

    @pytest.mark.parametrize(
        ("move", "message"),
        [
            ("join_scopes@y", "location 'y' is an op; name one of the scopes around it, for example y:0"),
            ("contract@y:0", "location 'y:0' is a scope; name an op by its output, for example y"),
            ("reuse_dims@e", "'e' is not a dimension; write array:dimension"),
            ("reuse_dims@e:2", "'e' has 2 dimensions"),
            ("set_location@f{location=stack}", "there is no array 'f'"),
        ],
    )
    def test_moves_want_their_kind_of_place(self, move: str, message: str) -> None:
        with pytest.raises(LocationError) as error:
            game(SOFTMAX).apply(move)
        assert message in str(error.value)

    def test_dimensions_and_arrays(self) -> None:
        nest = nest_of(kernel(SOFTMAX))
        assert find_dimension(nest, "e:1")[1] == 1
        assert find_array(nest, "e").shape == (4, 8)


class TestTrace:
    def test_text_form(self) -> None:
        state = game(PLAIN)
        state.apply_all(["tile_scope@t:0{size=4}", "unroll@t:1"])
        text = state.trace.dump()
        assert text == (
            "# pdojo trace 1\nkernel plain\nmachine toy\nalign 4\nnumerics reassociate contract\n"
            "tile_scope@t:0{size=4}  ; %0\nunroll@t:1  ; %0.i\n"
        )
        assert Trace.parse(text) == state.trace

    def test_what_the_kernel_assumed(self) -> None:
        aligned = game(PLAIN.replace("x f32 [8] heap", "x f32 [8] heap align 32"))
        assert set(aligned.trace.alignments) == {4, 32}
        bare = game(PLAIN.replace(")\n", ")\nnumerics exact\n", 1))
        assert bare.trace.numerics == (Numerics.EXACT,)
        for state in (aligned, bare, game(PLAIN)):
            assert Trace.parse(state.trace.dump()) == state.trace
            assert state.fork().trace == state.trace

    @pytest.mark.parametrize("line", ["align 24", "align 0", "align -4", "align 64 x", "align " + 9 * "9"])
    def test_a_wrong_alignment(self, line: str) -> None:
        with pytest.raises(UsageError, match=r"^mine:1: '.*': alignments are powers of two, in bytes$"):
            Trace.parse(line, "mine")

    @pytest.mark.parametrize("word", ["kernel", "machine", "align", "numerics"])
    def test_a_word_alone(self, word: str) -> None:
        with pytest.raises(UsageError, match=f"^mine:1: '{word}' has no value"):
            Trace.parse(word, "mine")

    def test_an_unknown_class(self) -> None:
        with pytest.raises(UsageError, match=r"^mine:2: unknown numerics class 'fast'; known: none, exact, "):
            Trace.parse("align 4\nnumerics contract fast\n", "mine")

    def test_what_a_kernel_does_not_give(self) -> None:
        found = game(PLAIN).trace
        (poor,) = parse_notation(PLAIN.replace(")\n", ")\nnumerics contract\n", 1))
        assert found.missing(game(PLAIN).kernel) == ""
        assert (
            found.missing(poor)
            == "; the trace was found for a kernel that permits reassociate, which this one does not"
        )
        aligned = replace(found, alignments=(64,))
        assert aligned.missing(game(PLAIN).kernel) == (
            "; the trace was found for arrays aligned to 64 bytes, and here they are aligned to 4 bytes"
        )

    def test_bare_moves_and_comments(self) -> None:
        trace = Trace.parse("# by hand\n\njoin_scopes@t:0\n  reuse_dims@t:0  \n")
        assert [str(m) for m in trace.moves] == ["join_scopes@t:0", "reuse_dims@t:0"]

    def test_errors_name_the_line(self) -> None:
        with pytest.raises(IllegalMove, match=r"^mine:2: 'nonsense' is not a move"):
            Trace.parse("join_scopes@t:0\nnonsense\n", "mine")

    @pytest.mark.parametrize("text", ["", "\n", "unroll@t:0\n", "# by hand\nunroll@t:0\n", "# pdojo trace 2\n"])
    def test_files_have_a_header(self, text: str, tmp_path: Path) -> None:
        path = tmp_path / "plain.trace"
        path.write_text(text)
        with pytest.raises(UsageError, match="is no trace: it" + (" is empty" if not text.strip() else "s first line")):
            Trace.load(path)

    def test_files(self, tmp_path: Path) -> None:
        path = tmp_path / "plain.trace"
        state = game(PLAIN)
        state.apply("join_scopes@t:0")
        state.trace.save(path)
        assert Trace.load(path) == state.trace
        assert [p.name for p in tmp_path.iterdir()] == ["plain.trace"]
        with pytest.raises(UsageError, match=r"cannot read the trace .*: No such file or directory"):
            Trace.load(tmp_path / "none.trace")
        with pytest.raises(UsageError, match=r"cannot write the trace .*: No such file or directory"):
            state.trace.save(tmp_path / "none" / "plain.trace")

    def test_a_trace_of_locations_replays_by_identifier(self) -> None:
        first, second = game(SOFTMAX), game(SOFTMAX)
        first.apply_all(["join_scopes@e#0:0", "join_scopes@e#0:1", "unroll@e:1"])
        assert second.replay(first.trace.steps) == []
        assert print_notation(first.kernel) == print_notation(second.kernel)


class TestUndo:
    def played(self) -> Game:
        state = game(SOFTMAX)
        state.apply("join_scopes@e#0:0")
        state.apply("join_scopes@e#0:1")
        state.apply("join_scopes@m:0")
        state.apply("join_scopes@m:0")
        state.apply("tile_scope@y:1{size=4}")
        state.apply("vectorize@y:2")
        state.apply("split_reduction@s#1:1{size=4}")
        return state

    def test_the_last_move_goes_to_the_letter(self) -> None:
        state = self.played()
        before = print_notation(state.programs[-2].kernel)
        assert state.undo() == []
        assert print_notation(state.kernel) == before

    @pytest.mark.parametrize("index", range(7))
    def test_any_move_and_the_later_ones_stay(self, index: int) -> None:
        """What does not apply any more is reported; the rest is what making the rest at once would give."""
        state = self.played()
        moves = list(state.trace.steps)
        skipped = state.undo(index)
        kept = [step for k, step in enumerate(moves) if k != index and step.move not in {s.move for s in skipped}]
        assert [step.resolved for step in state.trace.steps] == [step.resolved for step in kept]
        again = game(SOFTMAX)
        assert again.replay(kept) == []
        assert print_notation(again.kernel) == print_notation(state.kernel)
        assert equivalent(kernel(SOFTMAX), state.kernel) is None

    def test_a_later_move_that_needs_the_removed_one_is_skipped(self) -> None:
        state = self.played()
        skipped = state.undo(4)
        assert [str(s.move) for s in skipped] == ["vectorize@y:2"]
        assert "no node has that identifier any more" in str(skipped[0])

    def test_a_later_move_that_would_be_illegal_is_skipped(self) -> None:
        state = game(PLAIN)
        state.apply_all(["join_scopes@t:0", "reuse_dims@t:0", "unroll@t:0"])
        skipped = state.undo(0)
        assert [str(s.move) for s in skipped] == ["reuse_dims@t:0"]
        assert "'t' would be overwritten before its last read" in str(skipped[0])
        assert tree(state) == "8:u t[{0}] = x[{0}] + 1\n8 y[{0}] = exp(t[{0}])\n"

    def test_replay_never_hits_another_node(self) -> None:
        """`t:0` would name another scope after the undo; its identifier does not."""
        state = game(PLAIN)
        state.apply_all(["tile_scope@t:0{size=4}", "unroll@t:0"])
        skipped = state.undo(0)
        assert len(skipped) == 1
        assert tree(state).startswith("8 t[{0}]")

    @pytest.mark.parametrize("index", [7, -8, 99])
    def test_moves_that_do_not_exist(self, index: int) -> None:
        state = self.played()
        before = print_notation(state.kernel)
        with pytest.raises(UsageError, match=rf"cannot undo move {index}: the trace has 7 moves, numbered from 0"):
            state.undo(index)
        assert print_notation(state.kernel) == before

    def test_a_refused_move_changes_nothing(self) -> None:
        state = game(PLAIN)
        before = print_notation(state.kernel)
        with pytest.raises(IllegalMove):
            state.apply("reuse_dims@t:0")
        assert print_notation(state.kernel) == before
        assert state.trace.steps == []

    def test_the_kernel_of_the_caller_is_never_changed(self) -> None:
        mine = kernel(PLAIN)
        before = print_notation(mine)
        Game(mine, TOY).apply_all(["join_scopes@t:0", "reuse_dims@t:0", "unroll@t:0"])
        assert print_notation(mine) == before

    @pytest.mark.parametrize("text", [PLAIN, SOFTMAX])
    def test_inverses_survive_being_written_down(self, text: str) -> None:
        """The inverse of every legal move, as text, leads back."""
        state = game(text)
        for move in state.moves():
            applied = apply(state.program, move)
            inverse = None if applied.inverse is None else Move.parse(str(applied.inverse))
            assert lost_on_the_way_back(state.program, applied.program, inverse) is None, move


class TestPatterns:
    """The same definitions in xDSL's rewrite walks: they rewrite wherever nothing speaks against it."""

    @staticmethod
    def rewritten(text: str, *patterns: JoinScopes | ReuseDims | Unroll | TileScope) -> str:
        mine = kernel(text)
        canonicalize(mine)
        for pattern in patterns:
            PatternRewriteWalker(Everywhere(pattern), apply_recursively=False).rewrite_region(mine.body)
            mine.verify()
        assert equivalent(kernel(text), mine) is None
        return print_notation(mine).partition("\n\n")[2]

    def test_everywhere(self) -> None:
        assert self.rewritten(PLAIN, Unroll()) == "8:u t[{0}] = x[{0}] + 1\n8:u y[{0}] = exp(t[{0}])\n"

    def test_a_walk_to_the_end(self) -> None:
        mine = kernel(SOFTMAX)
        canonicalize(mine)
        PatternRewriteWalker(Everywhere(JoinScopes())).rewrite_region(mine.body)
        assert equivalent(kernel(SOFTMAX), mine) is None
        assert print_notation(mine).partition("\n\n")[2].splitlines()[0] == "4"
        assert not [m for m in legal_moves(Program(mine, TOY)) if m.name == "join_scopes"]

    def test_only_where_legal(self) -> None:
        mine = kernel(SOFTMAX)
        canonicalize(mine)
        PatternRewriteWalker(Everywhere(ReuseDims()), apply_recursively=False).rewrite_region(mine.body)
        assert print_notation(mine) == print_notation(kernel(SOFTMAX))
        PatternRewriteWalker(Everywhere(JoinScopes())).rewrite_region(mine.body)
        PatternRewriteWalker(Everywhere(ReuseDims()), apply_recursively=False).rewrite_region(mine.body)
        flags = {b.names[0]: b.reuse for b in nest_of(mine).buffers}
        assert flags["m"] == flags["s"] == (True,)
        assert flags["e"] == (True, False)
        assert equivalent(kernel(SOFTMAX), mine) is None

    def test_with_parameters(self) -> None:
        tiled = self.rewritten(PLAIN, TileScope(4))
        assert tiled == "2 4 t[{0}*4+{1}] = x[{0}*4+{1}] + 1\n2 4 y[{0}*4+{1}] = exp(t[{0}*4+{1}])\n"


def test_found_is_applicable() -> None:
    """Every candidate that is not refused applies, and every one that is refused does not."""
    state = game(SOFTMAX)
    state.apply_all(["join_scopes@m:0", "tile_scope@y:1{size=4}"])
    for move in state.moves():
        apply(state.program, move)
    for refusal in state.refused():
        with pytest.raises(IllegalMove) as error:
            apply(state.program, refusal.move)
        assert str(error.value) == str(refusal)


@pytest.mark.parametrize("name", TRANSFORMATION_NAMES)
def test_names_and_parameters(name: str) -> None:
    cls = transformation(name)
    assert cls.name == name


class TestNoGather:
    """A machine that cannot access memory with a stride."""

    MACHINE = replace(TOY, name="strideless", gather=False)
    STRIDED = "the access {} over scope {{0}} of extent 4{} is not contiguous, which strideless cannot do"

    def refusal(self, text: str, move: str) -> str:
        with pytest.raises(IllegalMove) as error:
            game(text, self.MACHINE).apply(move)
        return str(error.value)

    def test_vectorize(self) -> None:
        text = "kernel k(x) -> (y)\nx f32 [8] heap\ny f32 [4] heap\n\n4 y[{0}] = x[{0}*2]\n"
        assert self.STRIDED.format("x[{0}*2]", "") in self.refusal(text, "vectorize@y:0")

    def test_swap_dims(self) -> None:
        text = (
            "kernel k(x) -> (y)\nx f32 [4] heap\ny f32 [4] heap\nt f32 [2, 4] heap\n\n"
            "4:v t[1,{0}] = x[{0}]\n4:v y[{0}] = t[1,{0}]\n"
        )
        assert self.STRIDED.format("t[1,{0}]", ":v") in self.refusal(text, "swap_dims@t:0")


class TestCanonicalForm:
    def test_a_guard_stays_below_what_it_spares(self) -> None:
        """A guard over outer variables moves up only past scopes that hold nothing else."""
        text = (
            "kernel k(x) -> (z)\nx f32 [4, 6] heap\nz f32 [4, 4] heap\n\n"
            "4 4\n| z[{0},{1}] = 2\n| 1 where ({1} < 1) z[{0},{1}] = x[{0},0]\n"
        )
        mine = kernel(text)
        canonicalize(mine)
        assert print_notation(mine) == text
        assert equivalent(kernel(text), mine) is None

    def test_a_guard_that_cuts_off_the_last_iterations_shortens_the_scope_it_moves_to(self) -> None:
        text = (
            "kernel k(x, z) -> (z)\nx f32 [4] heap\nz f32 [4, 4] heap\n\n"
            "4 4 2 where ({0} <= 1, {1} >= 2) z[{0},{1}] += x[{2}]\n"
        )
        mine = kernel(text)
        canonicalize(mine)
        assert print_notation(mine).splitlines()[-1] == "2 4 where ({1} >= 2) 2 z[{0},{1}] += x[{2}]"
        assert equivalent(kernel(text), mine) is None


def test_steps_keep_both_forms() -> None:
    state = game(PLAIN)
    state.apply("unroll@t:0")
    assert state.trace.steps == [Step(Move("unroll", "t:0"), Move("unroll", "%0"))]
