"""Vectors whose elements take turns in memory: stored together, as whole vectors of interleaved elements.

Two or four sibling statements on vectors write every second or fourth element of an array each, and all elements of
one range together: sines and cosines in turns, or the parts of complex numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from xdsl.dialects import llvm
from xdsl.dialects.builtin import VectorType
from xdsl.ir import SSAValue

from pdojo.backends.common.addresses import lanes_of
from pdojo.backends.llvm.code import FunctionCode
from pdojo.backends.llvm.memory import AccessPlace, Reach, annotate, to_memory
from pdojo.backends.llvm.vectors import shuffle
from pdojo.dialect.affine import Expr
from pdojo.dialect.attributes import Mapping, Memory
from pdojo.dialect.view.nest import Buffer, Node, Scope, leaves_of

STEPS = frozenset({2, 4})
"""Numbers of statements that may take turns."""


@dataclass(eq=False)
class InterleavedScopes:
    """Vector scopes whose statements write the elements of one range in turns."""

    places: dict[Scope, AccessPlace]
    """The places of their first elements, in the order of memory."""
    last: Scope
    """The scope after which all vectors are known."""


def turns_of(reach: Reach, nodes: Sequence[Node]) -> dict[Scope, InterleavedScopes]:
    """The scopes among sibling nodes whose vectors can be stored together, after the last of them.

    Nothing between the first and the last of them accesses the array otherwise.
    """
    scopes = [node for node in nodes if isinstance(node, Scope) and _may_take_turns(node)]
    if len(scopes) < min(STEPS):
        return {}
    groups: dict[tuple[object, ...], dict[Scope, AccessPlace]] = {}
    for scope in scopes:
        found = _place(reach, scope)
        if found is not None:
            place, step = found
            rest = place.index - place.index.constant
            key = place.buffer, rest, step, scope.extent, place.index.constant // step
            groups.setdefault(key, {})[scope] = place
    made: dict[Scope, InterleavedScopes] = {}
    for key, places in groups.items():
        order = dict(sorted(places.items(), key=lambda item: item[1].index.constant))
        constants = [place.index.constant for place in order.values()]
        if len(order) == key[2] and constants == list(range(constants[0], constants[0] + len(order))):
            numbers = [nodes.index(scope) for scope in order]
            others = [node for node in nodes[min(numbers) : max(numbers)] if node not in order]
            buffer = next(iter(order.values())).buffer
            if not any(_accesses(node, buffer) for node in others):
                turns = InterleavedScopes(order, max(order, key=nodes.index))
                made.update(dict.fromkeys(order, turns))
    return made


def _may_take_turns(scope: Scope) -> bool:
    """Whether a vector scope without a guard stores the results of a plain statement that does not read their array."""
    if scope.mapping is not Mapping.VECTOR or scope.guard or scope.extent < 2:
        return False
    (leaf,) = scope.leaves
    buffer = leaf.output.array.buffer
    return (
        leaf.accumulate is None
        and buffer.memory is not Memory.REGISTER
        and not leaf.output.hints.data
        and all(access.array.buffer is not buffer for access in leaf.reads)
    )


def _place(reach: Reach, scope: Scope) -> tuple[AccessPlace, int] | None:
    """The place of the first lane of a vector scope's statement, and the distance of its lanes; None if they do not
    take turns.
    """
    code = reach.code
    (leaf,) = scope.leaves
    code.extents.append(scope.extent)
    try:
        place = reach.place(leaf.output, leaf)
        lanes = lanes_of(place.index, scope.depth, code.extents)
    finally:
        code.extents.pop()
    if lanes.stride not in STEPS or place.displacement is not None or place.buffer in reach.framed:
        return None
    assert lanes.stride is not None
    return replace(place, index=lanes.base), lanes.stride


def _accesses(node: Node, buffer: Buffer) -> bool:
    """Whether any statement of a node accesses a buffer."""
    return any(access.array.buffer is buffer for leaf in leaves_of(node) for access in leaf.accesses)


def store_in_turns(reach: Reach, turns: InterleavedScopes, values: Sequence[SSAValue]) -> None:
    """Store vectors, one for each place of `turns`, as whole vectors of their elements in turns."""
    code = reach.code
    first = next(iter(turns.places.values()))
    vectors = interleaved(code, [to_memory(code, value, first.buffer.dtype) for value in values])
    count = next(iter(turns.places)).extent
    for number, vector in enumerate(vectors):
        index: Expr = first.index + number * count
        op = llvm.StoreOp(vector, reach.pointer(first, index), reach.alignment(first, index))
        annotate(op, first)
        code.do(op)


def interleaved(code: FunctionCode, vectors: Sequence[SSAValue]) -> list[SSAValue]:
    """The elements of 2**n vectors in turns: the first ones of all vectors, then the second ones, and so on."""
    if len(vectors) == 1:
        return list(vectors)
    found: list[SSAValue] = []
    for one, other in zip(interleaved(code, vectors[::2]), interleaved(code, vectors[1::2]), strict=True):
        assert isinstance(one.type, VectorType)
        (count,) = one.type.get_shape()
        order = [place for lane in range(count) for place in (lane, count + lane)]
        found += [shuffle(code, one, other, half) for half in (order[:count], order[count:])]
    return found
