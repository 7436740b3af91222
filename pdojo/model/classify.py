"""The kind of an operation, from the definitions of its results; groups of operations depend on it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from itertools import accumulate
from math import prod

from pdojo.build.array import Array
from pdojo.build.graph import Computed, Definition, Operand, Read, Write, expressions, identity, reads, within
from pdojo.build.plan import index_ranges, needed
from pdojo.build.sizes import bounds_of, greatest, is_open, open_extent
from pdojo.dialect.affine import Expr
from pdojo.dialect.lookups import sizes_in
from pdojo.dialect.rules.lanes import linear_address


class Kind(Enum):
    """The kind of an operation."""

    VIEW = "view"
    """It computes nothing."""
    ELEMENTWISE = "elementwise"
    """Each element of a result depends on some elements of the operands, computed without reductions."""
    REDUCTION = "reduction"
    """Rows of elements are reduced, before or after elementwise functions."""
    CONTRACTION = "contraction"
    """Products are summed up."""
    PIECES = "pieces"
    """Parts of arrays, or functions of them, are put side by side: concatenation and padding."""
    OTHER = "other"


def kind_of(results: Sequence[Array]) -> Kind:
    """The kind of an operation with these results."""
    operands = [result.operand for result in results]
    outputs = [read.definition for operand in operands for read in reads(operand)]
    made = [definition for definition in needed(outputs) if not definition.is_input]
    if not made and not any(isinstance(operand, Computed) for operand in operands):
        # Entries of inputs are read where the elements are, so that only some kernels read through them.
        return Kind.ELEMENTWISE if index_ranges(operands) else Kind.VIEW
    kinds = {_kind(definition) for definition in made}
    if not all(_is_aligned(result) for result in results):
        kinds.add(Kind.OTHER)
    if {Kind.PIECES, Kind.REDUCTION} <= kinds:
        kinds.add(Kind.OTHER)
    order = (Kind.CONTRACTION, Kind.OTHER, Kind.REDUCTION, Kind.PIECES)
    return next((kind for kind in order if kind in kinds), Kind.ELEMENTWISE)


def depends_on_sizes(results: Sequence[Array]) -> bool:
    """Whether the shapes or the elements of results depend on sizes."""
    operands = [result.operand for result in results]
    made = needed(read.definition for operand in operands for read in reads(operand))
    writes = [write for each in made for write in each.writes]
    shapes = [extent for each in (*results, *made) for extent in each.shape]
    shown = [each for write in writes for each in expressions(write)]
    shown += [each for operand in operands for each in within(operand)]
    return is_open([*shapes, *(extent for write in writes for extent in write.extents)]) or bool(sizes_in(shown))


def pieces_of(results: Sequence[Array]) -> tuple[tuple[Definition, int], ...]:
    """The inputs that lie side by side in memory in the only result, each in one piece, with their places in elements.

    Empty if the result has other elements.
    """
    if len(results) != 1:
        return ()
    (result,) = results
    read = result.operand
    if not isinstance(read, Read) or read.index != identity(result.shape) or result.shape != read.definition.shape:
        return ()
    whole = read.definition
    found = [_piece(write, whole) for write in whole.writes]
    pieces = sorted((piece for piece in found if piece is not None), key=lambda piece: bounds_of(piece[1]))
    ends = accumulate(prod(source.shape) for source, _ in pieces)
    places = [0, *ends]
    is_whole = len(pieces) == len(found) > 1 and places[-1] == result.size
    return tuple(pieces) if is_whole and [place for _, place in pieces] == places[:-1] else ()


def _piece(write: Write, whole: Definition) -> tuple[Definition, int] | None:
    """The input whose elements a nest copies in their order, and the place of the first one; None for other nests."""
    if not write.is_copy or not isinstance(write.value, Read) or not write.value.definition.is_input:
        return None
    source = write.value.definition
    if is_open((*source.shape, *whole.shape)):
        place = _open_place(write, write.value.index, source.shape, whole.shape)
        return None if place is None else (source, place)
    reading = linear_address(write.value.index, source.shape)
    writing = linear_address(write.target, whole.shape)
    in_order = linear_address(identity(write.extents), write.extents)
    distance = writing - reading
    if reading != in_order or distance.terms or prod(write.extents) != prod(source.shape):
        return None
    return source, distance.constant


def _open_place(write: Write, reading: Sequence[Expr], source: Sequence[int], whole: Sequence[int]) -> int | None:
    """The place of a piece along the first axis of several elements, if shapes depend on sizes; None for others."""
    own = identity(write.extents)
    axis = next((d for d, extent in enumerate(whole) if extent != 1), None)
    if axis is None or tuple(reading) != own or not tuple(source) == write.extents[: len(whole)] == write.extents:
        return None
    start = write.target[axis] - own[axis]
    is_piece = (*own[:axis], *own[axis + 1 :]) == (*write.target[:axis], *write.target[axis + 1 :])
    if not is_piece or start.variables() or tuple(source[axis + 1 :]) != tuple(whole[axis + 1 :]):
        return None
    return open_extent(start) * prod(whole[axis + 1 :])


def longest_row(results: Sequence[Array]) -> int:
    """The largest number of elements that an operation reduces to one, at any sizes."""
    made = needed(read.definition for result in results for read in reads(result.operand))
    rows = [prod(greatest(write.extents[write.outer :])) for each in made for write in each.writes]
    return max(rows, default=1)


def moved(results: Sequence[Array]) -> set[Definition]:
    """The inputs that an operation reads at other indices than it writes."""
    made = needed(read.definition for result in results for read in reads(result.operand))
    found = [read for each in made for write in each.writes for read in write.reads()]
    found += [read for result in results for read in reads(result.operand)]
    return {read.definition for read in found if read.definition.is_input and not _is_broadcast(read.index)}


def read_with_channels_last(results: Sequence[Array]) -> set[Definition]:
    """The inputs [N, C, ...] of which, or of functions of which, an operation reads a copy with channels last."""
    made = needed(read.definition for result in results for read in reads(result.operand))
    copies = [write for each in made if each.keeps_order for write in each.writes]
    return {source for write in copies for source in _sources(write.value, _channels_first(identity(write.extents)))}


def read_by_windows(results: Sequence[Array]) -> set[Definition]:
    """The inputs of whose windows, or those of functions of them, an operation sums up products, each by itself."""
    made = needed(read.definition for result in results for read in reads(result.operand))
    sums = [write for each in made if _kind(each) is Kind.CONTRACTION for write in each.writes]
    found = {read.definition for write in sums for read in write.reads() if write.is_windowed(read.index)}
    return {each for each in needed(found) if each.is_input}


def _channels_first(index: Sequence[Expr]) -> tuple[Expr, ...]:
    return (*index[:1], *index[-1:], *index[1:-1])


def _sources(value: Operand, index: Sequence[Expr]) -> Iterator[Definition]:
    """The inputs that an elementwise function reads at `index`."""
    for read in reads(value):
        source = read.definition
        if read.index != tuple(index):
            continue
        if source.is_input:
            yield source
        elif _kind(source) is Kind.ELEMENTWISE:
            yield from _sources(source.writes[0].value, identity(source.shape))


def _is_aligned(result: Array) -> bool:
    """Whether a result is no view that moves elements."""
    return not isinstance(result.operand, Read) or _is_broadcast(result.operand.index)


def _kind(definition: Definition) -> Kind:
    if len(definition.writes) > 1 and all(_is_piece(write) for write in definition.writes):
        return Kind.PIECES
    if len(definition.writes) != 1 or definition.writes[0].guard:
        return Kind.OTHER
    (write,) = definition.writes
    if write.reduction is not None and isinstance(write.value, Computed) and ".mul" in write.value.function:
        return Kind.CONTRACTION
    if write.reduction is not None and write.reduction.running:
        return Kind.OTHER
    if write.reduction is not None:
        return Kind.REDUCTION if all(_is_broadcast(read.index) for read in reads(write.value)) else Kind.OTHER
    return Kind.ELEMENTWISE if write.target == identity(write.extents) else Kind.OTHER


def _is_piece(write: Write) -> bool:
    """Whether a nest fills a part of an array, or copies one there."""
    return write.reduction is None and write.loop is None and not write.guard and not isinstance(write.value, Computed)


def _is_broadcast(index: Sequence[Expr]) -> bool:
    """Whether an index is variables in their order, with constants between them."""
    variables: list[int] = []
    for expression in index:
        match expression.terms:
            case ():
                continue
            case ((int(variable), 1),) if not expression.constant:
                variables.append(variable)
            case _:
                return False
    return variables == sorted(set(variables))
