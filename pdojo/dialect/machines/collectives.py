"""Scopes of a program that all threads of whole warps compute together, by one instruction (`threads` of an intrinsic).

The elements that each thread touches follow from the fragments of the machine description. Whether the nest is what the
instruction computes is not checked here (`pdojo.dialect.rules.tensor`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pdojo.dialect.affine import Expr, const, floordiv, modulo, var
from pdojo.dialect.attributes import Mapping as ScopeMapping
from pdojo.dialect.intrinsic import Intrinsic
from pdojo.dialect.machines.fragment import Fragment
from pdojo.dialect.machines.shared_operand import Atom
from pdojo.dialect.reason import Reason
from pdojo.dialect.view.messages import describe_access
from pdojo.dialect.view.nest import Access, Buffer, Leaf, Nest, Scope
from pdojo.dialect.view.storage import accesses_of, physical_index


@dataclass(frozen=True, eq=False)
class SpreadAccess:
    """An access to an operand of an instruction of a warp: its elements are spread over the threads."""

    access: Access
    leaf: Leaf
    fragment: Fragment
    depths: tuple[int, ...]
    """The scopes that run along the operand's dimensions."""
    writes: bool
    """Whether the instruction writes the operand."""
    warps: int = 1
    """The warps that run the instruction together."""

    @property
    def lane(self) -> Expr:
        """The thread that touches the element of an iteration."""
        return self.fragment.thread_of([var(d) for d in self.depths], self.leaf.extents)

    @property
    def numbers(self) -> tuple[tuple[int, Expr], ...]:
        """The warps and the threads of a warp that run the instruction: how many, and which one has the element.

        Only the threads of the warp if there is one warp.
        """
        each, extents = self.fragment.threads // self.warps, self.leaf.extents
        if self.warps == 1:
            return ((each, self.lane),)
        return (self.warps, floordiv(self.lane, each, extents)), (each, modulo(self.lane, each, extents))


@dataclass(frozen=True, eq=False)
class SharedAccess:
    """An access to an operand that the unit itself reads from shared memory."""

    access: Access
    leaf: Leaf
    atom: Atom
    depths: tuple[int, ...]
    """The scopes that run along the operand's dimensions."""


@dataclass(frozen=True, eq=False)
class Collective:
    """A scope that the threads of a warp compute together."""

    scope: Scope
    intrinsic: Intrinsic
    operands: Mapping[str, SpreadAccess]
    """The operands in registers, keyed by their names in the meaning, in the order of its arguments."""
    shared: Mapping[str, SharedAccess]
    """The operands that the unit itself reads from shared memory, likewise."""
    names: tuple[str, ...]
    """The names of all operands, in the order of the arguments."""


