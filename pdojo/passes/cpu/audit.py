"""The audit of a program for a CPU: what the model of costs says against the program that a pass has made.

A pass makes plans; a move of a plan may be refused, or a price may not know an effect. So the product is judged, not the
plan: each finding names a statement, its part of the estimated work, and what is slow about it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from pdojo.dialect.attributes import Mapping, Memory
from pdojo.dialect.functions import byte_width
from pdojo.dialect.rules.lanes import Stride, lane_stride, linear_address
from pdojo.dialect.view.binding import binding_nests
from pdojo.dialect.view.nest import Access, Leaf, Node, Scope
from pdojo.dialect.view.storage import physical_index, physical_shape
from pdojo.passes.cpu.cost_model import alone, start_cycles
from pdojo.transforms.game import Game
from pdojo.transforms.move import Move

LEAST = 0.05
"""Least part of the estimated work of a finding."""
PAGE = 4096
"""Bytes of a page: elements of other pages need other entries of the translation cache."""
SETS = 8
"""Iterations of a loop whose lines lie pages apart that a core's first cache keeps."""
_APART = (Stride.STRIDED, Stride.FIXED, Stride.IRREGULAR)


@dataclass(frozen=True, slots=True)
class Finding:
    """Something slow in a program."""

    kind: str
    """`gathered factor`, `scalar statement`, `serial nest`, or `pages apart`."""
    statement: str
    """The location of the statement, or of the first statement of the nest."""
    share: float
    """The part of the estimated work of the statement or the nest."""
    detail: str

    def __str__(self) -> str:
        return f"{self.kind} at {self.statement}, {self.share:.0%} of the work: {self.detail}"


def audit(game: Game) -> list[Finding]:
    """What is slow in the present program of a game, the largest part of the work first.

    Work is estimated cycles of all processors, without the nests that run at binding.
    """
    nest, machine = game.program.nest, game.machine
    early = binding_nests(nest)
    nodes = [node for node in nest.children if node not in early]
    cycles = {id(node): max(1.0, alone(node, nest, machine)) for node in nodes}
    total = sum(cycles.values()) or 1.0
    found: list[Finding] = []
    for node in nodes:
        part = cycles[id(node)] / total
        leaves = [node] if isinstance(node, Leaf) else node.leaves
        found += _serial(game, node, cycles[id(node)], part)
        weights = {leaf.id: _instances(leaf) for leaf in leaves}
        whole = sum(weights.values()) or 1.0
        for leaf in leaves:
            share = part * weights[leaf.id] / whole
            if share >= LEAST:
                found += [*_gathered(game, leaf, share), *_scalar(game, leaf, share), *_pages(game, leaf, share)]
    return sorted(found, key=lambda each: -each.share)


def _instances(leaf: Leaf) -> float:
    """Instructions of a statement in one run of its nest, roughly: vectors and tiles are one each."""
    return prod(s.extent for s in leaf.chain if s.mapping not in (Mapping.VECTOR, Mapping.TENSOR))


def _is_constant(leaf: Leaf, access: Access) -> bool:
    return access.array.buffer.memory is Memory.REGISTER or not access.index


def _gathered(game: Game, leaf: Leaf, share: float) -> Iterator[Finding]:
    """Factors of a product whose lanes are apart in memory, though a copy of them could be packed."""
    lanes = leaf.parent
    if lanes is None or lanes.mapping is not Mapping.VECTOR or leaf.accumulate is None or len(leaf.reads) < 2:
        return
    for access in leaf.reads:
        if _is_constant(leaf, access):
            continue
        shape = physical_shape(game.program.nest, access.array.buffer)
        stride = lane_stride(physical_index(access, leaf.chain), shape, lanes.depth)
        if stride in _APART:
            yield Finding("gathered factor", _place(game, leaf), share, f"lanes of {access.array.name} are apart")


def _scalar(game: Game, leaf: Leaf, share: float) -> Iterator[Finding]:
    """Statements outside of vectors, on machines with vectors of their element types."""
    if any(s.mapping in (Mapping.VECTOR, Mapping.TENSOR) for s in leaf.chain):
        return
    widths = [a.array.dtype for a in leaf.accesses]
    lanes = game.machine.vector_lanes(max(widths, key=byte_width))
    if lanes and _instances(leaf) >= 8 * max(lanes):
        yield Finding("scalar statement", _place(game, leaf), share, f"{int(_instances(leaf))} instances one by one")


def _serial(game: Game, node: Node, cycles: float, share: float) -> Iterator[Finding]:
    """Nests that one thread runs, though threads would save more than starting them costs."""
    machine = game.machine
    if isinstance(node, Leaf) or machine.threads < 2 or share < LEAST:
        return
    scopes = [s for s in game.program.nest.scopes if node in s.chain]
    if any(s.mapping is Mapping.PARALLEL for s in scopes):
        return
    if cycles * (1 - 1 / machine.threads) < 2 * start_cycles(machine):
        return
    yield Finding("serial nest", _place(game, node.leaves[0]), share, f"{cycles:.2g} cycles on one thread")


def _pages(game: Game, leaf: Leaf, share: float) -> Iterator[Finding]:
    """Reads of a cache line or less at a time, from one page after the other."""
    moving = [s for s in leaf.chain if s.mapping in (Mapping.SEQUENTIAL, Mapping.PARALLEL)]
    if not moving:
        return
    machine, inner = game.machine, moving[-1]
    for access in leaf.reads:
        if _is_constant(leaf, access):
            continue
        width = byte_width(access.array.dtype)
        shape = physical_shape(game.program.nest, access.array.buffer)
        address = linear_address(physical_index(access, leaf.chain), shape)
        step = abs(address.coefficient(inner.depth)) * width
        each = prod(s.extent for s in leaf.chain[inner.depth + 1 :] if address.uses(s.depth)) * width
        if step >= PAGE and each <= machine.cache_line and inner.extent > SETS * 8:
            detail = f"{each} bytes of {access.array.name} every {step} bytes, {inner.extent} times"
            yield Finding("pages apart", _place(game, leaf), share, detail)


def _place(game: Game, leaf: Leaf) -> str:
    """The location of a statement."""
    array = leaf.output.array.name
    writers = game.program.nest.writers[array]
    return f"{array}:{writers.index(leaf)}"


def can_copy(game: Game, finding: Finding, array: str) -> bool:
    """True if some loop around the statement may be preceded by a copy of the array."""
    name, _, number = finding.statement.partition(":")
    leaf = game.program.nest.writers[name][int(number)]
    return any(game.is_legal(Move("stage_in", f"%{s.id}", (("array", array),))) for s in leaf.chain)
