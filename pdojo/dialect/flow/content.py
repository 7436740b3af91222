"""The content of parts of a program, as digests: the data that answers about a buffer depend on, for memos."""

from __future__ import annotations

from hashlib import sha256

from pdojo.dialect.flow.program import Program
from pdojo.dialect.flow.remembered import Content
from pdojo.dialect.view.nest import Buffer, Node, Scope, fact
from pdojo.dialect.view.paths import relative_paths
from pdojo.dialect.view.storage import accesses_of


def digest_of(*parts: object) -> Content:
    """Digest of strings, numbers and enumerations, in lists and tuples."""
    return sha256(repr(parts).encode()).digest()


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


def chain_text(node: Node) -> str:
    """The scopes around a node, as a text."""
    return "" if node.parent is None else fact(node.parent.facts, "chain", lambda: _with_outer(node.parent))


def _with_outer(scope: Scope | None) -> str:
    from pdojo.dialect.notation.printer import scope_text

    return "" if scope is None else f"{chain_text(scope)}/{scope_text(scope)}"
