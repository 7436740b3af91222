"""Places of nodes in the tree, as positions from the root."""

from __future__ import annotations

from collections.abc import Sequence

from pdojo.dialect.view.nest import Leaf, Node


def node_path(node: Node) -> tuple[int, ...]:
    """Positions from the root to the node."""
    return node.path


def relative_paths(leaves: Sequence[Leaf]) -> list[tuple[int, ...]]:
    """Positions from the root, counted only among siblings that are or contain one of the statements."""
    paths = [node_path(leaf) for leaf in leaves]
    siblings: dict[tuple[int, ...], list[int]] = {}
    for prefix, position in sorted({(path[:k], path[k]) for path in paths for k in range(len(path))}):
        siblings.setdefault(prefix, []).append(position)
    return [tuple(siblings[path[:k]].index(path[k]) for k in range(len(path))) for path in paths]
