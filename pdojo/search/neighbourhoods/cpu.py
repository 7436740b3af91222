"""Alternatives to complete traces for CPUs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from random import Random
from typing import Literal

from pdojo.dialect.attributes import Memory
from pdojo.dialect.flow.program import Program
from pdojo.dialect.view.nest import Leaf, Nest, leaves_of
from pdojo.passes.common.builder import PassBuilder
from pdojo.passes.common.greedy import place_buffers
from pdojo.passes.cpu.fusion import recompute
from pdojo.passes.cpu.heuristic import heuristic
from pdojo.passes.cpu.streams import stream
from pdojo.passes.cpu.threads import share_work, small, work
from pdojo.passes.cpu.vectors import shrink_temporaries, unroll_groups, vectorize_statement
from pdojo.search.contract.candidates import shuffled
from pdojo.search.neighbourhoods.proposals import Edit, Proposals
from pdojo.search.neighbourhoods.random_moves import draw
from pdojo.search.neighbourhoods.sizes import other_sizes
from pdojo.transforms.game import Game, Skipped
from pdojo.transforms.legality.judge import Legality
from pdojo.transforms.move import Move
from pdojo.transforms.registry import instantiate, transformation, transformation_names

DROPPED = 1 / 3
"""Probability of deleting a structural move instead of inserting one."""
PLACES = (Memory.REGISTER, Memory.STACK, Memory.HEAP)
NEAREST = 64
"""Least prefetch distance in bytes: a cache line."""


def _moves(game: Game) -> list[Move]:
    return [step.resolved for step in game.trace.steps]


def _positions(moves: Sequence[Move], *names: str) -> list[int]:
    return [k for k, move in enumerate(moves) if move.name in names]


def _without(moves: Sequence[Move], at: int) -> list[Move]:
    return [*moves[:at], *moves[at + 1 :]]


def _with(moves: Sequence[Move], at: int, other: Move) -> list[Move]:
    return [*moves[:at], other, *moves[at + 1 :]]


def _is_legal(program: Program, move: Move) -> bool:
    """True if a move is legal; its location must exist."""
    made = instantiate(move)
    return Legality.of(program).ask(program, made, made.resolve(program, move.at)).is_legal


def threads(game: Game, random: Random) -> Edit | None:
    """Parallelise another loop of the same nest, or no loop."""
    moves = _moves(game)
    places = _positions(moves, "parallelize")
    if not places:
        drawn = draw(game.program, random, ["parallelize"])
        return None if drawn is None else Edit([*moves, drawn], "parallelize")
    at = random.choice(places)
    program = game.programs[at]
    site = program.nest.by_id[moves[at].at.removeprefix("%")]
    root = site.chain[0]
    # Threads cost more than loops with little work.
    others = [s for s in program.nest.scopes if s is not site and s.chain[0] is root and work(s) >= small(game.machine)]
    for scope in shuffled([*others, None], random):
        if scope is None:
            return Edit(_without(moves, at), "parallelize")
        other = Move("parallelize", f"%{scope.id}")
        if _is_legal(program, other):
            return Edit(_with(moves, at, other), "parallelize")
    return None


def hints(game: Game, random: Random) -> Edit | None:
    """Add or remove a hint, or double or halve a prefetch distance."""
    moves = _moves(game)
    options: list[list[Move] | None] = [None]
    for at in _positions(moves, "hint"):
        options.append(_without(moves, at))
        params = dict(moves[at].params)
        distance = params.get("value")
        if params["kind"] == "prefetch" and isinstance(distance, int):
            for other in (2 * distance, distance // 2):
                if other >= NEAREST:
                    params["value"] = other
                    options.append(_with(moves, at, Move("hint", moves[at].at, tuple(params.items()))))
    return _edit(game, random, options, "hint")


def unrolling(game: Game, random: Random) -> Edit | None:
    """Unroll one loop more, or one fewer."""
    moves = _moves(game)
    return _edit(game, random, [None, *(_without(moves, at) for at in _positions(moves, "unroll"))], "unroll")


def _edit(game: Game, random: Random, options: Sequence[list[Move] | None], name: str) -> Edit | None:
    """Draw a trace of `options`; half of the time, or if all options are None, append a legal move of the name."""
    wanted = random.choice(options[1:]) if len(options) > 1 and random.random() < 0.5 else None
    if wanted is None:
        drawn = draw(game.program, random, [name])
        wanted = None if drawn is None else [*_moves(game), drawn]
    return None if wanted is None else Edit(wanted, name)


def structure(game: Game, random: Random) -> Edit | None:
    """Insert a move that fuses, splits, exchanges or tiles at a random point, or delete one."""
    moves = _moves(game)
    present = _positions(moves, *_exchanged("order"))
    if present and random.random() < DROPPED:
        return Edit(_without(moves, random.choice(present)))
    at = random.randrange(len(moves) + 1)
    drawn = draw(game.programs[at], random, [random.choice(_exchanged("order"))])
    return None if drawn is None else Edit([*moves[:at], drawn, *moves[at:]])


def locations(game: Game, random: Random) -> Edit | None:
    """Move a temporary to another memory."""
    moves = _moves(game)
    options: list[list[Move]] = []
    for at in _positions(moves, "set_location"):
        program, (_, present) = game.programs[at], moves[at].params[0]
        before = program.nest.arrays[moves[at].at].buffer.memory
        for place in PLACES:
            other = Move("set_location", moves[at].at, (("location", place.value),))
            if place is before:
                options.append(_without(moves, at))
            elif place.value != present and _is_legal(program, other):
                options.append(_with(moves, at, other))
    return Edit(random.choice(options), "set_location") if options else None


def values(game: Game, random: Random) -> Edit | None:
    """Recompute a temporary at each use and complete the trace by the pass; or the opposite."""
    moves = _moves(game)
    present = _positions(moves, *_exchanged("values"))
    if present and random.random() < 0.5:
        at = random.choice(present)
        if moves[at].name == "inline_op":
            # Later moves were made for the program with the copy.
            return Edit(_without(moves[: _complete(moves)], at), is_start=True)
        return Edit(_without(moves, at))
    at = random.randrange(_complete(moves) + 1)
    started = game.fork()
    started.become(moves[:at])
    builder = PassBuilder(started)
    for leaf in shuffled(_recomputable(builder.nest), random):
        name = leaf.output.array.name
        if builder.transact(lambda leaf=leaf, name=name: recompute(builder, leaf, name)):
            return Edit(_moves(started), is_start=True)
    return None


@cache
def _exchanged(kind: Literal["order", "values"]) -> tuple[str, ...]:
    """Names of the moves that change the order of statements, or how values are computed."""
    return tuple(name for name in transformation_names() if transformation(name).exchanges == kind)


def _recomputable(nest: Nest) -> list[Leaf]:
    """Statements that are the only writers of temporaries with readers."""
    found: list[Leaf] = []
    for leaf in nest.leaves:
        array = leaf.output.array
        alone = leaf.accumulate is None and nest.writers[array.name] == [leaf]
        if alone and array.buffer.op is not None and nest.readers[array.name]:
            found.append(leaf)
    return found


def _complete(moves: Sequence[Move]) -> int:
    """Number of moves before the first one with a size; up to there, loops are whole."""
    return next((k for k, move in enumerate(moves) if any(name == "size" for name, _ in move.params)), len(moves))


_STEPS: tuple[tuple[Callable[[PassBuilder], None], frozenset[str]], ...] = (
    (shrink_temporaries, frozenset({"reuse_dims", "fold_dim", "tile_dim"})),
    (share_work, frozenset({"parallelize"})),
    (unroll_groups, frozenset({"unroll"})),
    (place_buffers, frozenset({"set_location"})),
    (stream, frozenset({"hint"})),
)
"""The last steps of the pass, and the moves of each."""


def mend(builder: PassBuilder, skipped: Sequence[Skipped], spared: str) -> None:
    """Repeat the pass's last steps whose moves were skipped, except the step of the edited kind `spared`."""
    for skip in skipped:
        if skip.move.name == "vectorize":
            _vectorize_again(builder, skip.move.at)
    lost = {skip.move.name for skip in skipped}
    for step, names in _STEPS:
        if names & lost and spared not in names:
            step(builder)


def _vectorize_again(builder: PassBuilder, at: str) -> None:
    """Vectorise the statements of a scope that vanished or can no longer be vectorised."""
    identifier = at.removeprefix("%")
    while identifier and identifier not in builder.nest.by_id:
        # The name of a cut scope begins with the name of its original scope.
        identifier = identifier.rpartition(".")[0]
    node = builder.nest.by_id.get(identifier)
    for leaf in [leaf.id for leaf in leaves_of(node)] if node is not None else ():
        vectorize_statement(builder, leaf)


PROPOSALS = Proposals(
    heuristic,
    (
        (other_sizes, 4),
        (threads, 1),
        (hints, 2),
        (unrolling, 2),
        (structure, 3),
        (locations, 1),
        (values, 1),
    ),
    mend,
)
