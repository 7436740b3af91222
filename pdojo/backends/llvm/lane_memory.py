"""Loads and stores of vectors: contiguous, reversed, strided, masked."""

from __future__ import annotations

from dataclasses import replace

from xdsl.dialects import llvm
from xdsl.dialects.builtin import VectorType
from xdsl.ir import SSAValue

from pdojo.backends.common.addresses import Lanes, lanes_of
from pdojo.backends.llvm.code import memory_type, suffix
from pdojo.backends.llvm.lane_pieces import in_few_pieces, load_pieces, store_runs
from pdojo.backends.llvm.memory import AccessPlace, Reach, annotate, from_memory, to_memory
from pdojo.backends.llvm.ops import AddressesOp, ExtractElementOp, SelectOp
from pdojo.backends.llvm.vectors import index_lanes, known_lanes, reverse, splat, unknown
from pdojo.dialect.affine import Expr, const
from pdojo.dialect.functions import byte_width, is_float
from pdojo.errors import LoweringError

GATHERS = frozenset({"avx512f", "sve", "v"})
"""Features of processors whose gathers take less time than single loads."""
MASKED_STORES = frozenset({"avx512vl", "sve", "v"})
"""Features of processors whose masked stores take about as long as other stores.

300 rows of 11 elements took 2.0 us with masked stores of AVX, and 1.1 us with stores of parts (AMD EPYC, Zen 3)."""
NARROWING_STORES = frozenset({"avx512f"})
"""Features of processors with masked stores of narrowed vectors.

LLVM 22 stores the wide element if it knows that exactly one lane is active (docs/decisions). So masks of one lane
become scalar stores here, and masks that LLVM may find to be constant are hidden from it."""
NARROWEST_LOAD = 16
"""Bytes of the narrowest load that can be non-temporal; the hint has no effect on narrower ones."""
WIDEST_STORE = 64
"""Bytes of the widest store; longer vectors are stored in several pieces."""


def load_lanes(reach: Reach, place: AccessPlace, depth: int, mask: SSAValue | None) -> SSAValue:
    """The elements of all lanes as a vector; masked lanes are 0, or arbitrary for buffers in the function's frame."""
    code = reach.code
    shape = lanes_of(place.index, depth, code.extents)
    dtype = place.buffer.dtype
    if depth in place.steps:
        _refuse_streams(place, "its lanes are not contiguous")
        reach.prefetch(place, place.index.substitute({depth: const(0)}, code.extents))
        return _gathered(reach, place, shape, depth, mask)
    if shape.uniform:
        return splat(code, reach.load(replace(place, index=shape.base)), code.extents[depth])
    if shape.stride in (1, -1):
        return from_memory(code, _load_contiguous(reach, place, shape, mask), dtype)
    _refuse_streams(place, "its lanes are not contiguous")
    reach.prefetch(place, shape.base if shape.offsets else place.index.substitute({depth: const(0)}, code.extents))
    if place.buffer in reach.framed and mask is None and shape.offsets is not None:
        return from_memory(code, _load_apart(reach, place, shape.base, shape.offsets), dtype)
    if shape.offsets is not None and in_few_pieces(shape.offsets, masked=mask is not None):
        return from_memory(code, load_pieces(reach, place, shape.base, shape.offsets, mask), dtype)
    if mask is None and shape.offsets is not None and GATHERS.isdisjoint(code.features):
        return from_memory(code, _load_apart(reach, place, shape.base, shape.offsets), dtype)
    return _gathered(reach, place, shape, depth, mask)


def _gathered(reach: Reach, place: AccessPlace, shape: Lanes, depth: int, mask: SSAValue | None) -> SSAValue:
    """The elements of all lanes, each at an address of its own."""
    code, dtype = reach.code, place.buffer.dtype
    kind = VectorType(memory_type(dtype), [code.extents[depth]])
    pointers, alignment = _pointers(reach, place, shape, depth)
    name = f"llvm.masked.gather.{suffix(kind)}.v{code.extents[depth]}p0"
    active = _all_lanes(reach, depth) if mask is None else mask
    op = llvm.CallIntrinsicOp(name, [pointers, active, code.zeros(dtype, code.extents[depth])], [kind])
    annotate(op, place, alignment=alignment)
    return from_memory(code, code.emit(op), dtype)


