"""Excerpts: the part of a program that a question about one nest, or about one buffer, depends on.

Most schedule moves depend only on the nest of their site. They query an excerpt with nothing else, so states that
differ elsewhere share the excerpt and its answers. Layout moves depend on the accesses to one buffer and on memory
capacity.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from pdojo.dialect.attributes import Memory
from pdojo.dialect.flow.content import Content, content, content_of, declared, uses_content
from pdojo.dialect.flow.program import Program
from pdojo.dialect.flow.remembered import ProgramPart, Verdicts
from pdojo.dialect.flow.shortcut import is_used
from pdojo.dialect.rules.capacity import MOST_STATEMENTS, Growth, limit_of, load_of, register_spans
from pdojo.dialect.rules.lanes import bytes_in_memory
from pdojo.dialect.view.copying import copy_nest
from pdojo.dialect.view.grids import is_in_grid
from pdojo.dialect.view.nest import Buffer, Node, fact, leaves_of, subtree
from pdojo.dialect.view.nodes import buffers_of
from pdojo.dialect.view.storage import accesses_of

LARGE = 32
"""Least statements of an excerpt that is not cut out of its program, if it is more than half of it."""


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A part of a program, as a program, and the verdicts on its content, which all programs with it share.

    It has the declarations of the interface and of the buffers that it uses.
    """

    whole: Program
    """The program that contains it."""
    places: tuple[int, ...]
    """The positions of its top-level nodes in the program."""
    verdicts: Verdicts
    used: frozenset[Buffer] = frozenset()
    part: ProgramPart | None = None
    """The memoised part; None if the program is not cut, because the excerpt is most of it."""

    @property
    def program(self) -> Program:
        """The excerpt as a program of its own, cut out on first use; the whole program if that would not pay."""
        return self.whole if self.part is None else self.part.alone(self._cut_out)

    def _cut_out(self) -> Program:
        nest = self.whole.nest
        cut = copy_nest(nest, [nest.children[place] for place in self.places], buffers=self.used)
        return self.whole.successor(cut.kernel, cut)


def excerpt_of(program: Program, *nodes: Node) -> Excerpt:
    """The excerpt with the nests of `nodes`, and all nests that share slots, registers or joint buffers with them."""
    return _excerpt_at(program, frozenset(_root(node).position for node in nodes))


def excerpt_of_buffer(program: Program, buffer: Buffer) -> Excerpt | None:
    """The excerpt of all nests that use a buffer; None if none does."""
    places = frozenset(_root(leaf).position for leaf, _ in accesses_of(program.nest, buffer))
    return _excerpt_at(program, places) if places else None


def _excerpt_at(program: Program, places: frozenset[int]) -> Excerpt:
    if not (program.has_excerpts and is_used("excerpts")):
        return Excerpt(program, tuple(range(len(program.nest.children))), program.verdicts)
    return program.memoised(("excerpt", places), lambda: _excerpt(program, places))


def _excerpt(program: Program, places: frozenset[int]) -> Excerpt:
    joined = program.memoised("joined", lambda: _joined(program))
    wanted = sorted(set[int]().union(*(joined[place] for place in places)))
    roots = [program.nest.children[place] for place in wanted]
    whole = len(wanted) == len(program.nest.children) or _is_most(program, roots)
    used = frozenset[Buffer]().union(*(buffers_of(root) for root in roots))
    part = program.known.remembered.part(_content(program, roots, used))
    return Excerpt(program, tuple(wanted), part.verdicts, used, None if whole else part)


def _is_most(program: Program, roots: Sequence[Node]) -> bool:
    """Whether top-level nodes are so much of a large program that cutting them out does not pay."""
    statements = sum(len(leaves_of(root)) for root in roots)
    return statements >= LARGE and 2 * statements > len(program.nest.leaves)


