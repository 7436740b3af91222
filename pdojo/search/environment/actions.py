"""Actions of a state, sampled or all; the program after an action is computed on demand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import ndiff
from functools import cached_property
from itertools import islice
from random import Random

from pdojo.dialect.flow.program import Program
from pdojo.search.contract.candidates import MoveCandidate, choices, shuffled
from pdojo.search.environment.rules import Rules
from pdojo.search.features.program import features
from pdojo.search.neighbourhoods.crossing import cross
from pdojo.search.neighbourhoods.drawing import UNIFORM, Drawing
from pdojo.search.neighbourhoods.lengths import LengthLimits
from pdojo.search.neighbourhoods.mutate import Mutate
from pdojo.search.neighbourhoods.random_moves import interleaved, step_if_legal, useful
from pdojo.transforms.apply import legal
from pdojo.transforms.game import Game, fingerprint_of
from pdojo.transforms.legality.trials import rehearse
from pdojo.transforms.move import Move
from pdojo.transforms.registry import transformation

MOST = 64
"""Greatest number of moves of a run."""
NEAREST = 0.3
"""Probability that an edit is drawn from the nearest neighbours (`Mutate.nearest`)."""
CROSSED = 0.4
"""Probability that any other edit begins with a cross of the trace with a mate."""
EDIT = "edit"
"""Family name of edits."""
STOP = "stop"
"""Family name and label of the action that ends an episode."""


class Action:
    """An action of a state: the stop, a move, or a run of moves.

    It stays valid after the episode goes on. The program after it is computed on demand, and depends on no other query.
    """

    def __init__(
        self, game: Game, choice: MoveCandidate | None = None, *, is_run: bool = False, after: Program | None = None
    ) -> None:
        self._before = game
        self._program = game.program
        self._choice = choice
        self._after = after
        self.is_run = is_run
        """True for a run: a family with its parameters at all legal places."""

    @property
    def is_stop(self) -> bool:
        """True for the action that ends the episode and changes nothing."""
        return self._choice is None

    @property
    def family(self) -> str:
        """The name of the transformation; `stop` for the stop."""
        return STOP if self._choice is None else self._choice.transformation.name

    @cached_property
    def location(self) -> str:
        """The location in the state before, for people; `*` for a run, '' for the stop."""
        if self._choice is None:
            return ""
        return "*" if self.is_run else self._choice.transformation.at(self._program, self._choice.site).at

    @property
    def label(self) -> str:
        """The action for people: `tile_scope@y:0{size=4}`, `tile_scope@*{size=4}`, `stop`."""
        return STOP if self._choice is None else str(self._choice.transformation.as_move(self.location))

    @property
    def moves(self) -> tuple[Move, ...]:
        """The moves by identifier, in order; none for the stop."""
        if self._choice is None:
            return ()
        if not self.is_run:
            return (self._choice.move,)
        return tuple(step.resolved for step in self._run.trace.steps[len(self._before.trace.steps) :])

    @cached_property
    def program(self) -> Program:
        """The program after the action; do not modify its kernel."""
        if self._choice is None:
            return self._program
        if self.is_run:
            return self._run.program
        return self._after or rehearse(self._choice.transformation, self._program, self._choice.site)

    @cached_property
    def text(self) -> str:
        """The program after the action, in canonical notation without identifiers."""
        return self.program.text

    @cached_property
    def fingerprint(self) -> str:
        """The fingerprint of the state after the action; the stop has the state's own."""
        return fingerprint_of(self.text)

    @cached_property
    def features(self) -> list[float]:
        """The features of the program after the action (`pdojo.search.features.program`)."""
        return features(self.program.nest, self.program.machine)

    def state(self) -> Game:
        """A new state after the action. Raises IllegalMove if the check that allowed the move was wrong."""
        if self._choice is not None and self.is_run:
            return self._run.fork()
        state = self._before.fork()
        if self._choice is not None:
            state.apply(self._choice.move)
        return state

    @cached_property
    def _run(self) -> Game:
        assert self._choice is not None
        return everywhere(self._before, self._choice.move)

    def __repr__(self) -> str:
        return f"<Action {self.label}>"


