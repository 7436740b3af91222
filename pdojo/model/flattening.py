"""Kernels with as few dimensions as possible, in the same memory: the rows of a batch of sequences are rows.

Kernels of arrays `[2, 24, 256]` and `[1, 48, 256]` then have one text, and a kernel that reads a product `[48, 256]`
as `[2, 24, 256]` has a text in which no iteration is multiplied by an extent that may be a size.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from pdojo.dialect.affine import Div, Expr, floordiv, modulo, var
from pdojo.dialect.attributes import Mapping as ScopeMapping
from pdojo.dialect.notation.printer import print_nest
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.view.build import nest_of
from pdojo.dialect.view.nest import NO_HINTS, Access, Buffer, Index, Input, Leaf, Nest, Node, Scope, inside_of


def flattened(kernel: KernelOp) -> str:
    """The text of a kernel that computes the same in the same memory, with fewer dimensions.

    Two dimensions of arrays become one if all accesses step through both like two scopes, which become one too, or if
    one of them has one place.
    """
    nest: Nest | None = nest_of(kernel)
    found = nest
    while nest is not None:
        found, nest = nest, next(_merged(nest), None)
    assert found is not None
    return print_nest(found)


def _merged(nest: Nest) -> Iterator[Nest]:
    """The kernel with one dimension of one place less, or with two scopes as one; each if it is possible."""
    for buffer in nest.buffers:
        for d in range(len(buffer.shape) - 1):
            if 1 in buffer.shape[d : d + 2] and (found := _Merge(nest, dimensions={(buffer, d)}).made()) is not None:
                yield found
    for scope in nest.scopes:
        merge = _Merge(nest, scopes={scope})
        if merge.complete() and (found := merge.made()) is not None:
            yield found


@dataclass
class _Merge:
    """Scopes that become one with their child, and dimensions that become one with the next."""

    nest: Nest
    scopes: set[Scope] = field(default_factory=set[Scope])
    dimensions: set[tuple[Buffer, int]] = field(default_factory=set[tuple[Buffer, int]])

    def complete(self) -> bool:
        """Add all dimensions that the scopes step through, and all scopes that step through these; False if none do."""
        count = -1
        while count < len(self.scopes) + len(self.dimensions):
            count = len(self.scopes) + len(self.dimensions)
            pairs = [(leaf, access) for leaf in self.nest.leaves for access in leaf.accesses]
            places = [(*pair, d) for pair in pairs for d in range(len(pair[1].index) - 1)]
            if not all(self._follows(*place) for place in places):
                return False
        return all(map(_is_plain, self.scopes))

    def _follows(self, leaf: Leaf, access: Access, d: int) -> bool:
        """Add the dimension that the scopes step through in an access, or scopes to the dimension; False if none do.

        No scopes step through constant places, which is no hindrance.
        """
        pair, key = access.index[d : d + 2], (access.array.buffer, d)
        steps = next((s for s in leaf.chain[:-1] if pair == (var(s.depth), var(s.depth + 1))), None)
        if steps in self.scopes:
            self.dimensions.add(key)
        elif key in self.dimensions:
            if steps is None:
                return all(index.is_constant for index in pair)
            self.scopes.add(steps)
        return True

    def made(self) -> Nest | None:
        """The kernel after it; None if memory is not dense, or an index expression becomes longer."""
        inner = {child for scope in self.scopes for child in scope.children if isinstance(child, Scope)}
        crossed = any((buffer, d + 1) in self.dimensions for buffer, d in self.dimensions)
        if inner & self.scopes or crossed or not all(_is_dense(*each, self.nest) for each in self.dimensions):
            return None
        buffers = {buffer: self._buffer(buffer) for buffer in self.nest.buffers}
        try:
            children = [self._node(root, None, {}, buffers) for root in self.nest.children]
        except _LongerError:
            return None
        leaves, scopes = inside_of(children)
        return replace(
            self.nest, buffers=[*buffers.values()], children=children, leaves=leaves, scopes=scopes, is_used_up=False
        )

    def _buffer(self, buffer: Buffer) -> Buffer:
        shape, reuse = [*buffer.shape], [*buffer.reuse]
        for d in sorted((d for each, d in self.dimensions if each is buffer), reverse=True):
            shape[d : d + 2], reuse[d : d + 2] = [shape[d] * shape[d + 1]], [reuse[d]]
        return replace(buffer, shape=tuple(shape), reuse=tuple(reuse))

    def _node(
        self, node: Node, parent: Scope | None, steps: Mapping[int, Expr], buffers: Mapping[Buffer, Buffer]
    ) -> Node:
        """A node in its new parent; `steps` are the variables of scopes around it, by depth. Raises _LongerError."""
        extents = () if parent is None else parent.extents
        if isinstance(node, Leaf):
            inputs = [self._input(each, steps, extents, buffers) for each in node.inputs]
            output = self._input(node.output, steps, extents, buffers)
            assert isinstance(output, Access)
            return replace(node, parent=parent, output=output, inputs=tuple(inputs))
        depth = len(extents)
        if node not in self.scopes:
            inside = {**steps, node.depth: var(depth)}
            guard = tuple(_substituted([e], e, inside, (*extents, node.extent)) for e in node.guard)
            made, children = replace(node, parent=parent, depth=depth, guard=guard), node.children
        else:
            (inner,) = node.children
            assert isinstance(inner, Scope)
            extent = node.extent * inner.extent
            pair = [each(var(depth), inner.extent, (*extents, extent)) for each in (floordiv, modulo)]
            inside = {**steps, node.depth: pair[0], inner.depth: pair[1]}
            made, children = replace(node, parent=parent, depth=depth, extent=extent), inner.children
        made.take([self._node(child, made, inside, buffers) for child in children])
        return made

    def _input(
        self, value: Input, steps: Mapping[int, Expr], extents: tuple[int, ...], buffers: Mapping[Buffer, Buffer]
    ) -> Input:
        match value:
            case Access(array, index, hints):
                joint = [([e], e) for e in index]
                for d in sorted((d for each, d in self.dimensions if each is array.buffer), reverse=True):
                    whole = index[d] * array.shape[d + 1] + index[d + 1]
                    joint[d : d + 2] = [([*index[d : d + 2]], whole)]
                made = tuple(_substituted(before, e, steps, extents) for before, e in joint)
                return Access(replace(array, buffer=buffers[array.buffer]), made, hints)
            case Index(expression, dtype):
                return Index(_substituted([expression], expression, steps, extents), dtype)
            case _:
                return value


class _LongerError(Exception):
    """An index expression has more divisions than before."""


def _substituted(before: list[Expr], expression: Expr, steps: Mapping[int, Expr], extents: tuple[int, ...]) -> Expr:
    """An expression in other variables. Raises _LongerError if it has more divisions than those before it."""
    made = expression.substitute(steps, extents)
    if _divisions(made) > sum(map(_divisions, before)):
        raise _LongerError
    return made


def _divisions(expression: Expr) -> int:
    """The number of divisions in an expression."""
    atoms = [atom for atom, _ in expression.terms if not isinstance(atom, int)]
    return sum(isinstance(atom, Div) + sum(map(_divisions, atom.operands)) for atom in atoms)


def _is_plain(scope: Scope) -> bool:
    """Whether a scope and its only child, a scope, run all their iterations in order."""
    if len(scope.children) != 1 or not isinstance(scope.children[0], Scope):
        return False
    pair = (scope, scope.children[0])
    return all(s.mapping is ScopeMapping.SEQUENTIAL and not s.guard and s.hints == NO_HINTS for s in pair)


def _is_dense(buffer: Buffer, d: int, nest: Nest) -> bool:
    """Whether two dimensions of a buffer are dense, and known by no other names."""
    is_one = len(buffer.names) == 1 and buffer.names[0] not in nest.index_arrays
    is_dense = not (buffer.swizzles or buffer.sized or buffer.strides)
    return is_one and is_dense and buffer.reuse[d] == buffer.reuse[d + 1] <= 1
