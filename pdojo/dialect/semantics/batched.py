"""The reference interpreter for any size: every statement over as many iterations at once as `batching` permits.

Scopes that can be distributed become axes of NumPy expressions, all others are loops. An access whose place is linear
in the axes is a strided view; guards and divisions need explicit places.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np
from numpy.lib.stride_tricks import as_strided

from pdojo.dialect.affine import Expr, Lookup, Size
from pdojo.dialect.attributes import Mapping as ScopeMapping
from pdojo.dialect.semantics.accumulate import Accumulator, Terms
from pdojo.dialect.semantics.batching import Layout, is_batchable
from pdojo.dialect.semantics.functions import apply, constant, index_values, poison
from pdojo.dialect.semantics.rounding import Values
from pdojo.dialect.view.nest import Access, Array, Buffer, Constant, Index, Leaf, Nest, Node, Scope

GRID_LIMIT = 1 << 20
"""Largest number of instances of a statement computed at once; it keeps temporaries small."""


@dataclass(frozen=True)
class _Grid:
    """A block of iterations: a range of each batched scope, outermost first; the other variables are fixed."""

    fixed: Mapping[int, int]
    depths: tuple[int, ...]
    ranges: tuple[range, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(len(r) for r in self.ranges)

    def variable(self, depth: int) -> Values | int:
        """The values of an induction variable, along its axis of the grid."""
        if depth in self.fixed:
            return self.fixed[depth]
        axis = self.depths.index(depth)
        behind = len(self.depths) - axis - 1
        return np.arange(self.ranges[axis].start, self.ranges[axis].stop).reshape(-1, *(1,) * behind)


class BatchedRun:
    """One run of a nest on carried inputs."""

    def __init__(self, nest: Nest, inputs: Mapping[str, Values], seed: int | None, *, cells: bool) -> None:
        self.nest = nest
        self.layout = Layout(nest, cells=cells)
        self.random = None if seed is None else np.random.default_rng(seed)
        self.memory: dict[Array | Buffer, Values] = {}
        for array in nest.arrays.values():
            key = self.layout.key(array)
            if array.name in inputs:
                self.memory[key] = inputs[array.name].reshape(-1)
            elif key not in self.memory:
                self.memory[key] = poison(self.layout.homes[key].shape, array.dtype).reshape(-1)
        slices = self.layout.slices
        self.renewed = {scope: [a for a in slices if slices[a].scopes[-1] is scope] for scope in self.layout.loops}
        """Per scope that is a loop because of slices, the temporaries that get a new slice in each iteration."""
        self.batched = {scope for scope in nest.scopes if scope not in self.renewed and self._is_batched(scope)}
        self.statements = {leaf: _Statement(leaf, self.layout, self.memory) for leaf in nest.leaves}

    def _is_batched(self, scope: Scope) -> bool:
        # With a seed, lanes read before they write, as a statement over an axis does.
        lockstep = self.random is not None and scope.mapping is ScopeMapping.VECTOR
        return lockstep or is_batchable(scope, self.layout)

    def run(self) -> dict[str, Values]:
        """The interface arrays at the end, in their carriers."""
        self._run(self.nest.children, {}, ())
        interface = (a for a in self.nest.arrays.values() if a.intent is not None)
        return {a.name: self.memory[self.layout.key(a)].reshape(a.shape) for a in interface}

    def _run(self, nodes: Sequence[Node], fixed: Mapping[int, int], axes: tuple[Scope, ...]) -> None:
        for node in nodes:
            if isinstance(node, Leaf):
                for ranges in _blocks([scope.extent for scope in axes]):
                    self.statements[node].execute(_Grid(fixed, tuple(s.depth for s in axes), ranges))
            elif node in self.batched:
                self._run(node.children, fixed, (*axes, node))
            else:
                for iteration in self._order(node):
                    for array in self.renewed.get(node, ()):
                        self.memory[array][...] = poison((), array.dtype)
                    self._run(node.children, {**fixed, node.depth: iteration}, axes)

    def _order(self, scope: Scope) -> Sequence[int]:
        if self.random is None or not scope.mapping.is_threaded:
            return range(scope.extent)
        return self.random.permutation(scope.extent).tolist()


def _blocks(extents: Sequence[int]) -> Iterator[tuple[range, ...]]:
    """Parts of a grid within `GRID_LIMIT`: blocks of the outermost axis that fits, single steps outside it."""
    parts: list[list[range]] = []
    for axis, extent in enumerate(extents):
        inner = prod(extents[axis + 1 :])
        step = max(1, min(extent, GRID_LIMIT // inner))
        parts.append([range(start, min(start + step, extent)) for start in range(0, extent, step)])
    return product(*parts)


class _Place:
    """An access as positions in flat memory."""

    def __init__(self, access: Access, leaf: Leaf, layout: Layout, memory: Mapping[Array | Buffer, Values]) -> None:
        self.flat = memory[layout.key(access.array)]
        self.address = layout.address(access, leaf)
        low, high = self.address.bounds(leaf.extents)
        self.is_strided = self.address.is_linear and low >= 0 and high < self.flat.size
        """Whether the access is a strided view: every iteration of the box, even if guarded, has a place in memory."""

    def strides(self, grid: _Grid) -> tuple[int, ...]:
        """The distance in elements between neighbours along each axis."""
        return tuple(self.address.coefficient(depth) for depth in grid.depths)

    def view(self, grid: _Grid) -> Values:
        """The elements over the grid, without a copy."""
        start = self.address.constant
        for depth, value in grid.fixed.items():
            start += self.address.coefficient(depth) * value
        strides = self.strides(grid)
        for r, stride in zip(grid.ranges, strides, strict=True):
            start += r.start * stride
        size = self.flat.itemsize
        return as_strided(self.flat[start:], grid.shape, [stride * size for stride in strides])

    def has_one_instance_each(self, grid: _Grid) -> bool:
        """True if iterations that differ along an axis of non-zero stride certainly have different places."""
        reach = 0
        for stride, extent in sorted((abs(s), n) for s, n in zip(self.strides(grid), grid.shape, strict=True) if s):
            if extent > 1 and stride <= reach:
                return False
            reach += stride * (extent - 1)
        return True


class _Statement:
    """A statement, ready to be executed over grids."""

    def __init__(self, leaf: Leaf, layout: Layout, memory: Mapping[Array | Buffer, Values]) -> None:
        self.leaf = leaf
        self.output = _Place(leaf.output, leaf, layout, memory)
        self.inputs = [_Place(i, leaf, layout, memory) if isinstance(i, Access) else i for i in leaf.inputs]
        self.dtypes = [i.array.dtype if isinstance(i, Access) else i.dtype for i in leaf.inputs]
        self.dtype = leaf.output.array.dtype
        self.accumulator = (
            None if leaf.accumulate is None else Accumulator(leaf.accumulate, self.dtype, leaf.contracted)
        )
        self.is_strided = not leaf.guards and self.output.is_strided

    def execute(self, grid: _Grid) -> None:
        """Compute all instances of the grid: all reads, then all writes."""
        if self.is_strided and self.output.has_one_instance_each(grid):
            reduced = tuple(
                axis
                for axis, (stride, extent) in enumerate(zip(self.output.strides(grid), grid.shape, strict=True))
                if not stride and extent > 1
            )
            if self.accumulator is not None or not reduced:
                self._strided(grid, reduced)
                return
        self._scattered(grid)

    def _strided(self, grid: _Grid, reduced: tuple[int, ...]) -> None:
        operands = [self._operand(value, grid) for value in self.inputs]
        target = self.output.view(grid)
        if self.accumulator is None:
            target[...] = apply(self.leaf.function, operands, self.dtypes, self.dtype)
            return
        terms = self._terms(self.accumulator, operands, grid.shape)
        target = target[(*(0 if axis in reduced else slice(None) for axis in range(target.ndim)), ...)]
        target[...] = self.accumulator.accumulate(target, terms, reduced)

    def _terms(self, accumulator: Accumulator, operands: Sequence[Values], shape: tuple[int, ...]) -> Terms:
        terms = accumulator.terms(self.leaf.function, operands, self.dtypes)
        return tuple(np.broadcast_to(term, shape) for term in terms)

    def _operand(self, value: _Place | Constant | Index, grid: _Grid) -> Values:
        match value:
            case _Place() if value.is_strided:
                return value.view(grid)
            case _Place():
                return np.asarray(value.flat[_evaluate(value.address, grid.variable)])
            case Constant():
                return constant(value.value, value.dtype)
            case Index():
                return index_values(np.asarray(_evaluate(value.expression, grid.variable)), value.dtype)

    def _scattered(self, grid: _Grid) -> None:
        """Execute with explicit places, one per instance within the guards, in the order of the iterations."""
        mask = np.ones(grid.shape, np.bool_)
        for guard in self.leaf.guards:
            mask &= np.asarray(_evaluate(guard, grid.variable)) >= 0
        chosen = np.flatnonzero(mask)
        if not len(chosen):
            return
        places = np.unravel_index(chosen, grid.shape) if grid.shape else ()

        def variable(depth: int) -> Values | int:
            if depth in grid.fixed:
                return grid.fixed[depth]
            axis = grid.depths.index(depth)
            return places[axis] + grid.ranges[axis].start

        def spread(expression: Expr) -> Values:
            return np.broadcast_to(_evaluate(expression, variable), chosen.shape)

        operands: list[Values] = []
        for value in self.inputs:
            match value:
                case _Place():
                    operands.append(value.flat[spread(value.address)])
                case Constant():
                    operands.append(constant(value.value, value.dtype))
                case _:
                    operands.append(index_values(spread(value.expression), value.dtype))
        target = spread(self.output.address)
        if self.accumulator is None:
            self.output.flat[target] = apply(self.leaf.function, operands, self.dtypes, self.dtype)
        else:
            terms = self._terms(self.accumulator, operands, chosen.shape)
            self.accumulator.scatter(self.output.flat, target, terms)


def _evaluate(expression: Expr, variable: Callable[[int], Values | int]) -> Values | int:
    total: Values | int = expression.constant
    for atom, coefficient in expression.terms:
        if isinstance(atom, int):
            total = total + variable(atom) * coefficient
        elif isinstance(atom, Size):
            atom.of(())
        elif isinstance(atom, Lookup):
            entries = atom.table.known.entries
            total = total + np.take(entries, _evaluate(atom.operands[0], variable), mode="clip") * coefficient
        else:
            total = total + _evaluate(atom.numerator, variable) // atom.divisor * coefficient
    return total