class EditAction(Action):
    """An action that alters the trace anywhere; its program has been made already."""

    def __init__(self, game: Game, after: Game) -> None:
        super().__init__(game)
        self._made = after

    @property
    def is_stop(self) -> bool:
        """False."""
        return False

    @property
    def family(self) -> str:
        """`edit`, regardless of the inserted moves."""
        return EDIT

    @property
    def label(self) -> str:
        """The difference of the traces for people: `edit -unroll@y:1 +tile_scope@y:0{size=4}`."""
        before, after = (list(map(str, game.trace.moves)) for game in (self._before, self._made))
        changes = (line.replace(" ", "", 1) for line in ndiff(before, after) if line[0] in "+-")
        return " ".join([EDIT, *changes])

    @property
    def moves(self) -> tuple[Move, ...]:
        """Empty: an edit changes earlier moves."""
        return ()

    @property
    def program(self) -> Program:  # pyright: ignore[reportIncompatibleVariableOverride]  # it is there
        """The program after the action; do not modify its kernel."""
        return self._made.program

    def state(self) -> Game:
        """A new state after the action."""
        return self._made.fork()


def _edits(game: Game, count: int, mates: Sequence[Sequence[Move]], random: Random, near: Mutate) -> Iterator[Action]:
    """At most `count` edits that lead to different programs.

    Some are nearest neighbours. Others are random edits of the trace or of its cross with a mate, or the cross itself.
    """
    nearest = near.nearest(game, random)
    moves = [step.resolved for step in game.trace.steps]
    met = {game.fingerprint}
    for _ in range(2 * count):
        after = next(nearest, None) if random.random() < NEAREST else None
        if after is None:
            base = game
            if mates and random.random() < CROSSED:
                base = game.fork()
                base.become(cross(moves, random.choice(mates), random))
            is_whole = base.fingerprint not in met and random.random() < 0.5
            after = base if is_whole else near.neighbour(base, random)
        if after is not None and after.fingerprint not in met:
            met.add(after.fingerprint)
            yield EditAction(game, after)
            if len(met) > count:
                return


def actions_of(
    game: Game,
    rules: Rules,
    random: Random,
    mates: Sequence[Sequence[Move]] = (),
    near: Mutate | None = None,
) -> list[Action]:
    """The stop, followed by all other actions, or by at most `rules.offered` different drawn ones.

    A draw chooses a family among those with legal actions left, then an action of the family. So a family with many
    places and sizes is no likelier than others; families that only take back other moves are a fifth as likely. Moves
    on arrays that no statement accesses are left out. Edits may take moves from `mates`, traces by identifier. `near`
    draws moves and edits: uniformly, or some of them by a model.
    """
    near = near or Mutate()
    if rules.granularity == "edits":
        assert rules.offered is not None
        return [Action(game), *_edits(game, rules.offered, mates, random, near)]
    kinds = {"single": [False], "everywhere": [True], "both": [False, True]}[rules.granularity]
    beside = len(kinds) > 1
    if rules.offered is None:
        return [Action(game), *(offer for is_run in kinds for offer in _stream(game, is_run, beside, None))]
    streams = {
        _stream(game, is_run, beside, random, drawing): share
        for is_run in kinds
        for drawing, share in near.drawings().items()
    }
    offers = interleaved(streams, random)
    return [Action(game), *islice(offers if near.mixture is None else _distinct(offers), rules.offered)]


def _distinct(offers: Iterator[Action]) -> Iterator[Action]:
    """The actions without repetitions, which several ways to draw make."""
    met: set[tuple[bool, str]] = set()
    for offer in offers:
        if (offer.is_run, offer.label) not in met:
            met.add((offer.is_run, offer.label))
            yield offer


