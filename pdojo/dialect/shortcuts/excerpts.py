"""Excerpts: the part of a program that a question about one nest, or about one buffer, depends on.

Most schedule moves depend only on the nest of their site. They query an excerpt with nothing else, so states that
differ elsewhere share the excerpt and its answers. Layout moves depend on the accesses to one buffer and on memory
capacity.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from hashlib import sha256

from pdojo.dialect.attributes import Memory
from pdojo.dialect.flow.program import Program
from pdojo.dialect.rules.lanes import physical_bytes
from pdojo.dialect.shortcuts.remembered import Content, Verdicts
from pdojo.dialect.view.grids import is_in_grid
from pdojo.dialect.view.nest import Buffer, Leaf, Node, Scope, fact, leaves_of, subtree
from pdojo.dialect.view.paths import relative_paths
from pdojo.dialect.view.storage import accesses_of

LARGE = 32
"""Least statements of an excerpt that is not cut out of its program, if it is more than half of it."""


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A part of a program, as a program, and the verdicts on its content, which all programs with it share.

    It has the declarations of the interface and of the buffers that it uses.
    """

    program: Program
    verdicts: Verdicts
    places: tuple[int, ...]
    """The positions of its top-level nodes in the program."""


def excerpt_of(program: Program, *nodes: Node) -> Excerpt:
    """The excerpt with the nests of `nodes`, and all nests that share slots, registers or joint buffers with them."""
    return _excerpt_at(program, frozenset(_root(node).position for node in nodes))


def excerpt_of_buffer(program: Program, buffer: Buffer) -> Excerpt | None:
    """The excerpt of all nests that use a buffer; None if none does."""
    places = frozenset(_root(leaf).position for leaf, _ in accesses_of(program.nest, buffer))
    return _excerpt_at(program, places) if places else None


def _excerpt_at(program: Program, places: frozenset[int]) -> Excerpt:
    if not program.has_excerpts:
        return Excerpt(program, program.verdicts, tuple(range(len(program.nest.children))))
    return program.once(("excerpt", places), lambda: _excerpt(program, places))


def _excerpt(program: Program, places: frozenset[int]) -> Excerpt:
    joined = program.once("joined", lambda: _joined(program))
    wanted = sorted(set[int]().union(*(joined[place] for place in places)))
    roots = [program.nest.children[place] for place in wanted]
    whole = len(wanted) == len(program.nest.children) or _is_most(program, roots)
    used = frozenset[Buffer]().union(*(_buffers_of(root) for root in roots))
    content = _content(program, roots, used)
    part, verdicts = program.known.remembered.part(content, lambda: None if whole else _cut_out(program, roots, used))
    return Excerpt(part or program, verdicts, tuple(wanted))


def _is_most(program: Program, roots: Sequence[Node]) -> bool:
    """Whether top-level nodes are so much of a large program that cutting them out does not pay."""
    statements = sum(len(leaves_of(root)) for root in roots)
    return statements >= LARGE and 2 * statements > len(program.nest.leaves)


def nodes_touched(program: Program, *nodes: Node) -> set[Node]:
    """The nodes in the excerpt of `nodes`: all nodes that a move on them may rewrite."""
    joined = program.once("joined", lambda: _joined(program))
    places = set[int]().union(*(joined[_root(node).position] for node in nodes))
    return {node for place in places for node in subtree(program.nest.children[place])}


def users_touched(program: Program, buffer: Buffer) -> set[Node]:
    """The statements that use a buffer and the scopes around them: all nodes that a move on the buffer may rewrite."""
    return {node for leaf, _ in accesses_of(program.nest, buffer) for node in (*leaf.chain, leaf)}


def _root(node: Node) -> Node:
    return node.chain[0] if node.chain else node


def _buffers_of(root: Node) -> frozenset[Buffer]:
    """The buffers that a top-level node uses."""

    def used() -> frozenset[Buffer]:
        return frozenset(access.array.buffer for leaf in leaves_of(root) for access in leaf.accesses)

    return fact(root.facts, "buffers", used)


