"""Locations: how people and traces address a node or a dimension (`t:0`, `s#1:0`, `t`, `%3.o`)."""

from __future__ import annotations

import re
from difflib import get_close_matches

from pdojo.dialect.view.nest import Array, Leaf, Nest, Node, Scope
from pdojo.errors import LocationError

_LOCATION = re.compile(r"(?P<array>[A-Za-z_]\w*)(?:#(?P<writer>\d{1,9}))?(?::(?P<depth>\d{1,9}))?", re.ASCII)


def find_node(nest: Nest, location: str) -> Node:
    """The scope or statement at a location: `array[#k]` is a statement, `array[#k]:d` the scope at depth d around it.

    `%id` addresses a node by its identifier. Raises LocationError for an unknown or ambiguous location, with the
    candidates.
    """
    if location.startswith("%"):
        node = nest.by_id.get(location[1:])
        if node is None:
            raise LocationError(f"location '{location}': no node has that identifier any more")
        return node
    match = _LOCATION.fullmatch(location)
    if match is None:
        raise LocationError(
            f"'{location}' is not a location; write array, array#k, array:depth or array#k:depth (for example t:0)"
        )
    writers = _writers(nest, location, match["array"])
    if match["writer"] is not None:
        number = int(match["writer"])
        if number >= len(writers):
            raise LocationError(f"location '{location}': '{match['array']}' is written by {_count(len(writers), 'op')}")
        writers = [writers[number]]
    if match["depth"] is None:
        return _only(nest, location, list(writers))
    return _only(nest, location, _scopes_at(location, writers, int(match["depth"])))


def _writers(nest: Nest, location: str, array: str) -> list[Leaf]:
    if array not in nest.arrays:
        raise LocationError(f"location '{location}': there is no array '{array}'{_suggestion(array, nest)}")
    writers = nest.writers[array]
    if not writers:
        raise LocationError(f"location '{location}': no op writes '{array}'; locations name the op by its output")
    return writers


def _suggestion(array: str, nest: Nest) -> str:
    close = get_close_matches(array, nest.arrays, 1)
    return f"; did you mean '{close[0]}'?" if close else f"; the arrays are {', '.join(nest.arrays)}"


def _scopes_at(location: str, writers: list[Leaf], depth: int) -> list[Node]:
    found: dict[Scope, None] = {}
    for leaf in writers:
        if depth < leaf.depth:
            found[leaf.chain[depth]] = None
    if not found:
        deepest = max(leaf.depth for leaf in writers)
        raise LocationError(f"location '{location}': the op is inside {_count(deepest, 'scope')}, depths count from 0")
    return list(found)


def _only(nest: Nest, location: str, nodes: list[Node]) -> Node:
    if len(nodes) == 1:
        return nodes[0]
    candidates = ", ".join(location_of(nest, node) for node in nodes)
    raise LocationError(f"location '{location}' is ambiguous; candidates: {candidates}")


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def location_of(nest: Nest, node: Node) -> str:
    """The shortest unambiguous location of a node."""
    first = node if isinstance(node, Leaf) else node.leaves[0]
    name = first.output.array.name
    writers = nest.writers[name]
    if isinstance(node, Leaf):
        return name if len(writers) == 1 else f"{name}#{writers.index(first)}"
    at_depth = {w.chain[node.depth] for w in writers if node.depth < w.depth}
    if len(at_depth) == 1:
        return f"{name}:{node.depth}"
    return f"{name}#{writers.index(first)}:{node.depth}"


def find_dimension(nest: Nest, location: str) -> tuple[Array, int]:
    """The array and dimension at a buffer location `array:d`. Raises LocationError."""
    match = _LOCATION.fullmatch(location)
    if match is None or match["depth"] is None or match["writer"] is not None:
        raise LocationError(f"'{location}' is not a dimension; write array:dimension (for example t:0)")
    array = find_array(nest, match["array"], location)
    dimension = int(match["depth"])
    if dimension >= len(array.shape):
        raise LocationError(f"location '{location}': '{array.name}' has {_count(len(array.shape), 'dimension')}")
    return array, dimension


def find_array(nest: Nest, name: str, location: str | None = None) -> Array:
    """The array called `name`. Raises LocationError."""
    if name not in nest.arrays:
        raise LocationError(f"location '{location or name}': there is no array '{name}'{_suggestion(name, nest)}")
    return nest.arrays[name]