def nodes_touched(program: Program, *nodes: Node) -> set[Node]:
    """The nodes in the excerpt of `nodes`: all nodes that a move on them may rewrite."""
    joined = program.memoised("joined", lambda: _joined(program))
    places = set[int]().union(*(joined[_root(node).position] for node in nodes))
    return {node for place in places for node in subtree(program.nest.children[place])}


def users_touched(program: Program, buffer: Buffer) -> set[Node]:
    """The statements that use a buffer and the scopes around them: all nodes that a move on the buffer may rewrite."""
    return {node for leaf, _ in accesses_of(program.nest, buffer) for node in (*leaf.chain, leaf)}


def _root(node: Node) -> Node:
    return node.chain[0] if node.chain else node


def _joined(program: Program) -> list[set[int]]:
    """By position of a top-level node, the positions of all nodes that a question about it depends on."""
    joined = [{place} for place in range(len(program.nest.children))]
    first: dict[Buffer, int] = {}
    for place, root in enumerate(program.nest.children):
        for buffer in fact(root.facts, "binding", lambda r=root: tuple(filter(_binds, buffers_of(r)))):
            other = joined[first.setdefault(buffer, place)]
            if other is not joined[place]:
                other |= joined[place]
                for member in joined[place]:
                    joined[member] = other
    return joined


def _binds(buffer: Buffer) -> bool:
    """Whether moves in one nest depend on the uses of the buffer in other nests."""
    return any(buffer.reuse) or len(buffer.names) > 1 or buffer.memory in (Memory.REGISTER, Memory.SHARED)


def _content(program: Program, roots: Sequence[Node], used: frozenset[Buffer]) -> Content:
    """The content of an excerpt: the declarations that it uses, and its nodes."""
    declarations = tuple(declared(buffer) for buffer in program.nest.buffers if buffer in used)
    return content(declarations, *map(content_of, roots))


def content_of_buffer(program: Program, buffer: Buffer) -> Hashable:
    """All data that moves on one buffer depend on: its uses, the other users of memory, and their times of use."""
    others = program.memoised("memory use", lambda: _memory_use(program))
    live = program.live_ranges.get(buffer) if others else None
    return uses_content(program.nest, buffer), others, None if live is None else live.span


def _memory_use(program: Program) -> tuple[object, ...]:
    """The buffers in memories of limited size, and their sizes."""
    nest = program.nest
    return tuple(
        (b.names[0], b.memory, bytes_in_memory(program, b), is_in_grid(nest, b), live.span)
        for b, live in program.live_ranges.items()
        if b.memory is not Memory.HEAP
    )


def has_room(program: Program, excerpt: Excerpt, growth: Growth) -> bool:
    """Whether a program within all limits certainly stays so after the excerpt's growth (not complete).

    Registers suffice if all buffers fit at once. They also suffice if the excerpt's peak fits together with the
    registers alive across it, and no more are alive at other nodes than now. The latter holds if the excerpt's nodes
    are consecutive, or if the move does not change the nodes that use each register.
    """
    load, machine = load_of(program) + growth.added, program.machine
    if load.statements > MOST_STATEMENTS or load.iterations > 2 * MOST_STATEMENTS:
        return False
    if (limit := limit_of(machine, Memory.STACK)) is not None and load.stack > limit:
        return False
    limit = limit_of(machine, Memory.REGISTER)
    if limit is None or load.registers <= limit:
        return True
    places = excerpt.places
    if growth.spread and places != tuple(range(places[0], places[-1] + 1)):
        return False
    return growth.peak + max(_alive_across(program, place) for place in places) <= limit


def _alive_across(program: Program, place: int) -> int:
    """Bytes of the registers that are used both before and after a top-level node."""
    leaves = leaves_of(program.nest.children[place])
    start, end = leaves[0].order, leaves[-1].order
    across = (b for b, (first, last) in register_spans(program).items() if first < start and last > end)
    return sum(bytes_in_memory(program, b) for b in across)
