"""The content of parts of a program, as keys of memos: equal contents mean equal texts, identifiers and verdicts.

A content stands for a structure of plain data (extents, mappings, index expressions, names), in which the contents of
inner nodes stand for those. Nodes and buffers keep theirs, so a move costs only the contents that it changes.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache
from typing import TypeAlias

from xdsl.dialects.builtin import DictionaryAttr

from pdojo.dialect.view.nest import Access, Buffer, Constant, Input, Leaf, Nest, Node, Scope, fact
from pdojo.dialect.view.paths import relative_paths
from pdojo.dialect.view.storage import accesses_of

MOST_CONTENTS = 1 << 16
"""Most structures whose content is known; a forgotten one gets another content when it occurs again."""

Structure: TypeAlias = tuple[Hashable, ...]


class Content:
    """All data that an answer depends on; compared by identity.

    A copy, for example in another process, is another content, so it finds no answers.
    """

    __slots__ = ()


@lru_cache(MOST_CONTENTS)
def content(*structure: Hashable) -> Content:
    """The content of a structure; different structures never have the same one.

    A structure holds no floating-point numbers, because 0.0 equals -0.0.
    """
    del structure
    return Content()


def content_of(node: Node) -> Content:
    """The content of a node and everything inside, with identifiers, without the declarations of buffers."""
    return fact(node.facts, "content", lambda: _content_of(node))


def _content_of(node: Node) -> Content:
    if isinstance(node, Scope):
        return content(node.id, _scope(node), *map(content_of, node.children))
    form = node.function, node.accumulate, node.contracted, node.asynchronous
    return content(node.id, form, _access(node.output), *map(_input, node.inputs))


def _scope(scope: Scope) -> Structure:
    return scope.extent, scope.mapping, scope.intrinsic, scope.guard, _hints(scope.hints)


def _input(value: Input) -> Structure:
    match value:
        case Access():
            return _access(value)
        case Constant():
            return value.dtype, repr(value.value)
        case _:
            return value.dtype, value.expression


def _access(access: Access) -> Structure:
    return access.array.name, access.array.dtype, access.index, _hints(access.hints)


def _hints(hints: DictionaryAttr) -> Structure:
    return tuple(hints.data.items())


def chain_content(leaf: Leaf) -> Content | None:
    """The content of the scopes around a statement, without identifiers; None if there are none."""
    return _down_to(leaf.parent)


def _down_to(scope: Scope | None) -> Content | None:
    if scope is None:
        return None
    return fact(scope.facts, "chain", lambda: content(_down_to(scope.parent), _scope(scope)))


def declared(buffer: Buffer) -> Structure:
    """The structure of a declaration."""
    swizzles = tuple(buffer.swizzles.items())
    form = buffer.dtype, buffer.shape, buffer.reuse, swizzles, buffer.memory, buffer.intent, buffer.alignment
    return buffer.names, form, buffer.constant, _hints(buffer.hints)


def uses_content(nest: Nest, buffer: Buffer) -> Content:
    """The content of the uses of one buffer: its declaration, and its accesses with their places."""
    return nest.about_uses(buffer, "content", lambda: _uses_content(nest, buffer))


def _uses_content(nest: Nest, buffer: Buffer) -> Content:
    users = list(dict.fromkeys(leaf for leaf, _ in accesses_of(nest, buffer)))
    forms = (
        (
            leaf.accumulate,
            leaf.asynchronous,
            leaf.output.array.buffer is buffer,
            tuple(_access(access) for access in leaf.accesses if access.array.buffer is buffer),
            chain_content(leaf),
        )
        for leaf in users
    )
    return content(declared(buffer), tuple(relative_paths(users)), *forms)