def store_lanes(reach: Reach, place: AccessPlace, value: SSAValue, depth: int, mask: SSAValue | None) -> None:
    """Store the elements of all unmasked lanes; of several lanes with one address, the last one counts."""
    code = reach.code
    shape = lanes_of(place.index, depth, code.extents)
    value = to_memory(code, value, place.buffer.dtype)
    if shape.stride in (1, -1):
        _store_contiguous(reach, place, shape, value, mask)
        return
    _refuse_streams(place, "its lanes are not contiguous")
    if place.buffer in reach.framed and mask is None and shape.offsets is not None:
        _store_apart(reach, place, shape.base, shape.offsets, value)
        return
    pointers, alignment = _pointers(reach, place, shape, depth)
    name = f"llvm.masked.scatter.{suffix(value.type)}.v{code.extents[depth]}p0"
    active = _all_lanes(reach, depth) if mask is None else mask
    op = llvm.CallIntrinsicOp(name, [value, pointers, active], [])
    annotate(op, place, alignment=alignment)
    code.do(op)


def _start(shape: Lanes) -> Expr:
    """The lowest element of contiguous lanes."""
    assert shape.offsets is not None
    return shape.base + min(shape.offsets)


def _load_contiguous(reach: Reach, place: AccessPlace, shape: Lanes, mask: SSAValue | None) -> SSAValue:
    code = reach.code
    assert shape.offsets is not None
    start = _start(shape)
    reach.prefetch(place, start)
    alignment = reach.alignment(place, start)
    pointer = reach.pointer(place, start)
    kind = VectorType(memory_type(place.buffer.dtype), [len(shape.offsets)])
    backwards = shape.stride == -1 and len(shape.offsets) > 1
    mask = reverse(code, mask) if mask is not None and backwards else mask
    if mask is None:
        size = len(shape.offsets) * byte_width(place.buffer.dtype)
        streams = place.streams and size >= NARROWEST_LOAD
        if streams:
            check_streams(reach, place, start, len(shape.offsets))
        op = llvm.LoadOp(pointer, kind, alignment)
        annotate(op, place, nontemporal=streams)
        value = code.emit(op)
    else:
        _refuse_streams(place, "it is masked by a guard")
        rest = code.zeros(place.buffer.dtype, len(shape.offsets))
        if is_whole(reach, place, start, len(shape.offsets)):
            op = llvm.LoadOp(pointer, kind, alignment)
            annotate(op, place)
            value = code.emit(op)
            # The later store drops the results of idle lanes; only functions of integers do not accept any value.
            if not is_float(place.buffer.dtype) and place.buffer.dtype != "i1":
                value = code.emit(SelectOp(mask, value, rest))
        else:
            op = llvm.CallIntrinsicOp(f"llvm.masked.load.{suffix(kind)}.p0", [pointer, mask, rest], [kind])
            annotate(op, place, alignment=alignment)
            value = code.emit(op)
    return reverse(code, value) if backwards else value


def _store_contiguous(reach: Reach, place: AccessPlace, shape: Lanes, value: SSAValue, mask: SSAValue | None) -> None:
    code = reach.code
    assert shape.offsets is not None
    start = _start(shape)
    alignment = reach.alignment(place, start)
    pointer = reach.pointer(place, start)
    active = None if mask is None else known_lanes(mask)
    if shape.stride == -1 and len(shape.offsets) > 1:
        active = None if active is None else active[::-1]
        value = reverse(code, value)
        mask = None if mask is None else reverse(code, mask)
    if mask is not None and is_whole(reach, place, start, len(shape.offsets)):
        if not reach.idle.may_be_written(place.access, place.leaf, code.known):
            old = llvm.LoadOp(pointer, value.type, alignment)
            annotate(old, place)
            value = code.emit(SelectOp(mask, value, code.emit(old)))
        mask = None
    if mask is not None:
        _refuse_streams(place, "it is masked by a guard")
        if active is not None and (MASKED_STORES.isdisjoint(code.features) or sum(active) == 1):
            store_runs(reach, place, start, value, active)
            return
        if active is None and code.features & NARROWING_STORES and place.buffer.dtype not in ("f64", "f32", "i64"):
            mask = unknown(code, mask)
        op = llvm.CallIntrinsicOp(f"llvm.masked.store.{suffix(value.type)}.p0", [value, pointer, mask], [])
        annotate(op, place, alignment=alignment)
        code.do(op)
        return
    if place.streams:
        check_streams(reach, place, start, len(shape.offsets))
        reach.fence = True
    op = llvm.StoreOp(value, pointer, alignment, nontemporal=place.streams)
    annotate(op, place)
    code.do(op)


