"""What passes are written with: a game with notes, moves that are tried, small questions about the program."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from pdojo.dialect.attributes import Memory
from pdojo.dialect.functions import byte_width
from pdojo.dialect.nest import Access, Leaf, Nest, Node, Scope
from pdojo.errors import IllegalMove, LocationError, UsageError
from pdojo.transforms.game import Game
from pdojo.transforms.move import Move, Param


@dataclass(frozen=True, slots=True)
class Note:
    """Why an expert pass made a move."""

    move: Move
    why: str


@dataclass
class Player:
    """Makes moves on a game and remembers why. Nodes are known by identifier: objects change with every move."""

    game: Game
    notes: list[Note] = field(default_factory=list[Note])
    sealed: set[str] = field(default_factory=set[str])
    """Scopes that are as they should be: nothing is fused with them or moved out of them."""

    @property
    def nest(self) -> Nest:
        """The program now."""
        return self.game.program.nest

    def scope(self, identifier: str) -> Scope | None:
        """The scope with that identifier, if it is still there."""
        node = self.nest.by_id.get(identifier)
        return node if isinstance(node, Scope) else None

    def leaf(self, identifier: str) -> Leaf:
        """The statement with that identifier."""
        node = self.nest.by_id[identifier]
        assert isinstance(node, Leaf)
        return node

    def is_sealed(self, leaf: Leaf) -> bool:
        """Whether the statement's innermost scope is as it should be."""
        return leaf.parent is not None and leaf.parent.id in self.sealed

    def attempt(self, name: str, at: Node | str, why: str = "", **params: Param) -> bool:
        """Make a move if it is legal; whether it was."""
        location = at if isinstance(at, str) else f"%{at.id}"
        try:
            self.game.apply(Move(name, location, tuple(params.items())))
        except (IllegalMove, LocationError):
            return False
        self.notes.append(Note(self.game.trace.steps[-1].move, why))
        return True

    def transact(self, plan: Callable[[], bool]) -> bool:
        """Make the moves of a plan, or none of them where it says that it failed; whether it succeeded."""
        made, noted = len(self.game.trace.steps), len(self.notes)
        if plan():
            return True
        while len(self.game.trace.steps) > made:
            self.game.undo()
        del self.notes[noted:]
        return False

    def lanes(self, leaf: Leaf, extent: int | None = None) -> int:
        """Lanes of the machine's widest vector for the statement's widest operand; 1 if there is none.

        With `extent`, of the widest that is not longer.
        """
        return max((n for n in self.vector_lanes(leaf) if extent is None or n <= extent), default=1)

    def vector_lanes(self, leaf: Leaf) -> tuple[int, ...]:
        """Lanes of the machine's vectors for the statement's widest operand."""
        dtypes = [i.array.dtype if isinstance(i, Access) else i.dtype for i in (leaf.output, *leaf.inputs)]
        return self.game.machine.vector_lanes(max(dtypes, key=byte_width))

    def exhaust(self, places: Callable[[], Iterable[Node | str]], name: str, why: str = "", limit: int = 10_000) -> int:
        """Make one kind of move at the first place that allows it, until none does; the number of moves made.

        `places` is asked anew after every move. Raises UsageError after `limit` moves.
        """
        for made in range(limit):
            if not any(self.attempt(name, place, why) for place in places()):
                return made
        raise UsageError(f"'{name}' was made {limit} times and is still legal; does it undo itself?")

    def scopes(self) -> list[Scope]:
        """All scopes, outermost first."""
        return self.nest.scopes

    def temporaries(self) -> Iterator[str]:
        """Names of the first arrays of all buffers that are not the caller's."""
        for buffer in self.nest.buffers:
            if buffer.op is not None:
                yield buffer.names[0]

    def dimensions(self) -> Iterator[str]:
        """Locations of all dimensions of temporaries that are not in registers, where lanes need theirs."""
        for name in self.temporaries():
            if self.nest.arrays[name].buffer.memory is not Memory.REGISTER:
                yield from (f"{name}:{d}" for d in range(len(self.nest.arrays[name].shape)))