@dataclass(frozen=True, eq=False)
class Held:
    """A buffer in the memory of a warp's threads, with a tile that is spread over the threads."""

    dims: tuple[int, ...]
    """The dimensions of the tile."""
    fragment: Fragment
    warps: int
    """The warps that hold a tile together."""

    def warp(self, chain: Sequence[Scope]) -> tuple[Scope, ...]:
        """The innermost thread scopes of a chain whose iterations are the threads of the warp; empty if none are.

        `8:b 4:w` are 32 threads in groups of four, so that a sum over the `:w` scope adds up four of them. Empty for
        tiles of several warps.
        """
        count, around = 1, [s for s in chain if s.mapping in (ScopeMapping.BLOCK, ScopeMapping.WARP)]
        for first in reversed(range(len(around) if self.warps == 1 else 0)):
            count *= around[first].extent
            if count == self.fragment.threads:
                return tuple(around[first:])
        return ()

    def thread(self, chain: Sequence[Scope]) -> Expr | None:
        """The number of a thread among those that hold a tile; None if the scopes of a chain are not as many."""
        if self.warps == 1:
            warp = self.warp(chain)
            return lane_in(warp) if warp else None
        threads = [s for s in chain if s.mapping in (ScopeMapping.BLOCK, ScopeMapping.WARP)][-2:]
        wanted = (self.warps, self.fragment.threads // self.warps)
        if tuple(s.extent for s in threads) != wanted or threads[-1].mapping is not ScopeMapping.WARP:
            return None
        return lane_in(threads)

    def lane(self, access: Access, leaf: Leaf) -> Expr:
        """The thread that has the element of an access."""
        return self.fragment.thread_of([access.index[d] for d in self.dims], leaf.extents)

    def slot(self, access: Access, leaf: Leaf) -> Expr:
        """The place of an access's element among the elements of its thread."""
        return self.fragment.place_of([access.index[d] for d in self.dims], leaf.extents)


def lane_in(warp: Sequence[Scope]) -> Expr:
    """The number of a thread in its warp, whose threads are the iterations of some scopes."""
    lane = const(0)
    for scope in warp:
        lane = lane * scope.extent + var(scope.depth)
    return lane


@dataclass(frozen=True, eq=False)
class Collectives:
    """The scopes of a program that warps compute together."""

    scopes: Mapping[Scope, Collective] = field(default_factory=dict[Scope, Collective])
    spreads: Mapping[Access, SpreadAccess] = field(default_factory=dict[Access, SpreadAccess])
    """Operands in the registers of threads."""
    shared: Mapping[Access, SharedAccess] = field(default_factory=dict[Access, SharedAccess])
    """Operands that a unit itself reads from shared memory."""

    def of(self, leaf: Leaf) -> Collective | None:
        """The collective scope around a statement; None if one thread runs the statement."""
        return next((self.scopes[s] for s in leaf.chain if s in self.scopes), None) if self.scopes else None

    def warp(self, held: Held | Reason | None, leaf: Leaf, access: Access) -> tuple[Scope, ...]:
        """The scopes whose iterations are the threads of the warp that holds a buffer, at an access to it.

        Empty if no warp holds it, and for operands of instructions.
        """
        return held.warp(leaf.chain) if isinstance(held, Held) and access not in self.spreads else ()

    def threads(self, chain: Sequence[Scope]) -> int:
        """Threads that compute a scope of the chain together; 1 if no scope is collective."""
        found = [self.scopes[s].intrinsic.threads for s in chain if s in self.scopes] if self.scopes else []
        return found[0] if found else 1

    def held(self, nest: Nest, buffer: Buffer) -> Held | Reason | None:
        """The way in which a warp holds a buffer in its threads' memory; None if no instruction of a warp uses it.

        A Reason if no tile can be told from the rest of the buffer, or if there are two kinds of tiles.
        """
        found: Held | None = None
        for leaf, access in accesses_of(nest, buffer) if self.spreads else ():
            spread = self.spreads.get(access)
            if spread is None:
                continue
            held = _held(spread, leaf)
            if isinstance(held, Reason):
                return held
            if found is not None and _place(found) != _place(held):
                return Reason(
                    f"the threads of a warp hold '{buffer.names[0]}' in two ways",
                    f"{describe_access(access)} is distributed otherwise than at the instruction before",
                )
            found = held
        return found


def _place(held: Held) -> tuple[object, ...]:
    return held.dims, held.fragment.places, held.warps


def _held(spread: SpreadAccess, leaf: Leaf) -> Held | Reason:
    access, first = spread.access, min(spread.depths)
    buffer, own = access.array.buffer, set(spread.depths)
    dims: dict[int, int] = {}
    for dimension, index in enumerate(physical_index(access, leaf.chain)):
        if max(index.variables(), default=-1) < first:
            continue
        along = next((d for d in own if index == var(d)), None)
        if along is None or buffer.shape[dimension] != leaf.chain[along].extent or buffer.reuse[dimension]:
            return Reason(
                f"dimension {dimension} of '{buffer.names[0]}', which the threads of a warp hold, must be "
                "indexed by exactly one scope of the instruction's tile",
                f"its index is {index.render('{{{}}}'.format)}",
            )
        dims[along] = dimension
    if dims.keys() != own:
        return Reason(f"'{buffer.names[0]}', which the threads of a warp hold, does not have all elements of a tile")
    return Held(tuple(dims[d] for d in spread.depths), spread.fragment, spread.warps)


def collectives_of(nest: Nest) -> Collectives:
    """The scopes of a program that warps compute together, by the intrinsics of its machine."""
    mapped = [s for s in nest.scopes if s.mapping is ScopeMapping.TENSOR]
    known = {i.name: i for i in nest.intrinsics if i.threads} if mapped else {}
    found = [c for s in mapped if s.intrinsic in known and (c := _collective(s, known[s.intrinsic])) is not None]
    spreads: dict[Access, SpreadAccess] = {}
    shared: dict[Access, SharedAccess] = {}
    for collective in found:
        arrays = {spread.access.array: spread for spread in collective.operands.values()}
        read = {one.access.array: one for one in collective.shared.values()}
        for leaf in collective.scope.leaves:
            for access in leaf.accesses:
                if access.array in arrays:
                    spreads[access] = replace(arrays[access.array], access=access, leaf=leaf)
                elif access.array in read:
                    shared[access] = replace(read[access.array], access=access, leaf=leaf)
    return Collectives({c.scope: c for c in found}, spreads, shared)


def _collective(scope: Scope, intrinsic: Intrinsic) -> Collective | None:
    # The notation's parser, which the meaning needs, takes long to import.
    from pdojo.dialect.machines.pattern import pair, pattern_of, same_form

    pattern = pattern_of(intrinsic)
    if not same_form(pattern.root, scope):
        return None
    operands: dict[str, SpreadAccess] = {}
    shared: dict[str, SharedAccess] = {}
    for one, other in pair(pattern.root, scope):
        if not isinstance(one, Leaf) or not isinstance(other, Leaf):
            continue
        for wanted, access in zip((one.output, *one.inputs), (other.output, *other.inputs), strict=False):
            if not isinstance(wanted, Access) or not isinstance(access, Access):
                continue
            name = wanted.array.name
            depths = tuple(d + scope.depth for e in wanted.index for d in e.variables())
            if name in pattern.shared and name not in shared:
                shared[name] = SharedAccess(access, other, pattern.shared[name], depths)
            elif name in pattern.fragments and name not in operands:
                writes = pattern.writes(wanted.array)
                operands[name] = SpreadAccess(access, other, pattern.fragments[name], depths, writes, intrinsic.warps)
    names = tuple(pattern.operands)
    if operands.keys() | shared.keys() != set(names):
        return None
    ordered = {name: operands[name] for name in names if name in operands}
    return Collective(scope, intrinsic, ordered, shared, names)
