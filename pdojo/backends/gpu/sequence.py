"""The launches of one call of a kernel, in order, computed from the nest.

The printed host function makes the same launches; `test/unit/backends/gpu/test_gpu_executable.py` compares them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from pdojo.backends.common.walk import describe
from pdojo.backends.gpu.device_function import LaunchText
from pdojo.dialect.view.nest import Leaf, Nest, Node
from pdojo.errors import LoweringError

MOST_LAUNCHES = 1 << 16
"""Most launches of a call: each costs a few microseconds of host time, and a node of a graph."""
Launched: TypeAlias = tuple[int, tuple[int, ...]]
"""The index of a device function, and the values of its host variables."""


def launch_sequence(nest: Nest, launches: Sequence[LaunchText]) -> tuple[Launched, ...]:
    """The launches of a call. Raises LoweringError if there are more than `MOST_LAUNCHES`."""
    numbers = {entry.launch.root: number for number, entry in enumerate(launches)}
    depths = [[scope.depth for scope in entry.variables] for entry in launches]
    found: list[Launched] = []
    for number, values in _walk(nest.children, numbers, []):
        if len(found) == MOST_LAUNCHES:
            raise LoweringError(
                f"kernel '{nest.name}' launches more than {MOST_LAUNCHES} grids, the last one for "
                f"{_describe(launches[number].launch.root)}; map loops around grids to the grid, or move them inside"
            )
        found.append((number, tuple(values[depth] for depth in depths[number])))
    return tuple(found)


def _walk(nodes: Sequence[Node], numbers: Mapping[Node, int], values: list[int]) -> Iterator[tuple[int, Sequence[int]]]:
    """The launches, each with the iteration of the host's loops; checks the guards of these loops.

    `values` has the iteration of each open loop, outermost first. The device checks the guards of launched nodes.
    """
    for node in nodes:
        if node in numbers:
            yield numbers[node], values
        elif not isinstance(node, Leaf):
            for iteration in range(node.extent):
                values.append(iteration)
                if all(constraint.evaluate(values) >= 0 for constraint in node.guard):
                    yield from _walk(node.children, numbers, values)
                values.pop()


def _describe(root: Node) -> str:
    return f"'{root.output.array.name}'" if isinstance(root, Leaf) else describe(root)
