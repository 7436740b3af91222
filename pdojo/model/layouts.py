"""Layouts: tensors [N, C, ...] between kernels that have channels last in memory, where convolutions read them so.

Convolutions of narrow numbers read copies of images with channels last, and transpose on both sides if images are laid
out as frontends say. Tensors that elementwise operations, pools and sums connect are laid out alike, with channels last
if more bytes are saved than transposed. Inputs and outputs of the graph stay as they are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import pairwise
from math import prod
from typing import cast

from pdojo import build
from pdojo.build.channels_last import with_channels_first, with_channels_last
from pdojo.build.sizes import bounds_of, greatest
from pdojo.model.classify import Kind
from pdojo.model.graph import Graph, Lowered, Operand, Operation, Tensor, Value


def in_layouts(graph: Graph) -> Graph:
    """The graph with tensors whose channels are last; `Tensor.plain` are those that it had."""
    laid = {tensor: _laid(tensor) for tensor in _chosen(graph)}
    return replace(graph, operations=[_relaid(each, laid) for each in graph.operations]) if laid else graph


def _laid(tensor: Tensor) -> Tensor:
    shape = (*tensor.shape[:1], *tensor.shape[2:], tensor.shape[1])
    return Tensor(tensor.name, tensor.dtype, shape, tensor.sources, plain=tensor)


def _relaid(operation: Operation, laid: Mapping[Tensor, Tensor]) -> Operation:
    """The operation on tensors that have channels last."""

    def new(operand: Operand | None) -> Operand | None:
        return laid.get(operand, operand) if isinstance(operand, Tensor) else operand

    def is_laid(operand: Operand | None) -> bool:
        return isinstance(operand, Tensor) and operand in laid

    operands = [is_laid(each) for each in operation.operands]
    results = [is_laid(each) for each in operation.results]
    if not any((*operands, *results)):
        return operation
    others = {each for each in operation.tensors if is_laid(each) != any(results) and _is_image(each)}
    return replace(
        operation,
        lower=partial(_lower, operation, operands, results),
        operands=tuple(map(new, operation.operands)),
        results=tuple(map(new, operation.results)),
        moved=frozenset(laid.get(each, each) for each in operation.moved | others),
    )


def _lower(
    operation: Operation,
    operands: list[bool],
    results: list[bool],
    given: tuple[Value | None, ...],
    prefix: str,
) -> Lowered:
    """The lowering of an operation of whose operands and results some have channels last."""
    rows = zip(given, operands, strict=True)
    plain = [with_channels_first(cast("build.Array", each)) if is_laid else each for each, is_laid in rows]
    lowered = operation.lower(tuple(plain), prefix)
    found = zip(lowered.results, results, strict=True)
    made = [with_channels_last(cast("build.Array", each)) if is_laid else each for each, is_laid in found]
    return replace(lowered, results=tuple(made))


def _chosen(graph: Graph) -> set[Tensor]:
    """The tensors that have channels last."""
    if not any(operation.images for operation in graph.operations):
        return set()
    free = _free(graph)
    alike = _alike(graph, free)
    gains = {id(group): 0 for group in alike.values()}
    for operation in graph.operations:
        for tensor, gain in _gains(operation):
            if tensor in free:
                gains[id(alike[tensor])] += gain
            elif not _mixes_channels(operation):
                # It is transposed for each group that it meets.
                for group in {id(alike[each]) for each in _images(operation) if each in free}:
                    gains[group] -= _bytes(tensor)
    return {tensor for tensor in free if gains[id(alike[tensor])] > 0}


def _alike(graph: Graph, free: Collection[Tensor]) -> dict[Tensor, set[Tensor]]:
    """The groups of tensors that operations connect that take any order."""
    found = {tensor: {tensor} for tensor in free}
    for operation in graph.operations:
        together = [] if _mixes_channels(operation) else [each for each in _images(operation) if each in free]
        for first, second in pairwise(together):
            if found[first] is not found[second] and first.shape[1] == second.shape[1]:
                found[first] |= found[second]
                found.update(dict.fromkeys(found[second], found[first]))
    return found


def _gains(operation: Operation) -> Iterator[tuple[Tensor, int]]:
    """The bytes that need no transposition if an operand or a result has channels last; negative for more of them."""
    for tensor in _images(operation):
        is_wanted = tensor in operation.images if tensor in operation.tensors else bool(operation.images)
        sign = 0 if not _mixes_channels(operation) else 1 if is_wanted else -1
        yield tensor, sign * _bytes(tensor)


def _mixes_channels(operation: Operation) -> bool:
    """Whether an operation sums up products over channels."""
    return operation.kind is Kind.CONTRACTION and not operation.windows


def _free(graph: Graph) -> set[Tensor]:
    """The tensors that may be in another order: made and read by operations that take any, not through views."""
    fixed = {value.memory for _, value in graph.outputs if isinstance(value, Tensor)}
    free: set[Tensor] = set()
    for operation in graph.operations:
        fixed.update(tensor.base for tensor in operation.made if tensor.base is not None)
        fixed |= operation.indices
        if operation.kind in (Kind.VIEW, Kind.PIECES):
            fixed.update((*operation.tensors, *operation.made))
        free.update(each for each in operation.made if each.base is None and _is_image(each))
    return free - fixed


def _images(operation: Operation) -> list[Tensor]:
    return [each for each in dict.fromkeys((*operation.tensors, *operation.made)) if _is_image(each)]


def _is_image(tensor: Tensor) -> bool:
    """Whether a tensor has channels and more than one place."""
    return len(tensor.shape) > 2 and tensor.shape[1] != 1 and prod(greatest(tensor.shape[2:])) != 1


def _bytes(tensor: Tensor) -> int:
    return bounds_of(tensor.bytes)[1]
