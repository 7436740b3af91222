"""Neighbourhoods: what is drawn how often, and that every neighbour is a program of the game with its trace."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from functools import cache
from random import Random

import pytest

from pdojo.dialect.assumptions import with_alignment
from pdojo.dialect.attributes import Mapping, Memory
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation import parse_notation
from pdojo.dialect.semantics.oracle import equivalent
from pdojo.dialect.view.nest import Leaf, Nest
from pdojo.errors import UsageError
from pdojo.kernels import workload
from pdojo.names import NEIGHBOURHOODS
from pdojo.passes.scheduled_kernel import make_moves
from pdojo.search.contract.candidates import choices, shuffled
from pdojo.search.neighbourhoods import neighbourhood
from pdojo.search.neighbourhoods.cpu import PROPOSALS
from pdojo.search.neighbourhoods.drawing import UNIFORM, each_legal
from pdojo.search.neighbourhoods.edges import Edges
from pdojo.search.neighbourhoods.editing import Editor
from pdojo.search.neighbourhoods.heuristic import Heuristic
from pdojo.search.neighbourhoods.lengths import LengthLimits, lengths
from pdojo.search.neighbourhoods.mutate import Mutate
from pdojo.search.neighbourhoods.proposals import Alteration
from pdojo.search.neighbourhoods.random_moves import RARELY, draw
from pdojo.search.neighbourhoods.sizes import other_sizes
from pdojo.transforms.game import Game
from pdojo.transforms.move import Move
from pdojo.transforms.registry import transformation

MACHINE = machine("x86-64-zen4")
TINY = """kernel k(x) -> (y)
x f32 [8, 4] heap
y f32 [8, 4] heap
t f32 [8, 4] heap

