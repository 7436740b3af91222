"""The audit of a program for a CPU: what the model of costs says against the program that a pass has made.

A pass makes plans; a move of a plan may be refused, or a price may not know an effect. So the product is judged: each
finding names a statement, its part of the estimated work, and what is slow about it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from pdojo.dialect.affine import Expr
from pdojo.dialect.attributes import Mapping, Memory
from pdojo.dialect.functions import byte_width
from pdojo.dialect.rules.lanes import WHOLE, Stride, lane_stride, linear_address
from pdojo.dialect.view.binding import binding_nests
from pdojo.dialect.view.nest import Access, Leaf, Node, Scope, leaves_of
from pdojo.dialect.view.storage import physical_index, physical_shape
from pdojo.passes.common.loops import is_copy
from pdojo.passes.cpu.block_plans import FEW_APART
from pdojo.passes.cpu.cost_model import alone, start_cycles
from pdojo.passes.cpu.narrow import is_narrow
from pdojo.passes.cpu.recurrences import is_running
from pdojo.passes.cpu.threads import saved
from pdojo.passes.kind import Finding
from pdojo.transforms.game import Game

LEAST = 0.05
"""Least part of the estimated work of a finding."""
PAGE = 4096
"""Bytes of a page: elements of other pages need other entries of the translation cache."""
PAGES = 64
"""Pages whose places a core keeps at hand."""
MANY = 8
"""Vectors of a statement below which it does not matter whether it is one."""
_APART = (Stride.STRIDED, Stride.FIXED, Stride.IRREGULAR)


def audit(game: Game) -> list[Finding]:
    """Find what is slow in the present program of a game, the largest part of the work first.

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
        leaves = leaves_of(node)
        found += _serial(game, node, cycles[id(node)], part)
        weights = {leaf.id: _instances(leaf) for leaf in leaves}
        whole = sum(weights.values()) or 1.0
        for leaf in leaves:
            share = part * weights[leaf.id] / whole
            if share >= LEAST:
                found += [*_gathered(game, leaf, share), *_scalar(game, leaf, share), *_pages(game, leaf, share)]
                found += _widened(game, leaf, share)
    return sorted(found, key=lambda each: -each.share)


def slow_part(game: Game, leaves: Sequence[Leaf]) -> float:
    """The part of the sums of products among statements whose operands are gathered, or lie pages apart."""
    sums = [leaf for leaf in leaves if leaf.accumulate is not None]
    slow = [leaf for leaf in sums if any(_gathered(game, leaf, 1.0)) or any(_pages(game, leaf, 1.0))]
    return sum(map(_instances, slow)) / (sum(map(_instances, sums)) or 1.0)


def _instances(leaf: Leaf) -> float:
    """Instructions of a statement in one run of its nest, roughly: vectors and tiles are one each."""
    return prod(s.extent for s in leaf.chain if s.mapping not in (Mapping.VECTOR, Mapping.TENSOR))


def _in_memory(leaf: Leaf) -> Iterator[Access]:
    """The elements that a statement reads from memory at places that loops choose."""
    return (a for a in leaf.reads if a.array.buffer.memory is not Memory.REGISTER and a.index)


def _stride(game: Game, leaf: Leaf, access: Access, scope: Scope) -> Stride:
    """The distance in memory between the elements of neighbouring iterations of a scope."""
    shape = physical_shape(game.program.nest, access.array.buffer)
    return lane_stride(physical_index(access, leaf.chain), shape, scope.depth)


def _address(game: Game, leaf: Leaf, access: Access) -> Expr:
    """The distance in memory from the first element of the array, in elements."""
    shape = physical_shape(game.program.nest, access.array.buffer)
    return linear_address(physical_index(access, leaf.chain), shape)


def _gathered(game: Game, leaf: Leaf, share: float) -> Iterator[Finding]:
    """Operands of vectors whose lanes are apart in memory; not of copies, which backends transpose in registers."""
    lanes = leaf.parent
    if lanes is None or lanes.mapping is not Mapping.VECTOR or is_copy(leaf):
        return
    is_product = leaf.accumulate is not None and len(leaf.reads) > 1
    kind = "gathered factor" if is_product else "gathered operand"
    for access in _in_memory(leaf):
        near = not is_product and 0 < abs(_address(game, leaf, access).coefficient(lanes.depth)) <= FEW_APART
        if _stride(game, leaf, access, lanes) in _APART and not near:
            yield Finding(kind, _place(game, leaf), share, f"lanes of {access.array.name} are apart")


