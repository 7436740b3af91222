"""Squares of elements that are copied with rows and columns exchanged: transposed in registers.

An unrolled scope around a vector scope of the same extent copies a square if the source is contiguous along the
unrolled scope and the copy along the lanes. Whole rows are loaded, exchanged and stored, instead of single elements. A
guard of the lanes leaves out rows of the source, and masks the stores.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import llvm
from xdsl.dialects.builtin import VectorType
from xdsl.ir import SSAValue

from pdojo.backends.common.addresses import address_of, lanes_of
from pdojo.backends.llvm.code import FunctionCode, memory_type
from pdojo.backends.llvm.lane_memory import MASKED_STORES, check_streams, is_whole
from pdojo.backends.llvm.memory import AccessPlace, Reach, annotate
from pdojo.backends.llvm.ops import ExtractElementOp
from pdojo.backends.llvm.vectors import known_lanes, shuffle, splat, suffix
from pdojo.dialect.affine import Size, const
from pdojo.dialect.attributes import Mapping as ScopeMapping
from pdojo.dialect.attributes import Memory
from pdojo.dialect.functions import byte_width
from pdojo.dialect.view.nest import Access, Leaf, Scope
from pdojo.dialect.view.storage import has_open_strides

SIZES = frozenset({4, 8, 16})
"""Numbers of rows of squares."""
WIDTHS = frozenset({1, 2, 4, 8})
"""Bytes of elements of squares."""
GROUP = 16
"""Bytes in which processors interleave the elements of two vectors by one instruction."""


def square_copy(scope: Scope) -> Leaf | None:
    """The statement of an unrolled scope that may copy a square; None for other scopes."""
    lanes = scope.children[0]
    if len(scope.children) > 1 or not isinstance(lanes, Scope) or lanes.mapping is not ScopeMapping.VECTOR:
        return None
    (leaf,) = lanes.leaves
    if leaf.function is not None or leaf.accumulate is not None or scope.guard:
        return None
    if any(guard.uses(scope.depth) for guard in lanes.guard):
        return None
    (source,) = leaf.inputs
    if not isinstance(source, Access) or source.hints.data:
        return None
    dtype = source.array.dtype
    fits = scope.extent == lanes.extent and scope.extent in SIZES and byte_width(dtype) in WIDTHS
    buffers = [access.array.buffer for access in (source, leaf.output)]
    in_memory = all(buffer.memory is not Memory.REGISTER for buffer in buffers)
    return leaf if fits and in_memory and buffers[0] is not buffers[1] else None


@dataclass(frozen=True)
class Square:
    """A copy of a square. The unrolled scope and the lanes are open."""

    reach: Reach
    scope: Scope
    source: AccessPlace
    target: AccessPlace

    @staticmethod
    def of(reach: Reach, scope: Scope, leaf: Leaf) -> Square | None:
        """The copy by a statement; None if its rows are not contiguous, or rows of the source cannot be left out."""
        code = reach.code
        row, column = scope.depth, scope.depth + 1
        if not all(map(_is_linear, leaf.accesses)) or (
            leaf.chain[-1].guard and MASKED_STORES.isdisjoint(code.features)
        ):
            return None
        if any(_is_swizzled_in(reach, access, leaf, (row, column)) for access in leaf.accesses):
            return None
        source, target = reach.place(leaf.reads[0], leaf), reach.place(leaf.output, leaf)
        places = source, target
        strides = (
            lanes_of(source.index, row, code.extents).stride,
            lanes_of(target.index, column, code.extents).stride,
        )
        linear = all(lanes_of(p.index, d, code.extents).offsets is not None for p in places for d in (row, column))
        swizzled = any(p.buffer.swizzles and p.displacement is not None for p in places)
        if strides != (1, 1) or not linear or swizzled or row in source.steps or column in target.steps:
            return None
        return Square(reach, scope, source, target)

    def emit(self, mask: SSAValue | None) -> None:
        """Append the code; `mask` are the lanes that run, None for all."""
        code, count, depth = self.reach.code, self.scope.extent, self.scope.depth
        rows = [self._loaded(lane, mask) for lane in range(count)]
        for number, vector in enumerate(transposed(code, rows, GROUP // byte_width(self.source.buffer.dtype))):
            code.known[depth] = number
            self._store(number, vector, mask)
        del code.known[depth]

    def _loaded(self, lane: int, mask: SSAValue | None) -> SSAValue:
        """A row of the source; zeros if its lane does not run."""
        code, count, dtype = self.reach.code, self.scope.extent, self.source.buffer.dtype
        kind = VectorType(memory_type(dtype), [count])
        known = None if mask is None else known_lanes(mask)
        if known is not None and not known[lane]:
            return code.zeros(dtype, count)
        pointer, alignment = _line(self.reach, self.source, {self.scope.depth: 0, self.scope.depth + 1: lane})
        if mask is None or known is not None:
            op = llvm.LoadOp(pointer, kind, alignment)
            annotate(op, self.source)
            return code.emit(op)
        runs = splat(code, code.emit(ExtractElementOp(mask, code.integer(lane, 32))), count)
        load = llvm.CallIntrinsicOp(
            f"llvm.masked.load.{suffix(kind)}.p0", [pointer, runs, code.zeros(dtype, count)], [kind]
        )
        annotate(load, self.source, alignment=alignment)
        return code.emit(load)

    def _store(self, number: int, vector: SSAValue, mask: SSAValue | None) -> None:
        """Store a row of the copy."""
        reach, target, depth = self.reach, self.target, self.scope.depth
        code, count = reach.code, self.scope.extent
        index = target.index.substitute({depth: const(number), depth + 1: const(0)}, code.extents)
        if target.streams:
            check_streams(reach, target, index, count)
            reach.fence = True
        pointer, alignment = _line(reach, target, {depth: number, depth + 1: 0})
        is_idle = is_whole(reach, target, index, count) and reach.idle.may_be_written(
            target.access, target.leaf, code.known
        )
        if mask is None or is_idle:
            op = llvm.StoreOp(vector, pointer, alignment, nontemporal=target.streams)
            annotate(op, target)
        else:
            op = llvm.CallIntrinsicOp(f"llvm.masked.store.{suffix(vector.type)}.p0", [vector, pointer, mask], [])
            annotate(op, target, alignment=alignment)
        code.do(op)


def _is_swizzled_in(reach: Reach, access: Access, leaf: Leaf, depths: Sequence[int]) -> bool:
    """Whether a swizzle depends on the place in the square, whose iterations are emitted at once."""
    exchanges = address_of(access, reach.placement(access.array.buffer).layout, leaf.chain).exchanges
    numbers = [reach.code.bind(number) for each in exchanges for number in (each.left, each.right)]
    return any(number.uses(depth) for number in numbers for depth in depths)


def _is_linear(access: Access) -> bool:
    """Whether an access of an array whose strides are known at run time does not divide."""
    return not has_open_strides(access.array.buffer) or all(
        isinstance(atom, int | Size) for index in access.index for atom, _ in index.terms
    )


def _line(reach: Reach, place: AccessPlace, at: Mapping[int, int]) -> tuple[SSAValue, int]:
    """The address of a row of a square, whose iterations are `at`, and an alignment of it."""
    code = reach.code
    index = place.index.substitute({depth: const(value) for depth, value in at.items()}, code.extents)
    pointer = reach.pointer(place, index)
    for depth, step in place.steps.items():
        if at[depth]:
            distance = code.emit(llvm.MulOp(step, code.integer(at[depth])))
            pointer = code.emit(llvm.GEPOp.from_mixed_indices(pointer, [distance], memory_type(place.buffer.dtype)))
    return pointer, reach.alignment(place, index)


def transposed(code: FunctionCode, rows: Sequence[SSAValue], group: int) -> list[SSAValue]:
    """The columns of a square as vectors; `group` neighbouring elements can be interleaved by one instruction."""
    count = len(rows)
    found = list(rows)
    step = count // 2
    while step >= group:
        # Exchange the off-diagonal blocks of `step` x `step` elements.
        for i in (i for i in range(count) if not i & step):
            first, second = found[i], found[i + step]
            low = [j if not j & step else count + j - step for j in range(count)]
            found[i] = shuffle(code, first, second, low)
            found[i + step] = shuffle(code, first, second, [j + step for j in low])
        step //= 2
    for start in range(0, count, group):
        found[start : start + group] = _interleaved(code, found[start : start + group], count)
    return found


def _interleaved(code: FunctionCode, rows: list[SSAValue], count: int) -> list[SSAValue]:
    """Transpose the blocks of `len(rows)` elements of rows, block by block."""
    group = len(rows)
    bases = range(0, count, group)
    half = group // 2
    low = [k for base in bases for j in range(half) for k in (base + j, count + base + j)]
    for _ in range(half.bit_length()):
        pairs = [(rows[i], rows[i + half]) for i in range(half)]
        rows = [shuffle(code, *pair, [k + shift for k in low]) for pair in pairs for shift in (0, half)]
    return rows
