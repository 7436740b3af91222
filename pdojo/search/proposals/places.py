"""Features of the place of a move: a scope, a statement, an array or a dimension, and the move's parameters there.

| features | what they are |
| --- | --- |
| kind | scope, statement, array, dimension |
| scope | log extent, depth, levels and statements inside, guards, mappings of it, its parent and its child |
| statement | accumulation, function, contraction, inputs, unrolled copies |
| accesses | over the scope, or the innermost one: shares of invariant (reused) and contiguous ones, mean log stride |
| array | log elements, dimensions, bytes, memory, readers and writers; of a dimension: log extent, place, slots |
| parameters | log size, whether it divides the extent, equals it, is a vector's length; texts by hash |
| history | moves made at the place, on its array and of this family; whether the latest moves were there |
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from math import log2, prod
from typing import NamedTuple, TypeAlias
from zlib import crc32

import numpy
from numpy.typing import NDArray

from pdojo.dialect.affine import Expr
from pdojo.dialect.attributes import Mapping, Memory
from pdojo.dialect.flow.program import Program
from pdojo.dialect.functions import byte_width
from pdojo.dialect.rules.lanes import linear_address
from pdojo.dialect.view.nest import Access, Array, Leaf, Nest, Scope
from pdojo.dialect.view.storage import physical_index, physical_shape
from pdojo.search.contract.candidates import MoveCandidate
from pdojo.search.features.structure import slope
from pdojo.transforms.move import Move, Param
from pdojo.transforms.site import Dimension, Site, identify

Row: TypeAlias = NDArray[numpy.float32]

TEXTS = 8
"""Number of features for texts of parameters."""
_MAPPINGS = {mapping: number for number, mapping in enumerate(Mapping)}
_MEMORIES = {memory: number for number, memory in enumerate(Memory)}
_SCOPE = 14 + len(_MAPPINGS)
_LEAF = 9
_ACCESSES = 6
_ARRAY = 12 + len(_MEMORIES)
_PARAMETERS = 9 + TEXTS
_HISTORY = 8
_PARTS = (4, _SCOPE, _LEAF, _ACCESSES, _ARRAY, _PARAMETERS, _HISTORY)
_OFFSETS = [sum(_PARTS[:k]) for k in range(len(_PARTS))]
SIZE = sum(_PARTS)
"""Number of the features."""


class History:
    """The moves that led to a program, by place and family."""

    def __init__(self, moves: Sequence[Move]) -> None:
        self.length = len(moves)
        self.names = Counter(move.name for move in moves)
        self.at = Counter(move.at for move in moves)
        self.on = Counter(_head(move.at) for move in moves)
        self.made = {(move.name, move.at) for move in moves}
        self.latest = [(move.name, move.at) for move in moves[:-3:-1]]
        """Names and places of the last moves, the latest first."""

    def row(self, name: str, at: str) -> list[float]:
        """The features of a family at a place."""
        latest = [*self.latest, ("", ""), ("", "")]
        return [
            log2(1 + self.at[at]),
            log2(1 + self.on[_head(at)]),
            float((name, at) in self.made),
            log2(1 + self.names[name]),
            float(latest[0][1] == at),
            float(latest[1][1] == at),
            float(_head(latest[0][1]) == _head(at)),
            float(latest[0][0] == name),
        ]


def _head(at: str) -> str:
    """The array or the node of a place."""
    return at.partition(":")[0]


def place_rows(program: Program, some: Sequence[MoveCandidate], history: History) -> Row:
    """The features of candidates of one program [candidates, SIZE]."""
    rows: list[list[float]] = []
    known: dict[int, tuple[Site, str, list[float], float]] = {}
    """Sites by identity, which candidates with other parameters share."""
    lanes = _lanes(program)
    for choice in some:
        site = choice.site
        found = known.get(id(site))
        if found is None:
            found = known[id(site)] = (site, identify(site), *_site_row(program, site))
        _, at, row, extent = found
        move = choice.transformation.as_move(at)
        rows.append([*row, *_parameter_row(move.params, extent, lanes), *history.row(move.name, at)])
    return numpy.array(rows, dtype=numpy.float32).reshape(len(rows), SIZE)


def _site_row(program: Program, site: Site) -> tuple[list[float], float]:
    """The features of a site without parameters and history, and its extent."""
    row = [0.0] * _OFFSETS[5]
    nest = program.nest
    match site:
        case Scope():
            row[0], extent = 1.0, site.extent
            _put(row, 1, _scope_row(site))
            _put(row, 3, _access_row(program, site.leaves, site.depth))
        case Leaf():
            row[1], extent = 1.0, site.chain[-1].extent if site.chain else 1
            if site.chain:
                _put(row, 1, _scope_row(site.chain[-1]))
                _put(row, 3, _access_row(program, [site], site.depth - 1))
            _put(row, 2, _leaf_row(site))
        case Array():
            row[2], extent = 1.0, prod(site.shape)
            _put(row, 4, _array_row(nest, site, None))
        case Dimension():
            row[3], extent = 1.0, site.array.shape[site.index]
            _put(row, 4, _array_row(nest, site.array, site.index))
    return row, float(max(1, extent))


def _put(row: list[float], part: int, values: Sequence[float]) -> None:
    assert len(values) == _PARTS[part]
    row[_OFFSETS[part] : _OFFSETS[part] + len(values)] = values


def _scope_row(scope: Scope) -> list[float]:
    height = max((leaf.depth for leaf in scope.leaves), default=scope.depth + 1) - scope.depth
    parent = scope.parent
    child = next((each for each in scope.children if isinstance(each, Scope)), None)
    mapping = [0.0] * len(_MAPPINGS)
    mapping[_MAPPINGS[scope.mapping]] = 1.0
    return [
        log2(max(1, scope.extent)),
        float(scope.extent & (scope.extent - 1) == 0),
        float(scope.depth),
        float(height),
        float(height == 1),
        log2(1 + len(scope.leaves)),
        log2(1 + len(scope.children)),
        float(bool(scope.guards)),
        float(scope.position == 0),
        log2(1 + sum(prod(leaf.extents[scope.depth :]) for leaf in scope.leaves)),
        0.0 if parent is None else log2(max(1, parent.extent)),
        float(parent is not None and parent.mapping is not Mapping.SEQUENTIAL),
        0.0 if child is None else log2(max(1, child.extent)),
        float(child is not None and child.mapping is not Mapping.SEQUENTIAL),
        *mapping,
    ]


def _leaf_row(leaf: Leaf) -> list[float]:
    name = leaf.function or ""
    return [
        float(leaf.depth),
        float(leaf.accumulate is not None),
        float(not name),
        float("mul" in name),
        float("add" in name or "sub" in name),
        float("div" in name or name.startswith("math.")),
        float(leaf.contracted),
        float(len(leaf.inputs)),
        log2(max(1, leaf.copies)),
    ]


class _Strided(NamedTuple):
    """The access of a statement, with its distance in bytes by the depth of a scope."""

    is_store: bool
    width: int
    slopes: tuple[float, ...]


def _access_row(program: Program, leaves: Sequence[Leaf], depth: int) -> list[float]:
    """Shares of invariant and of contiguous accesses over the scope at a depth, and the mean log stride."""
    table = program.memoised("strides of accesses", lambda: _strided(program.nest))
    row: list[float] = []
    for is_store in (False, True):
        found = [each for leaf in leaves for each in table[leaf] if each.is_store is is_store]
        count = max(1, len(found))
        row += [
            sum(each.slopes[depth] == 0 for each in found) / count,
            sum(each.slopes[depth] == each.width for each in found) / count,
            sum(log2(1 + each.slopes[depth]) for each in found) / count,
        ]
    return row


def _strided(nest: Nest) -> dict[Leaf, list[_Strided]]:
    shapes = {buffer: physical_shape(nest, buffer) for buffer in nest.accesses}

    def of(leaf: Leaf, access: Access) -> _Strided:
        width = byte_width(access.array.dtype)
        slopes = _slopes(physical_index(access, leaf.chain), shapes[access.array.buffer], leaf.depth, width)
        return _Strided(access is leaf.output, width, slopes)

    return {leaf: [of(leaf, access) for access in leaf.accesses] for leaf in nest.leaves}


@lru_cache(maxsize=1 << 14)
def _slopes(index: tuple[Expr, ...], shape: tuple[int, ...], depth: int, width: int) -> tuple[float, ...]:
    """The mean distance in bytes between two iterations of each scope. Cached, because a move changes few accesses."""
    address = linear_address(index, shape)
    return tuple(width * abs(slope(address, at)) for at in range(depth))


def _array_row(nest: Nest, array: Array, dimension: int | None) -> list[float]:
    buffer, shape = array.buffer, array.shape
    memory = [0.0] * len(_MEMORIES)
    memory[_MEMORIES[buffer.memory]] = 1.0
    uses = [leaf.order for leaf, _ in nest.accesses.get(buffer, ())]
    is_whole = dimension is None
    return [
        log2(1 + prod(shape)),
        float(len(shape)),
        float(byte_width(array.dtype)),
        float(array.intent is None),
        log2(1 + len(nest.readers[array.name])),
        log2(1 + len(nest.writers[array.name])),
        float(sum(bool(slots) for slots in buffer.reuse)),
        log2(1 + sum(b - a for a, b in pairwise(uses))),
        0.0 if is_whole else log2(max(1, shape[dimension])),
        0.0 if is_whole else float(len(shape) - 1 - dimension),
        0.0 if is_whole else float(dimension == len(shape) - 1),
        0.0 if is_whole else float(buffer.reuse[dimension]),
        *memory,
    ]


def _lanes(program: Program) -> frozenset[int]:
    """The machine's vector lengths for the types of the program."""
    dtypes = {array.dtype for array in program.nest.arrays.values()}
    return frozenset(n for dtype in dtypes for n in program.machine.vector_lanes(dtype))


def _parameter_row(params: Sequence[tuple[str, Param]], extent: float, lanes: frozenset[int]) -> list[float]:
    if not params:
        return [0.0] * _PARAMETERS
    texts = [0.0] * TEXTS
    sizes = [value for _, value in params if isinstance(value, int)]
    for name, value in params:
        if isinstance(value, str):
            texts[crc32(f"{name}={value}".encode()) % TEXTS] = 1.0
    size = sizes[0] if sizes else 0
    is_size = size > 0
    return [
        1.0,
        log2(size) if is_size else 0.0,
        log2(extent / size) if is_size else 0.0,
        float(is_size and extent % size == 0),
        float(size == extent),
        float(size in lanes),
        float(is_size and extent / size in lanes),
        float(2 <= size <= 8),
        float(len(sizes)),
        *texts,
    ]