def _scalar(game: Game, leaf: Leaf, share: float) -> Iterator[Finding]:
    """Products outside of vectors, and other statements whose accesses are whole vectors along one of their loops."""
    if any(s.mapping in (Mapping.VECTOR, Mapping.TENSOR) for s in leaf.chain) or not leaf.reads:
        return
    lanes = game.machine.vector_lanes(max((a.array.dtype for a in leaf.accesses), key=byte_width))
    if not lanes or _instances(leaf) < MANY * max(lanes) or _is_recurrent(leaf):
        return
    if leaf.accumulate is not None and len(leaf.reads) > 1:
        yield Finding("scalar statement", _place(game, leaf), share, f"{int(_instances(leaf))} products one by one")
        return
    for scope in leaf.chain:
        whole = all(_stride(game, leaf, access, scope) in WHOLE for access in leaf.accesses)
        if whole and scope.extent >= lanes[0]:
            detail = f"{int(_instances(leaf))} instances one by one, and neighbours along a loop of {scope.extent}"
            yield Finding("scalar statement", _place(game, leaf), share, detail)
            return


def _is_recurrent(leaf: Leaf) -> bool:
    """True if a statement of the same loop waits for the iteration before."""
    return leaf.parent is not None and any(map(is_running, leaf.parent.leaves))


def _widened(game: Game, leaf: Leaf, share: float) -> Iterator[Finding]:
    """Factors that are bound in a wide type, though they are computed from much narrower constants."""
    for access in leaf.reads if leaf.accumulate is not None and len(leaf.reads) > 1 else ():
        if is_narrow(game.program.nest, access.array.name):
            size = prod(access.array.shape) * byte_width(access.array.dtype)
            yield Finding("widened constant", _place(game, leaf), share, f"{access.array.name} has {size} bytes")


def _serial(game: Game, node: Node, cycles: float, share: float, runs: int = 1) -> Iterator[Finding]:
    """Nests, or parts of them, that one thread runs, though threads would save more than starting them costs.

    `cycles` are those of all `runs` of a part.
    """
    machine = game.machine
    if isinstance(node, Leaf) or node.mapping is Mapping.PARALLEL or machine.threads < 2 or share < LEAST:
        return
    if any(s.mapping is Mapping.PARALLEL for s in game.program.nest.scopes if node in s.chain):
        weights = [sum(map(_instances, leaves_of(child))) for child in node.children]
        for child, weight in zip(node.children, weights, strict=True):
            part = weight / sum(weights)
            yield from _serial(game, child, cycles * part, share * part, runs * node.extent)
    elif cycles / runs * saved(machine) >= 2 * start_cycles(machine):
        yield Finding("serial nest", _place(game, node.leaves[0]), share, f"{cycles:.2g} cycles on one thread")


def _pages(game: Game, leaf: Leaf, share: float) -> Iterator[Finding]:
    """Reads of a cache line or less at a time, from one page after the other."""
    moving = [s for s in leaf.chain if s.mapping in (Mapping.SEQUENTIAL, Mapping.PARALLEL)]
    if not moving or is_copy(leaf):
        # The copies that products read pay for themselves.
        return
    machine, inner = game.machine, moving[-1]
    for access in _in_memory(leaf):
        width, address = byte_width(access.array.dtype), _address(game, leaf, access)
        step = abs(address.coefficient(inner.depth)) * width
        each = prod(s.extent for s in leaf.chain[inner.depth + 1 :] if address.uses(s.depth)) * width
        if step >= PAGE and each <= machine.cache_line and inner.extent > PAGES:
            detail = f"{each} bytes of {access.array.name} every {step} bytes, {inner.extent} times"
            yield Finding("pages apart", _place(game, leaf), share, detail)


def _place(game: Game, leaf: Leaf) -> str:
    """The location of a statement."""
    array = leaf.output.array.name
    writers = game.program.nest.writers[array]
    return f"{array}:{writers.index(leaf)}"
