"""The binding part of a kernel: the top-level nests that write constants. They run once, not in every call.

A caller binds the constant inputs (`w f32 [8, 8] heap const`): their bytes are the same at every later call. Constant
temporaries (`p f32 [8, 8] heap const`) depend on nothing else. They are computed at binding, and kept.
"""

from __future__ import annotations

from collections.abc import Collection

from pdojo.dialect.lookups import lookups_in, sizes_in
from pdojo.dialect.reason import Reason
from pdojo.dialect.view.nest import Buffer, Nest, Node, Scope, fact, leaves_of
from pdojo.dialect.view.nodes import buffers_of, nodes_of


def constants_of(nest: Nest) -> set[Buffer]:
    """The constant inputs and the constant temporaries."""
    return {buffer for buffer in nest.buffers if buffer.constant}


def binding_nests(nest: Nest, constants: Collection[Buffer] | None = None) -> list[Node]:
    """The top-level nests that write constants, in order; the kernel's own constants if `constants` is None."""
    wanted = constants_of(nest) if constants is None else constants
    if all(buffer.op is None for buffer in wanted):
        return []
    return [root for root in nest.children if not _written_by(root).isdisjoint(wanted)]


def binding_problem(nest: Nest, constants: Collection[Buffer] | None = None) -> tuple[Node, Reason] | None:
    """A nest that cannot run at binding, and the reason; None if there is none.

    A nest that writes a constant accesses only constants, and temporaries that no other nest uses, and depends on no
    size and no index of a call. No nest reads a constant before a later one writes it.
    """
    wanted = constants_of(nest) if constants is None else constants
    for root in binding_nests(nest, wanted):
        problem = _given_by_calls(nest, root) or dependence(nest, root, wanted) or _lateness(nest, root, wanted)
        if problem is not None:
            return root, problem
    return None


def _given_by_calls(nest: Nest, root: Node) -> Reason | None:
    """The reason why a nest that writes a constant needs sizes or indices of a call; None if it needs none."""
    if not nest.sizes and not nest.index_arrays:
        return None
    guards = (constraint for node in nodes_of(root) if isinstance(node, Scope) for constraint in node.guard)
    used = [*guards, *(e for leaf in leaves_of(root) for e in leaf.expressions)]
    for size in sizes_in([*used, *(e for buffer in buffers_of(root) for e in buffer.sized)]):
        return Reason(f"constants are computed before a call, which gives the size {size.name}")
    read = {buffer.names[0] for buffer in buffers_of(root)} | {found.table.name for found in lookups_in(used)}
    for name in sorted(read & nest.index_arrays.keys()):
        return Reason(f"constants are computed before a call, which gives the indices '{name}'")
    return None


def dependence(nest: Nest, root: Node, constants: Collection[Buffer]) -> Reason | None:
    """The reason why a nest that writes a constant depends on more than constants; None if it does not."""
    used = [buffer for buffer in nest.buffers if buffer in buffers_of(root)]
    constant = next(buffer.names[0] for buffer in used if buffer in constants and buffer in _written_by(root))
    for buffer in (buffer for buffer in used if buffer not in constants):
        name = buffer.names[0]
        if buffer.op is None:
            return Reason(f"constant '{constant}' is computed in one nest with '{name}', which is not constant")
        if any(buffer in buffers_of(other) for other in nest.children if other is not root):
            return Reason(
                f"constant '{constant}' is computed in one nest with '{name}', which is not constant, and which "
                f"another nest uses"
            )
    return None


def _lateness(nest: Nest, root: Node, constants: Collection[Buffer]) -> Reason | None:
    """The reason why a nest writes a constant too late; None if no nest before it has read the constant."""
    for buffer in (buffer for buffer in nest.buffers if buffer in constants and buffer in _written_by(root)):
        for earlier in nest.children[: root.position]:
            if buffer in buffers_of(earlier) and buffer not in _written_by(earlier):
                return Reason(f"constant '{buffer.names[0]}' is written after another nest has read it")
    return None


def _written_by(root: Node) -> frozenset[Buffer]:
    return fact(root.facts, "written buffers", lambda: frozenset(leaf.output.array.buffer for leaf in leaves_of(root)))