def is_whole(reach: Reach, place: AccessPlace, start: Expr, count: int) -> bool:
    """Whether masked lanes may be accessed, too: only in the function's own frame, so that it can become registers."""
    low, high = start.bounds(reach.code.extents)
    if place.displacement is not None:
        return False
    return place.buffer in reach.framed and low >= 0 and high + count <= reach.framed_elements(place.buffer)


def _load_apart(reach: Reach, place: AccessPlace, base: Expr, offsets: tuple[int, ...]) -> SSAValue:
    """Load the lanes one by one: an array in the frame can then become registers."""
    code = reach.code
    element = memory_type(place.buffer.dtype)
    vector = code.emit(llvm.UndefOp(VectorType(element, [len(offsets)])))
    for lane, offset in enumerate(offsets):
        index = base + offset
        op = llvm.LoadOp(reach.pointer(place, index), element, reach.alignment(place, index))
        annotate(op, place)
        vector = code.emit(llvm.InsertElementOp(vector, code.emit(op), code.integer(lane, 32)))
    return vector


def _store_apart(reach: Reach, place: AccessPlace, base: Expr, offsets: tuple[int, ...], value: SSAValue) -> None:
    code = reach.code
    for lane, offset in enumerate(offsets):
        index = base + offset
        element = code.emit(ExtractElementOp(value, code.integer(lane, 32)))
        op = llvm.StoreOp(element, reach.pointer(place, index), reach.alignment(place, index))
        annotate(op, place)
        code.do(op)


def _pointers(reach: Reach, place: AccessPlace, shape: Lanes, depth: int) -> tuple[SSAValue, int]:
    """One address per lane, and an alignment common to all."""
    code = reach.code
    element = memory_type(place.buffer.dtype)
    if shape.offsets is None or depth in place.steps:
        offsets = index_lanes(code, place.index, depth)
        if depth in place.steps:
            lanes = code.vector_constant(range(code.extents[depth]), 64)
            apart = code.emit(llvm.MulOp(lanes, splat(code, place.steps[depth], code.extents[depth])))
            offsets = code.emit(llvm.AddOp(offsets, apart))
        addresses = code.emit(AddressesOp(reach.start(place), offsets, element))
        return addresses, byte_width(place.buffer.dtype)
    base = reach.pointer(place, shape.base)
    addresses = code.emit(AddressesOp(base, code.vector_constant(shape.offsets, 64), element))
    return addresses, byte_width(place.buffer.dtype)


def _all_lanes(reach: Reach, depth: int) -> SSAValue:
    return reach.code.vector_constant([-1] * reach.code.extents[depth], 1)


def _refuse_streams(place: AccessPlace, reason: str) -> None:
    if place.streams:
        raise LoweringError(f"{place} cannot bypass the caches: {reason}; remove the hint 'nontemporal'")


def check_streams(reach: Reach, place: AccessPlace, start: Expr, count: int) -> None:
    """Raise LoweringError if a non-temporal vector is not aligned to its own size."""
    needed = min(WIDEST_STORE, count * byte_width(place.buffer.dtype))
    if needed & (needed - 1):
        _refuse_streams(place, f"a vector of {needed} bytes is no power of two")
    known = reach.alignment(place, start)
    if known >= needed:
        return
    base = reach.placement(place.buffer).alignment
    if base < needed:
        cause = f"'{place.access.array.name}' is only known to be aligned to {base}: declare its alignment {needed}"
    else:
        cause = f"the array is aligned to {base}, but the strides of the access are not multiples of {needed} bytes"
    raise LoweringError(
        f"{place} cannot bypass the caches: its vectors of {needed} bytes must be aligned to {needed}, and {cause}"
    )
