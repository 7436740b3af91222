"""Excerpts: the part of a program that a question about one nest, or about one buffer, depends on.

Most schedule moves ask only about the nest of their site. They ask an excerpt, which holds nothing else, so states that
differ elsewhere share the excerpt and its answers. Layout moves ask about the accesses to one buffer, and about the
room in memory.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from hashlib import sha256

from pdojo.dialect.analysis.lanes import physical_bytes
from pdojo.dialect.analysis.program import Program
from pdojo.dialect.analysis.remembered import Content, Verdicts
from pdojo.dialect.attributes import Memory
from pdojo.dialect.view.grids import is_in_grid
from pdojo.dialect.view.nest import Buffer, Nest, Node, leaves_of
from pdojo.dialect.view.paths import relative_paths
from pdojo.dialect.view.storage import accesses_of


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A part of a program, as a program, and the verdicts on its content, whichever program it came from.

    It has all declarations of the program that it came from: those of buffers that it does not use do not matter.
    """

    program: Program
    verdicts: Verdicts
    places: tuple[int, ...]
    """The positions of its top-level nodes in the program."""


def excerpt_of(program: Program, node: Node) -> Excerpt:
    """The excerpt of a node's nest and the nests that share slots, registers or buffers of several arrays with it."""
    return _excerpt_at(program, frozenset([_root(node).position]))


def excerpt_of_buffer(program: Program, buffer: Buffer) -> Excerpt | None:
    """The excerpt of all nests that use a buffer; None if none does."""
    places = frozenset(_root(leaf).position for leaf, _ in accesses_of(program.nest, buffer))
    return _excerpt_at(program, places) if places else None


def _excerpt_at(program: Program, places: frozenset[int]) -> Excerpt:
    if not program.has_excerpts:
        return Excerpt(program, program.verdicts, tuple(range(len(program.nest.children))))
    return program.once(("excerpt", places), lambda: _excerpt(program, places))


def _excerpt(program: Program, places: frozenset[int]) -> Excerpt:
    roots = _together(program.nest, places)
    whole = len(roots) == len(program.nest.children)
    content = _content(program.nest, roots)
    part, verdicts = program.known.remembered.part(content, lambda: None if whole else _cut_out(program, roots))
    return Excerpt(part or program, verdicts, tuple(root.position for root in roots))


def _root(node: Node) -> Node:
    return node.chain[0] if node.chain else node


def _together(nest: Nest, places: frozenset[int]) -> list[Node]:
    """The top-level nodes that a question about some of them is about, in order."""
    users: dict[Buffer, set[int]] = {}
    for position, child in enumerate(nest.children):
        for leaf in leaves_of(child):
            for access in leaf.accesses:
                if _binds(access.array.buffer):
                    users.setdefault(access.array.buffer, set()).add(position)
    wanted = set(places)
    groups = list(users.values())
    while joined := [g for g in groups if g & wanted and not g <= wanted]:
        wanted.update(*joined)
    return [nest.children[k] for k in sorted(wanted)]


def _binds(buffer: Buffer) -> bool:
    """Whether uses of a buffer in one nest matter for moves in another one."""
    return any(buffer.reuse) or len(buffer.names) > 1 or buffer.memory in (Memory.REGISTER, Memory.SHARED)


def _content(nest: Nest, roots: list[Node]) -> Content:
    """The identity of an excerpt: the declarations that it uses, its text, its identifiers."""
    from pdojo.dialect.notation.printer import declaration_line, tree_lines

    used = {a.array.buffer for root in roots for leaf in leaves_of(root) for a in leaf.accesses}
    return digest_of(
        [declaration_line(b) for b in nest.buffers if b in used],
        list(tree_lines(roots)),
        [n.id for n in (*nest.scopes, *nest.leaves) if _root(n) in roots],
    )


def _cut_out(program: Program, roots: list[Node]) -> Program:
    nest = program.nest.copy(roots)
    return program.successor(nest.kernel, nest)


def content_of(program: Program, buffer: Buffer) -> Hashable:
    """Everything that moves ask about one buffer: its uses, and the other users of memory."""
    return uses_content(program, buffer), program.once("memory use", lambda: _memory_use(program))


def uses_content(program: Program, buffer: Buffer) -> Content:
    """The identity of the uses of one buffer: its declaration, and who accesses it where."""
    return program.once(("uses", buffer), lambda: _uses_content(program, buffer))


def _uses_content(program: Program, buffer: Buffer) -> Content:
    from pdojo.dialect.notation.printer import access_text, declaration_line

    users = list(dict.fromkeys(leaf for leaf, _ in accesses_of(program.nest, buffer)))
    return digest_of(
        declaration_line(buffer),
        relative_paths(users),
        [(leaf.accumulate, leaf.asynchronous, leaf.output.array.buffer is buffer) for leaf in users],
        [[access_text(a) for a in leaf.accesses if a.array.buffer is buffer] for leaf in users],
        [program.chain_texts[leaf] for leaf in users],
    )


def bytes_in_memory(program: Program, buffer: Buffer) -> int:
    """Bytes that one copy of the buffer takes (`physical_bytes`), remembered with the uses of the buffer."""
    if not any(buffer.reuse):
        return physical_bytes(program.nest, buffer)
    question = "bytes", uses_content(program, buffer)
    return program.known.remembered.verdict(question, lambda: physical_bytes(program.nest, buffer))


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
