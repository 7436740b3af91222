"""Sites: the scopes, statements, arrays and dimensions that moves are made at, and their locations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from xdsl.ir import Operation

from pdojo.dialect.flow.program import Program
from pdojo.dialect.ops import BufferOp, KernelOp, ScopeOp, StatementOp
from pdojo.dialect.view.binding import binding_nests
from pdojo.dialect.view.locations import find_array, find_dimension, find_node, location_of
from pdojo.dialect.view.nest import Array, Leaf, Scope
from pdojo.dialect.view.nodes import buffers_of
from pdojo.errors import LocationError


@dataclass(frozen=True, slots=True)
class Dimension:
    """A dimension of an array's buffer."""

    array: Array
    index: int


Site: TypeAlias = Scope | Leaf | Array | Dimension
"""The place of a transformation."""

SiteKind: TypeAlias = type[Scope] | type[Leaf] | type[Array] | type[Dimension]
"""A kind of site."""

SiteT = TypeVar("SiteT", bound=Site)


def locate(program: Program, site: Site) -> str:
    """The location of a site, for people."""
    return location_of(program.nest, site) if isinstance(site, Scope | Leaf) else identify(site)


def identify(site: Site) -> str:
    """The location of a site for replay: the name of an array, the identifier of a node."""
    match site:
        case Array():
            return site.name
        case Dimension():
            return f"{site.array.name}:{site.index}"
        case _:
            return f"%{site.id}"


def resolve_site(program: Program, wanted: SiteKind | tuple[SiteKind, ...], at: str) -> Site:
    """The site at a location. Raises LocationError for a site of another kind."""
    if wanted is Array:
        return find_array(program.nest, at)
    if wanted is Dimension:
        return Dimension(*find_dimension(program.nest, at))
    node = find_node(program.nest, at)
    if wanted is Scope and not isinstance(node, Scope):
        raise LocationError(f"location '{at}' is an op; name one of the scopes around it, for example {at}:0")
    if wanted is Leaf and not isinstance(node, Leaf):
        raise LocationError(f"location '{at}' is a scope; name an op by its output, for example {at.split(':')[0]}")
    return node


def is_near_binding(program: Program, site: Site) -> bool:
    """Whether a move at a site may mix the nests that write constants with others.

    True for top-level nodes that are such nests or stand beside one, for statements in such nests, for statements that
    read constants, and for the arrays that such nests use. Moves on inner scopes stay inside one nest.
    """
    binding = program.memoised("binding nests", lambda: binding_nests(program.nest))
    if not binding:
        return False
    if isinstance(site, Array | Dimension):
        buffer = site.buffer if isinstance(site, Array) else site.array.buffer
        return any(buffer in buffers_of(root) for root in binding)
    nest = program.nest
    beside = (nest.previous_sibling(site), nest.next_sibling(site)) if site.parent is None else ()
    if any(node in binding for node in (site, *beside)):
        return True
    if not isinstance(site, Leaf):
        return False
    return any(s in binding for s in site.chain) or any(access.array.buffer.constant for access in site.reads)


def kernel_of(op: Operation) -> KernelOp | None:
    """The kernel around an operation that may be a site; None for other operations."""
    if not isinstance(op, ScopeOp | StatementOp | BufferOp):
        return None
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, KernelOp):
        parent = parent.parent_op()
    return parent


def sites_at(program: Program, wanted: SiteKind | tuple[SiteKind, ...], op: Operation) -> Iterator[Site]:
    """The sites of some kinds that an operation is."""
    kinds = wanted if isinstance(wanted, tuple) else (wanted,)
    nest = program.nest
    if isinstance(op, BufferOp):
        for array in nest.arrays.values():
            if array.value in op.arrays:
                if Array in kinds:
                    yield array
                if Dimension in kinds:
                    yield from (Dimension(array, d) for d in range(len(array.shape)))
        return
    for node in (*nest.scopes, *nest.leaves):
        if node.op is op and isinstance(node, kinds):
            yield node