def action_of_move(game: Game, move: Move) -> Action:
    """The action of one move. Raises IllegalMove or LocationError if it is not legal."""
    verdict = legal(game.program, move)
    return Action(game, MoveCandidate(verdict.transformation, verdict.site))


def _stream(
    game: Game, is_run: bool, beside: bool, random: Random | None, drawing: Drawing = UNIFORM
) -> Iterator[Action]:
    """The actions of one kind, lazily: drawn, or in a fixed order if `random` is None."""
    before = [step.resolved for step in game.trace.steps]
    weights = drawing.families(game.program, before)
    families = {
        _of_family(game, name, is_run, beside, random, drawing, before): weight for name, weight in weights.items()
    }
    if random is None:
        return (offer for family in families for offer in family)
    return interleaved(families, random)


def _of_family(
    game: Game,
    name: str,
    is_run: bool,
    beside: bool,
    random: Random | None,
    drawing: Drawing,
    before: Sequence[Move],
) -> Iterator[Action]:
    program = game.program
    found = useful(choices(program, [name]), program)
    if random is None or (is_run and drawing is UNIFORM):
        # Each run is equally likely, however many places it has.
        groups = _alike(found) if is_run else [[choice] for choice in found]
        groups = groups if random is None else shuffled(groups, random)
    else:
        ordered = drawing.ordered(found, program, before, random)
        groups = _alike(list(ordered)) if is_run else ([choice] for choice in ordered)
    for group in groups:
        # A run over one place is a single move, which is an action of its own.
        if is_run and beside and len(group) == 1:
            continue
        legal = next((choice for choice in group if choice.is_legal(program)), None)
        if legal is not None:
            # The legality check may have made the move.
            yield Action(game, legal, is_run=is_run, after=None if is_run else legal.take_rehearsed(program))


def _alike(found: Sequence[MoveCandidate]) -> list[list[MoveCandidate]]:
    """The candidates of a family, grouped by parameters; each group is in order."""
    groups: dict[object, list[MoveCandidate]] = {}
    for choice in found:
        groups.setdefault(choice.transformation, []).append(choice)
    return list(groups.values())


def everywhere(game: Game, move: Move) -> Game:
    """The state after a run: after a legal move, and the same move at all other places where it is then legal.

    Places are visited in the program's order. Finishing families (`Transformation.finishes`), such as fusion and
    smaller memory, also apply at newly arising places, until none is legal; other families apply once at each place of
    the program before. A place is left out if the program would become too long (`neighbourhoods.lengths`). A run has
    at least one move, and at most `MOST`.
    """
    state = game.fork()
    state.at_once(lambda: _make_run(state, game, move, LengthLimits.of(game)))
    return state


def _make_run(state: Game, game: Game, move: Move, limits: LengthLimits) -> None:
    if transformation(move.name).finishes:
        while len(state.trace.steps) < len(game.trace.steps) + MOST:
            if not any(_make(state, limits, place) for place in _places(state.program, move)):
                break
    else:
        for place in _places(game.program, move):
            if len(state.trace.steps) < len(game.trace.steps) + MOST:
                _make(state, limits, place)
    if len(state.trace.steps) == len(game.trace.steps):
        state.apply(move)


def _make(state: Game, limits: LengthLimits, move: Move) -> bool:
    """Make a move unless it is illegal or makes the program too long; returns True if it was made."""
    if limits.forbid(state.program, move):
        return False
    mark = state.mark(keeps=False)
    if not step_if_legal(state, move):
        return False
    if limits.exceeded_by(state):
        state.rewind(mark)
        return False
    return True


def _places(program: Program, move: Move) -> list[Move]:
    """The candidates of a move's family with its parameters, located by identifier, in order."""
    found = (choice.move for choice in useful(choices(program, [move.name]), program))
    return [other for other in found if other.params == move.params]
