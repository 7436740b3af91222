"""The launches of one call of a kernel, in order, computed from the nest.

The printed host function makes the same launches; `test/unit/backends/gpu/test_gpu_executable.py` compares them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import NamedTuple

from pdojo.backends.common.walk import describe
from pdojo.backends.gpu.launches import grid_limits, grids_of, root_of
from pdojo.dialect.affine import Expr
from pdojo.dialect.sizes import with_sizes
from pdojo.dialect.view.nest import Leaf, Nest, Node, Scope
from pdojo.errors import LoweringError

MOST_LAUNCHES = 1 << 16
"""Most launches of a call: each costs a few microseconds of host time, and a node of a graph."""


class Launched(NamedTuple):
    """A launch of a call."""

    number: int
    """The index of the device function."""
    blocks: int
    values: tuple[int, ...]
    """The values of the host's variables that the function takes."""


def roots_of(nest: Nest) -> list[Node]:
    """The nodes with a launch each, in order."""
    return list(dict.fromkeys(root_of(leaf) for leaf in nest.leaves))


def launch_sequence(
    nest: Nest, roots: Sequence[Node], variables: Sequence[Sequence[int]], sizes: Mapping[str, int]
) -> tuple[Launched, ...]:
    """The launches of a call for given sizes. Raises LoweringError if there are more than `MOST_LAUNCHES`.

    `roots` and `variables` have the node of each device function, and the depths of the host's variables that it takes.
    """
    numbers = {root: number for number, root in enumerate(roots)}
    found: list[Launched] = []
    for root, values in _Walk(numbers, sizes, []).nodes(nest.children):
        if len(found) == MOST_LAUNCHES:
            raise LoweringError(
                f"kernel '{nest.name}' launches more than {MOST_LAUNCHES} grids, the last one for {_describe(root)}; "
                "map loops around grids to the grid, or move them inside"
            )
        number = numbers[root]
        blocks = prod(_count(scope, sizes, values) for scope in grids_of(root))
        found.append(Launched(number, blocks, tuple(values[depth] for depth in variables[number])))
    return tuple(found)


class _Walk(NamedTuple):
    """The launches, each with the iteration of the host's loops; checks the guards of these loops.

    The device checks the guards of launched nodes.
    """

    numbers: Mapping[Node, int]
    sizes: Mapping[str, int]
    values: list[int]
    """The iteration of each open loop, outermost first."""

    def nodes(self, nodes: Sequence[Node]) -> Iterator[tuple[Node, Sequence[int]]]:
        """The launches of nodes."""
        for node in nodes:
            if node in self.numbers:
                yield node, self.values
            elif isinstance(node, Scope):
                guard = [_at(constraint, self.sizes, node) for constraint in node.guard]
                for iteration in range(node.extent):
                    self.values.append(iteration)
                    if all(constraint.evaluate(self.values) >= 0 for constraint in guard):
                        yield from self.nodes(node.children)
                    self.values.pop()


def _count(scope: Scope, sizes: Mapping[str, int], values: Sequence[int]) -> int:
    """The number of iterations of a grid scope that a launch has."""
    limits = (_at(limit, sizes, scope).evaluate(values) for limit in grid_limits(scope))
    return max(1, min([scope.extent, *limits]))


def _at(expression: Expr, sizes: Mapping[str, int], scope: Scope) -> Expr:
    return with_sizes(expression, sizes, [s.extent for s in scope.chain]) if sizes else expression


def _describe(root: Node) -> str:
    return f"'{root.output.array.name}'" if isinstance(root, Leaf) else describe(root)
