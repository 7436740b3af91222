"""Vectors in several pieces: lanes picked from a few loads, and active lanes in a few stores."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import llvm
from xdsl.dialects.builtin import VectorType
from xdsl.ir import SSAValue

from pdojo.backends.llvm.code import memory_type, suffix
from pdojo.backends.llvm.memory import AccessPlace, Reach, annotate
from pdojo.backends.llvm.ops import lanes
from pdojo.backends.llvm.vectors import shuffle
from pdojo.dialect.affine import Expr

NEAR = 4
"""Most elements of span per lane for which lanes are picked from whole vectors; beyond it a gather takes less time."""


def _pieces(offsets: tuple[int, ...]) -> list[range]:
    """Ranges of elements that cover all lanes, each as long as the vector or shorter.

    Elements further apart than a vector is long are in different ranges, and no range exceeds the first and the last
    element of its lanes.
    """
    count, found = len(offsets), list[range]()
    runs: list[list[int]] = []
    for offset in sorted(set(offsets)):
        if runs and offset - runs[-1][-1] <= count:
            runs[-1].append(offset)
        else:
            runs.append([offset])
    for run in runs:
        low, end = run[0], run[-1] + 1
        width = min(count, end - low)
        found += [range(start, start + width) for start in (min(at, end - width) for at in range(low, end, width))]
    return found


def in_few_pieces(offsets: tuple[int, ...], *, masked: bool) -> bool:
    """Whether loading pieces takes less time than loading lanes. With a mask, lanes must read distinct elements."""
    if masked and len(set(offsets)) < len(offsets):
        return False
    span = max(offsets) - min(offsets) + 1
    return span <= NEAR * len(offsets) or len(_pieces(offsets)) <= min(NEAR, len(offsets) // 2)


def load_pieces(
    reach: Reach, place: AccessPlace, base: Expr, offsets: tuple[int, ...], mask: SSAValue | None
) -> SSAValue:
    """Lanes picked from the vectors of a few pieces, e.g. two for lanes that come from two rows in turns.

    Elements between two elements of an array belong to the array. With a mask, only elements of unmasked lanes are
    accessed; the other lanes are 0.
    """
    code = reach.code
    count = len(offsets)
    picked: SSAValue | None = None
    have: set[int] = set()
    for piece in _pieces(offsets):
        here = {lane: o - piece.start for lane, o in enumerate(offsets) if lane not in have and o in piece}
        vector = _load_piece(reach, place, base, piece, None if mask is None else (mask, here))
        if picked is None:
            # The shuffle also widens the vector to the number of lanes.
            picked = shuffle(code, vector, vector, [here.get(lane, 0) for lane in range(count)])
        elif len(piece) == count:
            picked = shuffle(code, picked, vector, [count + here[n] if n in here else n for n in range(count)])
        else:
            wide = shuffle(code, vector, vector, [here.get(lane, 0) for lane in range(count)])
            picked = shuffle(code, picked, wide, [count + n if n in here else n for n in range(count)])
        have |= here.keys()
    assert picked is not None
    return picked


def _load_piece(
    reach: Reach, place: AccessPlace, base: Expr, piece: range, masked: tuple[SSAValue, dict[int, int]] | None
) -> SSAValue:
    """The elements of a piece; `masked` is a mask of lanes, and the position of each lane in the piece."""
    code, width = reach.code, len(piece)
    kind = VectorType(memory_type(place.buffer.dtype), [width])
    index = base + piece.start
    pointer, alignment = reach.pointer(place, index), reach.alignment(place, index)
    if masked is None:
        op = llvm.LoadOp(pointer, kind, alignment)
        annotate(op, place)
        return code.emit(op)
    mask, here = masked
    count = lanes(mask)
    assert count is not None
    touched = {position: lane for lane, position in here.items()}
    # The second operand, all zeros, masks elements that no lane reads.
    idle = code.vector_constant([0] * count, 1)
    active = shuffle(code, mask, idle, [touched.get(position, count) for position in range(width)])
    rest = code.zeros(place.buffer.dtype, width)
    op = llvm.CallIntrinsicOp(f"llvm.masked.load.{suffix(kind)}.p0", [pointer, active, rest], [kind])
    annotate(op, place, alignment=alignment)
    return code.emit(op)


def store_runs(reach: Reach, place: AccessPlace, start: Expr, value: SSAValue, active: Sequence[bool]) -> None:
    """Store the active ones of contiguous lanes, in vectors of 1, 2, 4, ... lanes."""
    code, lane = reach.code, 0
    while lane < len(active):
        run = next((n for n, is_active in enumerate(active[lane:]) if not is_active), len(active) - lane)
        if run:
            run = 1 << (run.bit_length() - 1)
            part = shuffle(code, value, value, range(lane, lane + run))
            index = start + lane
            op = llvm.StoreOp(part, reach.pointer(place, index), reach.alignment(place, index))
            annotate(op, place)
            code.do(op)
        lane += max(1, run)
