"""The helper of expert passes: a game with notes, attempted moves, and small queries about the program."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from math import prod

from pdojo.backends.common.gc_pause import uncollected
from pdojo.dialect.attributes import Memory
from pdojo.dialect.functions import byte_width
from pdojo.dialect.view.nest import Access, Leaf, Nest, Node, Scope
from pdojo.errors import IllegalMove, LocationError, UsageError
from pdojo.passes.common.parameters import ParameterValues, PassResult, TuningParameters
from pdojo.transforms.game import Game
from pdojo.transforms.move import Move, Param


@dataclass(frozen=True, slots=True)
class Note:
    """The reason why an expert pass made a move."""

    move: Move
    why: str


@dataclass
class PassBuilder:
    """Makes moves on a game and notes the reasons. Passes name nodes by identifier: objects change with every move."""

    game: Game
    notes: list[Note] = field(default_factory=list[Note])
    sealed: set[str] = field(default_factory=set[str])
    """Finished scopes: passes fuse nothing with them and move nothing out of them."""
    choices: TuningParameters = field(default_factory=TuningParameters)
    """Tuning parameters of the pass."""

    @property
    def nest(self) -> Nest:
        """The program now."""
        return self.game.program.nest

    def scope(self, identifier: str) -> Scope:
        """The scope with that identifier."""
        node = self.nest.by_id[identifier]
        assert isinstance(node, Scope)
        return node

    def find_scope(self, identifier: str) -> Scope | None:
        """The scope with that identifier; None if it is gone."""
        node = self.nest.by_id.get(identifier)
        return node if isinstance(node, Scope) else None

    def leaf(self, identifier: str) -> Leaf:
        """The statement with that identifier."""
        node = self.nest.by_id[identifier]
        assert isinstance(node, Leaf)
        return node

    def is_sealed(self, leaf: Leaf) -> bool:
        """True if the statement's innermost scope is sealed."""
        return leaf.parent is not None and leaf.parent.id in self.sealed

    def is_finished(self, node: Node) -> bool:
        """True if the nest that contains a node is sealed as a whole."""
        return (node.chain[0] if node.chain else node).id in self.sealed

    def loop(self, statement: str, depth: int) -> Scope:
        """The loop around a statement at a depth; -1 is the innermost one."""
        return self.leaf(statement).chain[depth]

    def make(self, name: str, at: Node | str, why: str = "", **params: Param) -> None:
        """Make a move. Raises IllegalMove or LocationError if it is refused, which ends the plan of a `transact`."""
        location = at if isinstance(at, str) else f"%{at.id}"
        self.game.apply(Move(name, location, tuple(params.items())))
        self.notes.append(Note(self.game.trace.steps[-1].move, why))

    def attempt(self, name: str, at: Node | str, why: str = "", **params: Param) -> bool:
        """Make a move if it is legal; returns True if it was."""
        try:
            self.make(name, at, why, **params)
        except (IllegalMove, LocationError):
            return False
        return True

    def transact(self, plan: Callable[[], bool | None]) -> bool:
        """Make all moves of a plan, or none if one is refused or the plan returns False; True if it made them."""
        # Most plans succeed. Replaying a few moves after a failure is faster than copying the state for each plan.
        mark, noted = self.game.mark(keeps=not self.game.programs.is_near()), len(self.notes)
        sealed = set(self.sealed)
        try:
            is_made = plan() is not False
        except (IllegalMove, LocationError):
            is_made = False
        if not is_made:
            self.game.rewind(mark)
            del self.notes[noted:]
            self.sealed = sealed
        return is_made

    def first(self, plans: Iterable[Callable[[], bool | None]]) -> None:
        """Make all moves of the first plan that `transact` makes. Raises IllegalMove if there is none."""
        if not any(self.transact(plan) for plan in plans):
            raise IllegalMove("no plan is legal")

    @classmethod
    def play(
        cls, game: Game, plan: Callable[[PassBuilder], None], decisions: ParameterValues | None = None
    ) -> PassResult:
        """Make all moves of a plan on a game at once, with the decisions as answers to the pass's questions."""

        def played() -> PassResult:
            builder = cls(game, choices=TuningParameters(decisions))
            plan(builder)
            return PassResult(builder.notes, builder.choices.made)

        with uncollected():
            return game.at_once(played)

    def lanes(self, leaf: Leaf, extent: int | None = None) -> int:
        """Lanes of the machine's widest vector for the statement's widest operand, at most `extent`; 1 if none."""
        return max((n for n in self.vector_lanes(leaf) if extent is None or n <= extent), default=1)

    def vector_lanes(self, leaf: Leaf) -> tuple[int, ...]:
        """Lanes of the machine's vectors for the statement's widest operand."""
        dtypes = [i.array.dtype if isinstance(i, Access) else i.dtype for i in (leaf.output, *leaf.inputs)]
        return self.game.machine.vector_lanes(max(dtypes, key=byte_width))

    def exhaust(self, places: Callable[[], Iterable[Node | str]], name: str, why: str = "", limit: int = 10_000) -> int:
        """Make one kind of move at the first legal place until there is none; returns the number of moves.

        `places` is called again after every move. Raises UsageError after `limit` moves.
        """
        for made in range(limit):
            if not any(self.attempt(name, place, why) for place in places()):
                return made
        raise UsageError(f"'{name}' was made {limit} times and is still legal; does it undo itself?")

    def scopes(self) -> list[Scope]:
        """All scopes, outermost first."""
        return self.nest.scopes

    def temporaries(self) -> Iterator[str]:
        """Names of the first arrays of all buffers except the caller's."""
        for buffer in self.nest.buffers:
            if buffer.op is not None:
                yield buffer.names[0]

    def interface_bytes(self) -> int:
        """Bytes of the interface arrays."""
        return sum(prod(b.shape) * byte_width(b.dtype) for b in self.nest.buffers if b.op is None)

    def dimensions(self) -> Iterator[str]:
        """Locations of the dimensions of temporaries that may be reused; lanes need the dimensions of registers."""
        for name in self.temporaries():
            array = self.nest.arrays[name]
            if array.buffer.memory is not Memory.REGISTER and not array.buffer.constant:
                yield from (f"{name}:{d}" for d, extent in enumerate(array.shape) if extent > 1)