8 4 t[{0},{1}] = x[{0},{1}] + 1
8 4 y[{0},{1}] = exp(t[{0},{1}])
"""


def tiny(name: str = "toy") -> Game:
    return Game(parse_notation(TINY)[0], machine(name))


@cache
def expert(name: str) -> Game:
    """What the heuristic pass makes of a kernel; not to be changed."""
    return make_moves(with_alignment(workload(name).instantiate(), 64), MACHINE, "heuristic").game.fork()


def test_a_draw_is_a_uniform_choice_from_the_legal_moves() -> None:
    game = tiny()
    program = game.program
    legal = [c for c in choices(program) if c.is_legal(program)]
    # Candidates are located by identifier, the list of moves for people; both in one order.
    assert [c.transformation.at(program, c.site) for c in legal] == game.moves()
    draws = 2000
    counts = Counter(str(draw(program, Random(seed))) for seed in range(draws))
    assert counts.keys() == {str(c.move) for c in legal}
    expected = draws / len(legal)
    chi_squared = sum((n - expected) ** 2 / expected for n in counts.values())
    # Its mean is the degrees of freedom, its variance twice that.
    freedom = len(legal) - 1
    assert abs(chi_squared - freedom) < 4 * (2 * freedom) ** 0.5


def test_shuffling_is_uniform() -> None:
    counts = Counter("".join(shuffled("abc", Random(seed))) for seed in range(6000))
    assert len(counts) == 6
    assert all(abs(n - 1000) < 150 for n in counts.values())


def test_an_edge_is_a_move_or_the_last_one_taken_back() -> None:
    game = tiny()
    game.apply("join_scopes@t:0")
    before = game.text
    back = 0
    draws = 300
    for seed in range(draws):
        near = Edges().neighbour(game, Random(seed))
        assert near is not None
        assert abs(len(near.trace.steps) - len(game.trace.steps)) == 1
        back += len(near.trace.steps) == 0
    share = draws / (len(game.moves()) + 1)
    assert abs(back - share) < 5 * share**0.5
    assert game.text == before


def test_mutations_insert_delete_and_change() -> None:
    game = tiny()
    for move in ("join_scopes@t:0", "join_scopes@t:1", "tile_scope@t:0{size=2}"):
        game.apply(move)
    own = [step.resolved for step in game.trace.steps]
    seen: Counter[str] = Counter()
    for seed in range(100):
        near = Mutate().neighbour(game, Random(seed))
        assert near is not None
        assert near.fingerprint != game.fingerprint
        moves = [step.resolved for step in near.trace.steps]
        added = [move for move in moves if move not in own]
        seen["insert"] += len(moves) > len(own)
        seen["delete"] += len(moves) < len(own)
        seen["change"] += [move.at for move in moves] == [move.at for move in own]
        seen["again"] += len(set(added)) < len(added)
        alike = Counter((move.name, move.params) for move in set(added))
        seen["everywhere"] += max(alike.values(), default=0) > 1
    assert all(seen[kind] > 2 for kind in ("insert", "delete", "change", "again", "everywhere")), seen


def test_the_nearest_mutations_are_all_moves_and_each_one_left_out() -> None:
    game = tiny()
    for move in ("join_scopes@t:0", "join_scopes@t:1", "tile_scope@t:0{size=2}"):
        game.apply(move)
    own = tuple(step.resolved for step in game.trace.steps)
    found = list(Mutate().nearest(game, Random(0)))
    assert {after_move(game, move) for move in game.moves()} <= {near.text for near in found}
    # What needs a loop that is not joined any more goes with it.
    traces = {tuple(step.resolved for step in near.trace.steps) for near in found}
    assert {(own[0], own[1]), (own[0], own[2]), (own[2],)} <= traces


def test_nearest_mutations_map_two_scopes_anew() -> None:
    """A stream pays only with the hardware loop in it."""
    text = "kernel k(x) -> (y)\nx f64 [8, 4] heap\ny f64 [8, 4] heap\n\n8 4 y[{0},{1}] = x[{0},{1}]\n"
    game = Game(parse_notation(text)[0], machine("snitch"))
    assert not any(move.name == "frep" for move in game.moves())
    found = [near for seed in range(10) for near in Mutate().nearest(game, Random(seed))]
    assert ["stream", "frep"] in [[step.resolved.name for step in near.trace.steps] for near in found]


def test_nearest_mutations_map_scopes_to_something_else() -> None:
    game = tiny("x86-64-avx2")
    for move in ("unroll@t:1", "tile_dim@t:1{size=2}"):
        game.apply(move)
    own = [step.resolved for step in game.trace.steps]
    found = {tuple(step.resolved for step in near.trace.steps) for near in Mutate().nearest(game, Random(0))}
    remapped = {moves[1].name for moves in found if len(moves) == 2 and moves[0] == own[1]}
    assert {"vectorize", "parallelize"} <= remapped


SUMS = "kernel k(x) -> (y)\nx f64 [8, 4] heap\ny f64 [8] heap\n\n8\n| y[{0}] = 0\n| 4 y[{0}] += x[{0},{1}]\n"


def test_nearest_mutations_are_classical_transformations() -> None:
    """Unroll and jam, partial sums, scalar replacement: several moves of which the first ones do not pay alone."""
    game = Game(parse_notation(SUMS)[0], machine("snitch"))
    programs = [near.program.nest for near in Mutate().nearest(game, Random(0))]
    jammed = [nest for nest in programs if any(unrolled(leaf) == [0] for leaf in nest.leaves)]
    parts = [nest for nest in programs if is_in_registers(nest, "y_part")]
    assert jammed
    assert any(unrolled(leaf) == [1] for nest in parts for leaf in nest.leaves)
    game.apply("tile_scope@y:0{size=4}")
    found = [near for near in Mutate().nearest(game, Random(0)) if is_in_registers(near.program.nest, "y_out")]
    assert any(len(near.program.nest.arrays["y_out"].shape) == 2 for near in found)


def unrolled(leaf: Leaf) -> list[int]:
    """Which dimensions of `x` a statement reads are indexed by unrolled scopes."""
    return [
        dimension
        for access in leaf.accesses
        if access.array.name == "x"
        for dimension, expression in enumerate(access.index)
        if any(leaf.chain[depth].mapping is Mapping.UNROLL for depth in expression.variables())
    ]


def is_in_registers(nest: Nest, name: str) -> bool:
    return name in nest.arrays and nest.arrays[name].buffer.memory is Memory.REGISTER


def after_move(game: Game, move: Move) -> str:
    near = game.fork()
    near.apply(move)
    return near.text


def test_limits_forbid_what_unrolls_too_much_and_nothing_else() -> None:
    game, random, answers = tiny("x86-64-zen4"), Random(1), Counter[bool]()
    limits = LengthLimits(statements=64, copies=12)
    for step in range(12):
        program, unrolls = game.program, list[Move]()
        for choice in choices(program):
            forbidden = limits.forbid(program, choice.move)
            if choice.move.name == "unroll" and choice.is_legal(program):
                near = game.fork()
                near.apply(choice.move)
                assert forbidden == (lengths(near)[1] > limits.copies), choice.move
                answers[forbidden] += 1
                unrolls.append(choice.move)
            else:
                assert not forbidden or choice.move.name == "unroll"
        game.apply(
            random.choice(unrolls) if unrolls and step % 3 == 0 else next(each_legal(UNIFORM, program, (), random)).move
        )
    assert answers.keys() == {False, True}
    assert not limits.forbid(game.program, Move("unroll", "%nowhere"))


def test_edits_that_unroll_too_much_are_given_up() -> None:
    # All moves together make 384 copies.
    game = Game(workload("softmax:8x16").instantiate(), MACHINE)
    limits, long = LengthLimits.of(game), game.fork()
    for scope in game.program.nest.scopes:
        long.apply(Move("unroll", f"%{scope.id}"))
    assert limits.exceeded_by(long)
    ended = Counter[str]()
    for seed in range(60):
        editor = Editor(long.fork(), limits, Random(seed))
        is_short, is_long = editor.edit(), limits.exceeded_by(editor.game)
        assert not (is_short and is_long), seed
        ended["made" if is_short else "too long" if is_long else "given up before"] += 1
    assert ended["made"]
    assert ended["given up before"] >= 10


def test_mutations_lead_to_no_program_twice() -> None:
    game = tiny()
    for move in ("swap_scopes@t:0", "tile_scope@y:0{size=2}", "swap_scopes@t:0", "unroll@t:1"):
        game.apply(move)
    for seed in range(40):
        near = Mutate().neighbour(game, Random(seed))
        assert near is not None
        texts = [program.text for program in near.programs]
        assert len(set(texts)) == len(texts)


def test_arrays_that_nothing_accesses_are_left_alone() -> None:
    game = Game(
        parse_notation(TINY.replace("t f32 [8, 4] heap", "t f32 [8, 4] heap\nu f32 [8, 4] heap"))[0], machine("toy")
    )
    legal = {move.at.partition(":")[0] for move in game.moves()}
    drawn = {
        move.at.partition(":")[0]
        for move in (choice.move for choice in each_legal(UNIFORM, game.program, (), Random(0)))
    }
    assert {"t", "u"} <= legal
    assert "t" in drawn
    assert "u" not in drawn


def test_families_are_drawn_alike() -> None:
    """However many sites and parameters a family has; those that take others back are rare."""
    game = tiny()
    game.apply("unroll@t:0")
    program = game.program
    families = {c.move.name for c in choices(program) if c.is_legal(program)}
    rare = {name for name in families if transformation(name).undoes}
    draws = round(100 * (len(families - rare) + RARELY * len(rare)))
    drawn = [next(each_legal(UNIFORM, program, (), Random(seed))).move for seed in range(draws)]
    counts = Counter(move.name for move in drawn)
    assert counts.keys() == families
    assert "unmap" in rare
    for name, count in counts.items():
        expected = 100 * RARELY if name in rare else 100
        assert abs(count - expected) < 5 * expected**0.5, counts


def test_no_threads_are_proposed_where_there_are_none() -> None:
    assert any(move.name == "parallelize" for move in tiny("toy").moves())
    assert not any(move.name == "parallelize" for move in tiny("snitch").moves())


def test_short_traces_become_the_expert_pass() -> None:
    known = expert("softmax:64x64")
    plain = known.fork()
    plain.become([])
    near = Heuristic().neighbour(plain, Random(0))
    assert near is not None
    assert near.text == known.text


def test_machines_without_proposals_are_named() -> None:
    with pytest.raises(UsageError, match=r"no proposals for toy-gpu, only for CPUs"):
        Heuristic().neighbour(tiny("toy-gpu"), Random(0))


def test_unknown_neighbourhoods_are_named() -> None:
    with pytest.raises(UsageError, match=r"unknown neighbourhood 'hill'; known are edges, mutate, heuristic"):
        neighbourhood("hill")


@pytest.mark.parametrize("name", ["softmax:64x64", "matmul:32x32x32", "layernorm:4x100"])
def test_alterations_lead_to_programs_of_the_game(name: str) -> None:
    """Each alteration finds something on some kernel, is played again to the same program, and keeps the meaning."""
    game = expert(name)
    heuristic = Heuristic()
    states: dict[str, Game] = {}
    for seed in range(4):
        near = heuristic.neighbour(game, Random(seed))
        assert near is not None
        assert near.fingerprint != game.fingerprint
        states[near.fingerprint] = near
    assert len(states) > 2
    for near in states.values():
        assert_is_of_the_game(near)
    check_meaning_of(next(iter(states.values())))


def assert_is_of_the_game(game: Game) -> None:
    """The trace leads to the program, from the plain kernel."""
    again = Game(game.plain, game.machine)
    assert not again.become([step.resolved for step in game.trace.steps])
    assert again.fingerprint == game.fingerprint


def check_meaning_of(game: Game) -> None:
    assert equivalent(game.plain, game.kernel, schedules=1) is None


@pytest.mark.parametrize("alter", [alter for alter, _ in PROPOSALS.alterations])
def test_every_alteration_finds_something(alter: Alteration) -> None:
    found = 0
    for game in (expert("softmax:64x64"), expert("matmul:32x32x32")):
        for seed in range(4):
            edit = alter(game, Random(seed))
            if edit is not None:
                near = game.fork()
                near.become(edit.moves)
                found += near.fingerprint != game.fingerprint
    assert found > 1


def test_sizes_of_fused_loops_change_together() -> None:
    """softmax: the groups of e, s and y are one family, their vectors another one, with the memory of a vector.

    m has its own loop.
    """
    game = expert("softmax:64x64")
    before = [step.resolved for step in game.trace.steps]
    families: set[frozenset[str]] = set()
    for seed in range(40):
        edit = other_sizes(game, Random(seed))
        assert edit is not None
        changed = {move.at for move, old in zip(edit.moves, before, strict=True) if move != old}
        if frozenset(changed) in families:
            continue
        families.add(frozenset(changed))
        # Nothing is lost but what more copies do not allow.
        lost = {skipped.move.name for skipped in game.fork().become(edit.moves)}
        assert lost <= {"unroll", "set_location"}
    assert frozenset({"%5", "%8", "%12"}) in families
    assert frozenset({"%5.i", "%8.i", "%12.f", "%12.i", "%12.z", "e:1"}) in families
    assert frozenset({"%2"}) in families
    assert frozenset({"%2", "%5", "%8", "%12", "%15"}) in families


def test_peeled_rests_follow_the_size() -> None:
    """Where whole groups were peeled off, other whole groups are."""
    game = expert("layernorm:4x100")
    moves = [step.resolved for step in game.trace.steps]
    before = {move.at: dict(move.params)["after"] for move in moves if move.name == "peel_scope"}
    assert before
    changed = 0
    for seed in range(30):
        edit = other_sizes(game, Random(seed))
        assert edit is not None
        after = {move.at: dict(move.params)["after"] for move in edit.moves if move.name == "peel_scope"}
        changed += any(after.get(at) != old for at, old in before.items())
    assert changed


SCRIPT = """
from random import Random
from pdojo.dialect.machines.registry import machine
from pdojo.kernels import workload
from pdojo.search.contract.candidates import choices, shuffled
from pdojo.names import NEIGHBOURHOODS
from pdojo.search.neighbourhoods import neighbourhood
from pdojo.search.neighbourhoods.heuristic import Heuristic
from pdojo.transforms.game import Game

random = Random(7)
game = Game(workload("softmax:64x64").instantiate(), machine("x86-64-zen4"))
game = Heuristic().neighbour(game, random)
for name in NEIGHBOURHOODS:
    for _ in range(4):
        near = neighbourhood(name).neighbour(game, random)
        print(near.fingerprint, len(near.trace.steps))
"""


def test_neighbours_do_not_depend_on_the_process() -> None:
    found: set[str] = set()
    for seed in ("0", "77"):
        run = subprocess.run(
            [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": seed}
        )
        found.add(run.stdout)
    assert len(found) == 1
    assert len(next(iter(found)).splitlines()) == 4 * len(NEIGHBOURHOODS)