def _digest_of(node: Node) -> Content:
    """The digest of a node's text and of its identifiers."""
    from pdojo.dialect.notation.printer import scope_text, tree_lines

    def digest() -> Content:
        if isinstance(node, Leaf):
            return digest_of(node.id, *tree_lines([node]))
        return digest_of(node.id, scope_text(node), [_digest_of(child) for child in node.children])

    return fact(node.facts, "content", digest)


def _joined(program: Program) -> list[set[int]]:
    """By position of a top-level node, the positions of all nodes that a question about it depends on."""
    joined = [{place} for place in range(len(program.nest.children))]
    first: dict[Buffer, int] = {}
    for place, root in enumerate(program.nest.children):
        for buffer in fact(root.facts, "binding", lambda r=root: tuple(filter(_binds, _buffers_of(r)))):
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
    """The digest of an excerpt: the declarations that it uses, its text, its identifiers."""
    from pdojo.dialect.notation.printer import declaration_line

    order = program.once("declared", lambda: {buffer: k for k, buffer in enumerate(program.nest.buffers)})
    lines = program.nest.of_declarations
    declarations = [
        fact(lines, f"line of {buffer.names[0]}", lambda b=buffer: declaration_line(b))
        for buffer in sorted(used, key=order.__getitem__)
    ]
    return digest_of(declarations, [_digest_of(root) for root in roots])


def _cut_out(program: Program, roots: Sequence[Node], used: frozenset[Buffer]) -> Program:
    nest = program.nest.copy(roots, buffers=used)
    return program.successor(nest.kernel, nest)


def chain_text(node: Node) -> str:
    """The scopes around a node, as a text."""
    return "" if node.parent is None else fact(node.parent.facts, "chain", lambda: _with_outer(node.parent))


def _with_outer(scope: Scope | None) -> str:
    from pdojo.dialect.notation.printer import scope_text

    return "" if scope is None else f"{chain_text(scope)}/{scope_text(scope)}"


def content_of(program: Program, buffer: Buffer) -> Hashable:
    """All data that moves on one buffer depend on: its uses, and the other users of memory."""
    return uses_content(program, buffer), program.once("memory use", lambda: _memory_use(program))


def uses_content(program: Program, buffer: Buffer) -> Content:
    """The digest of the uses of one buffer: its declaration, and its accesses with their places."""
    return program.nest.about_uses(buffer, "content", lambda: _uses_content(program, buffer))


def _uses_content(program: Program, buffer: Buffer) -> Content:
    from pdojo.dialect.notation.printer import access_text, declaration_line

    users = list(dict.fromkeys(leaf for leaf, _ in accesses_of(program.nest, buffer)))
    return digest_of(
        declaration_line(buffer),
        relative_paths(users),
        [(leaf.accumulate, leaf.asynchronous, leaf.output.array.buffer is buffer) for leaf in users],
        [[access_text(a) for a in leaf.accesses if a.array.buffer is buffer] for leaf in users],
        [chain_text(leaf) for leaf in users],
    )


def bytes_in_memory(program: Program, buffer: Buffer) -> int:
    """Bytes of one copy of the buffer (`physical_bytes`), cached with the uses of the buffer."""
    if not any(buffer.reuse):
        return physical_bytes(program.nest, buffer)
    return program.nest.about_uses(buffer, "bytes", lambda: physical_bytes(program.nest, buffer))


def digest_of(*parts: object) -> Content:
    """Digest of strings, numbers and enumerations, in lists and tuples."""
    return sha256(repr(parts).encode()).digest()


def _memory_use(program: Program) -> tuple[object, ...]:
    """The buffers in memories of limited size, and their sizes."""
    nest = program.nest
    return tuple(
        (b.names[0], b.memory, bytes_in_memory(program, b), is_in_grid(nest, b), live.span)
        for b, live in program.live_ranges.items()
        if b.memory is not Memory.HEAP
    )
