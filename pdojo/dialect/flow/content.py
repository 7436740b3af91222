"""The content of parts of a program, as keys of memos: equal contents mean equal texts, identifiers and verdicts.

A content stands for a structure of plain data (extents, mappings, index expressions, names), in which the contents of
inner nodes stand for those. Nodes and buffers keep theirs, so a move costs only the contents that it changes. The
*form* of a node is its content without identifiers.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TypeAlias, cast
from weakref import WeakValueDictionary

from xdsl.dialects.builtin import DictionaryAttr

from pdojo.dialect.view.nest import NO_HINTS, Access, Buffer, Constant, Input, Nest, Node, Scope, fact
from pdojo.dialect.view.storage import accesses_of

Structure: TypeAlias = tuple[Hashable, ...]


class Content:
    """All data that an answer depends on; compared by identity.

    A copy, for example in another process, is another content, so it finds no answers.
    """

    __slots__ = ("__weakref__",)


_contents: WeakValueDictionary[Structure, Content] = WeakValueDictionary()


def content(*structure: Hashable) -> Content:
    """The content of a structure: the same one for an equal structure as long as it is in use, never for another.

    A structure holds no floating-point numbers, because 0.0 equals -0.0.
    """
    found = _contents.get(structure)
    if found is None:
        found = _contents[structure] = Content()
    return found


def content_of(node: Node) -> Content:
    """The content of a node and everything inside, with identifiers, without the declarations of buffers."""
    return fact(node.facts, "content", lambda: content(node.id, form_of(node), *map(content_of, _inside(node))))


def form_of(node: Node) -> Content:
    """The content of a node and everything inside, without identifiers and the declarations of buffers."""
    # Asked after every move, of all siblings of the nodes that it changed.
    found = node.facts.get("form")
    if found is None:
        inside = [child.facts.get("form") or form_of(child) for child in _inside(node)]
        found = node.facts["form"] = content(*_own(node), *inside)
    return cast(Content, found)


def _inside(node: Node) -> Sequence[Node]:
    return node.children if isinstance(node, Scope) else ()


def _own(node: Node) -> Structure:
    if isinstance(node, Scope):
        return _scope(node)
    function = node.function, node.accumulate, node.contracted, node.asynchronous
    return function, _access(node.output), *map(_input, node.inputs)


def form_of_program(nest: Nest) -> Content:
    """The content of a program without identifiers; among the programs of a game, equal for equal texts."""
    declarations = fact(nest.of_declarations, "declared", lambda: tuple(map(declared, nest.buffers)))
    return content(declarations, *map(form_of, nest.children))


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
    return () if hints is NO_HINTS else tuple(hints.data.items())


def chain_content(node: Node) -> Content | None:
    """The content of the scopes around a node, without identifiers; None if there are none."""
    return _down_to(node.parent)


def _down_to(scope: Scope | None) -> Content | None:
    if scope is None:
        return None
    return fact(scope.facts, "chain", lambda: content(_down_to(scope.parent), _scope(scope)))


def declared(buffer: Buffer) -> Structure:
    """The structure of a declaration."""
    swizzles = tuple(sorted(buffer.swizzles.items()))
    form = (
        buffer.dtype,
        buffer.shape,
        buffer.sized,
        buffer.strides,
        buffer.reuse,
        swizzles,
        buffer.memory,
        buffer.intent,
        buffer.alignment,
    )
    return buffer.names, form, buffer.constant, _hints(buffer.hints)


def region_content(nest: Nest, region: Scope) -> Content:
    """The content of a scope, the scopes around it, and all uses of the buffers that are used inside."""
    buffers = dict.fromkeys(access.array.buffer for leaf in region.leaves for access in leaf.accesses)
    return content(chain_content(region), content_of(region), *(uses_content(nest, buffer) for buffer in buffers))


def uses_content(nest: Nest, buffer: Buffer) -> Content:
    """The content of the uses of one buffer: its declaration, and its accesses with their places."""
    return nest.about_uses(buffer, "content", lambda: _uses_content(nest, buffer))


def _uses_content(nest: Nest, buffer: Buffer) -> Content:
    # Users are in textual order, so their places among each other follow from the scopes that they share.
    numbers: dict[Scope, int] = {}
    forms = (
        (
            leaf.accumulate,
            leaf.asynchronous,
            leaf.output.array.buffer is buffer,
            tuple([_access(access) for access in leaf.accesses if access.array.buffer is buffer]),
            chain_content(leaf),
            tuple([numbers.setdefault(scope, len(numbers)) for scope in leaf.chain]),
        )
        for leaf in dict.fromkeys(leaf for leaf, _ in accesses_of(nest, buffer))
    )
    return content(declared(buffer), *forms)
