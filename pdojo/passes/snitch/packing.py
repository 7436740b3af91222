"""Packing: the two f32, or four f16, of a register along contiguous loops."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pdojo.dialect.attributes import Mapping
from pdojo.dialect.functions import byte_width, is_float
from pdojo.dialect.rules.lanes import Stride, known_alignment, lane_stride
from pdojo.dialect.rules.streams import WORD
from pdojo.dialect.view.nest import Access, Leaf, Scope, leaves_of
from pdojo.passes.common.builder import PassBuilder
from pdojo.passes.common.loops import indexing, is_copy, peel_rest, sink, straighten, tile
from pdojo.passes.snitch.arrivals import approach_products
from pdojo.passes.snitch.rests import REST, cut, own_dimensions
from pdojo.passes.snitch.turning import turn, writes_along

JOINED = "f32"
"""The type of numbers that one instruction packs after they were loaded one by one."""


def contract(builder: PassBuilder) -> None:
    """Fuse products and sums.

    A packed multiply-add adds to a register, so a packed sum that goes to another place remains two instructions, as
    does one whose own element is a factor.
    """

    def fused() -> Iterator[Leaf]:
        return (leaf for leaf in builder.nest.leaves if _adds_product(builder, leaf) or not _is_packable(builder, leaf))

    _contract(builder, fused)


def contract_scalars(builder: PassBuilder) -> None:
    """Fuse products and sums that were not packed."""

    def scalars() -> Iterator[Leaf]:
        return (leaf for leaf in builder.nest.leaves if not any(s.mapping is Mapping.VECTOR for s in leaf.chain))

    _contract(builder, scalars)


def _contract(builder: PassBuilder, places: Callable[[], Iterator[Leaf]]) -> None:
    """Contract sums, if need be after moving the products that they add directly before them."""
    why = "a fused multiply-add is one instruction"

    def joined(leaf: Leaf) -> bool:
        return approach_products(builder, leaf, why) and builder.attempt("contract", f"%{leaf.id}", why)

    for identifier in [leaf.id for leaf in places()]:
        builder.transact(lambda i=identifier: joined(builder.leaf(i)))
    builder.exhaust(places, "contract", why)


def _adds_product(builder: PassBuilder, leaf: Leaf) -> bool:
    """True if a statement adds to an element that the statement before does not multiply."""
    before = builder.nest.previous_sibling(leaf)
    if leaf.function is None and isinstance(before, Leaf) and before.output.key == leaf.output.key:
        return leaf.accumulate is not None and "arith.mulf" not in (before.function, before.accumulate)
    return leaf.accumulate is not None


def updates(leaf: Leaf) -> bool:
    """True if a statement computes an element from its old value."""
    return leaf.accumulate is not None or any(access.key == leaf.output.key for access in leaf.reads)


def _is_packable(builder: PassBuilder, leaf: Leaf) -> bool:
    """True if a loop around a statement runs along packed results."""
    lanes = builder.lanes(leaf)
    output = leaf.output
    return lanes > 1 and any(
        scope.extent % lanes == 0
        and scope.extent >= 2 * lanes
        and lane_stride(output.index, output.array.shape, scope.depth) is Stride.CONTIGUOUS
        for scope in leaf.chain
    )


def pack(builder: PassBuilder, copies: int) -> None:
    """Pack numbers along every loop that allows it, innermost loops first; single sums get `copies` registers."""
    for identifier in [s.id for s in reversed(builder.nest.scopes)]:
        vectorize(builder, identifier, copies)


def vectorize(builder: PassBuilder, identifier: str, copies: int) -> None:
    """Pack the numbers of one register along a contiguous loop; sums over it get partial sums."""
    scope = builder.find_scope(identifier)
    if scope is None or scope.mapping is not Mapping.SEQUENTIAL or _has_lanes(scope):
        return
    if any(g.uses(scope.depth) for leaf in scope.leaves for g in leaf.guards):
        # Each lane would check the guard by itself.
        return
    lanes = min(builder.lanes(leaf) for leaf in scope.leaves)
    if lanes < 2 or scope.extent < 2 * lanes:
        return
    sums = [leaf for leaf in scope.leaves if not any(e.uses(scope.depth) for e in leaf.output.index)]
    if scope.extent % (lanes * (copies if sums else 1)) and _has_rest(scope, lanes, copies):
        builder.transact(lambda: _packed_with_rest(builder, identifier, lanes, copies))
        return
    if scope.extent % lanes:
        return
    if _fits(scope, gathers=not sums):
        _pack_loop(builder, scope, lanes, copies)
    elif not sums and JOINED in {leaf.output.array.dtype for leaf in scope.leaves} and writes_along(scope):
        builder.transact(lambda: _turned(builder, identifier, lanes))


def _turned(builder: PassBuilder, identifier: str, lanes: int) -> bool:
    """Pack the numbers of a loop along which they were not contiguous; False if that is impossible."""
    turn(builder, identifier)
    return _fits(builder.scope(identifier), gathers=True) and _packed(builder, identifier, lanes)


def _pack_loop(builder: PassBuilder, scope: Scope, lanes: int, copies: int) -> None:
    """Pack the numbers of one register along a loop that whole registers fill."""
    identifier = scope.id
    sums = [leaf for leaf in scope.leaves if not any(e.uses(scope.depth) for e in leaf.output.index)]
    if not sums:
        builder.transact(lambda: _packed(builder, identifier, lanes))
    elif len(scope.children) > 1:
        builder.transact(lambda: _apart(builder, identifier, copies))
    elif scope.children[0] is sums[0] and sums[0].accumulate is not None:
        alone = all(s.extent % copies for s in scope.chain[:-1]) and scope.extent % (copies * lanes) == 0
        parts = copies if alone else 1
        is_plain = sums[0].function is None and sums[0].accumulate == "arith.addf"
        if is_plain and parts == 1 < copies and sums[0].output.array.dtype == JOINED:
            builder.transact(lambda: _add_lanes(builder, identifier, lanes))
            return
        why = f"{lanes * parts} partial sums, {lanes} in a register"
        builder.transact(lambda: partial_sums(builder, identifier, lanes, parts, why))


def _has_rest(scope: Scope, lanes: int, copies: int) -> bool:
    """True if a loop that whole registers do not fill is packed but for its last iterations: a long one by itself."""
    is_alone = all(s.extent == 1 for s in scope.chain[:-1])
    return is_alone and copies > 1 and scope.extent >= 2 * lanes * copies and not scope.guard


def _packed_with_rest(builder: PassBuilder, identifier: str, lanes: int, copies: int) -> bool:
    """Pack the numbers of a loop but for the last ones, which fill no whole register; False if that is refused."""
    size = lanes * copies
    peel_rest(builder, builder.scope(identifier), size, REST)
    rest = builder.nest.next_sibling(builder.scope(identifier))
    assert rest is not None
    for name, dimension in own_dimensions(builder, rest.id):
        builder.transact(lambda name=name, d=dimension: cut(builder, name, d, size, REST))
    vectorize(builder, identifier, copies)
    leaves = [leaf for node in builder.nest.siblings(builder.scope(rest.id)) for leaf in leaves_of(node)]
    return any(s.mapping is Mapping.VECTOR for leaf in leaves for s in leaf.chain)


def _add_lanes(builder: PassBuilder, identifier: str, lanes: int) -> None:
    """Add all numbers of a register to a sum by one instruction."""
    inner = tile(builder, identifier, lanes, f"{lanes} numbers in a register").inner
    builder.make("vectorize", f"%{inner}", f"one instruction adds {lanes} numbers to the sum")


def _apart(builder: PassBuilder, identifier: str, copies: int) -> bool:
    """Pack the statements of a loop separately, because a loop around a sum and other statements gets no partial sums.

    Returns False if some of them cannot be packed.
    """
    _materialize(builder, identifier)
    scope = builder.scope(identifier)
    statements = [child.id for child in scope.children]
    if not all(isinstance(child, Leaf) for child in scope.children):
        return False
    for place in reversed(range(1, len(statements))):
        builder.make("split_scopes", f"%{identifier}", "each statement is packed by itself", after=place)
    for statement in statements:
        parent = builder.leaf(statement).parent
        assert parent is not None
        vectorize(builder, parent.id, copies)
    return all(any(s.mapping is Mapping.VECTOR for s in builder.leaf(statement).chain) for statement in statements)


def _has_lanes(scope: Scope) -> bool:
    return any(s.mapping is Mapping.VECTOR for leaf in scope.leaves for s in leaf.chain)


def _fits(scope: Scope, *, gathers: bool) -> bool:
    """True if some accesses are contiguous along a loop, and none has lanes apart; `gathers`: except reads."""
    found: set[Stride] = set()
    for leaf in scope.leaves:
        for access in leaf.accesses:
            stride = lane_stride(access.index, access.array.shape, scope.depth)
            found.add(stride)
            loaded = gathers and access is not leaf.output and access.array.dtype == JOINED
            if stride not in (Stride.CONTIGUOUS, Stride.BROADCAST) and not (loaded and stride is Stride.STRIDED):
                return False
    return Stride.CONTIGUOUS in found


def _packed(builder: PassBuilder, identifier: str, lanes: int) -> bool:
    why = f"{lanes} numbers in a register"
    _materialize(builder, identifier)
    parts = sink(builder, tile(builder, identifier, lanes, why).inner, why)
    for part in parts:
        builder.make("vectorize", f"%{part}", why)
    scopes = [builder.find_scope(part) for part in parts]
    leaves = [leaf for scope in scopes if scope is not None for leaf in scope.leaves]
    return all(map(_is_aligned, leaves)) and not all(map(_shifts_words, leaves))


def _materialize(builder: PassBuilder, identifier: str) -> None:
    """Give the temporaries of a loop memory for every element, because a slot ties statements together."""
    scope = builder.scope(identifier)
    why = "room for an element for each lane"
    for name in dict.fromkeys(a.array.name for leaf in scope.leaves for a in leaf.accesses):
        buffer = builder.nest.arrays[name].buffer
        if buffer.op is None or not any(buffer.reuse):
            continue
        builder.attempt("set_location", name, why, location="heap")
        for dimension in range(len(buffer.shape)):
            builder.attempt("materialize_dims", f"{name}:{dimension}", why)


def _is_aligned(leaf: Leaf) -> bool:
    """True if a packed statement writes aligned words, and reads such words or numbers that an instruction packs."""
    lanes = leaf.chain[-1]
    return all(
        is_word(access, leaf, lanes) for access in leaf.accesses if _moves(access, lanes) and not _joins(access, leaf)
    )


def _shifts_words(leaf: Leaf) -> bool:
    """True for a copy of contiguous numbers to other places of words, which the core makes without packing."""
    lanes = leaf.chain[-1]
    return is_copy(leaf) and any(
        lane_stride(a.index, a.array.shape, lanes.depth) is Stride.CONTIGUOUS and not is_word(a, leaf, lanes)
        for a in leaf.reads
    )


def _moves(access: Access, lanes: Scope) -> bool:
    return any(e.uses(lanes.depth) for e in access.index)


def _joins(access: Access, leaf: Leaf) -> bool:
    return access is not leaf.output and access.array.dtype == JOINED


def is_word(access: Access, leaf: Leaf, lanes: Scope) -> bool:
    """True if an access of a statement in a vector scope is a whole, aligned word of memory."""
    return (
        byte_width(access.array.dtype) * lanes.extent == WORD
        and lane_stride(access.index, access.array.shape, lanes.depth) is Stride.CONTIGUOUS
        and known_alignment(access, leaf, lanes) % WORD == 0
    )


def is_streamable(access: Access, leaf: Leaf) -> bool:
    """True if a stream can move what a statement accesses: numbers of 8 bytes, or packed numbers that are a word."""
    lanes = leaf.parent
    if lanes is not None and lanes.mapping is Mapping.VECTOR:
        return is_word(access, leaf, lanes)
    return byte_width(access.array.dtype) == WORD and is_float(access.array.dtype)


def lanes_along(builder: PassBuilder, name: str, dimension: int) -> int:
    """Number of lanes of the vectors that index a dimension of an array; 1 if none do."""
    users = dict.fromkeys((*builder.nest.writers[name], *builder.nest.readers[name]))
    return max(
        (
            scope.extent
            for leaf in users
            for access in leaf.accesses
            for scope in leaf.chain[-1:]
            if access.array.name == name
            and scope.mapping is Mapping.VECTOR
            and access.index[dimension].uses(scope.depth)
        ),
        default=1,
    )


def partial_sums(builder: PassBuilder, identifier: str, lanes: int, copies: int, why: str) -> None:
    """Split a sum into partial sums, `copies` registers of `lanes` numbers."""
    scopes, arrays = builder.nest.by_id.keys(), builder.nest.arrays.keys()
    builder.make("split_reduction", f"%{identifier}", why, size=lanes * copies)
    (parts,) = builder.nest.arrays.keys() - arrays
    for loop in indexing(builder, parts):
        if loop not in scopes:
            straighten(builder, loop, lanes, why)
