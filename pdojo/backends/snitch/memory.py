"""Loads and stores; splitting registers into lanes and joining lanes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from pdojo.backends.snitch.addressing import OffsetAddress
from pdojo.backends.snitch.code import SP, FrameOffset, Register, SnitchCode
from pdojo.backends.snitch.values import RegisterPair, Value
from pdojo.dialect.functions import byte_width

_LOADS = {"f64": "fld", "f32": "flw", "f16": "flh", "i32": "lw", "i16": "lh", "i8": "lb", "i1": "lbu"}
_STORES = {"f64": "fsd", "f32": "fsw", "f16": "fsh", "i32": "sw", "i16": "sh", "i8": "sb", "i1": "sb"}


@dataclass(frozen=True)
class Accesses:
    """Emits loads and stores."""

    code: SnitchCode

    def load(self, place: OffsetAddress, dtype: str) -> Value:
        """Load an element."""
        code, base, offset = self.code, place.base, place.offset
        if dtype == "i64":
            place = self.pair_place(place)
            base, offset = place.base, place.offset
            return RegisterPair(code.x("lw", base, immediate=offset), code.x("lw", base, immediate=offset + 4))
        if dtype == "bf16":
            bits = code.x("lhu", base, immediate=offset)
            return code.f("fmv.w.x", code.x("slli", bits, immediate=16))
        emit = code.f if dtype.startswith("f") else code.x
        return emit(_LOADS[dtype], base, immediate=offset)

    def load_word(self, place: OffsetAddress) -> Register:
        """Load 32 bits into an integer register."""
        return self.code.x("lw", place.base, immediate=place.offset)

    def store(self, value: Value, place: OffsetAddress, dtype: str) -> None:
        """Store an element."""
        code, base, offset = self.code, place.base, place.offset
        if isinstance(value, RegisterPair):
            place = self.pair_place(place)
            code.emit("sw", (), (place.base, value.low), place.offset)
            code.emit("sw", (), (place.base, value.high), place.offset + 4)
            return
        if dtype == "bf16":
            bits = code.x("srli", code.x("fmv.x.w", value), immediate=16)
            code.emit("sh", (), (base, bits), offset)
            return
        is_word = dtype == "f32" and value.kind == "x"
        code.emit("sw" if is_word else _STORES[dtype], (), (base, value), offset)

    def pair_place(self, place: OffsetAddress) -> OffsetAddress:
        """The place in a form whose second word is in reach of loads, too."""
        if place.offset + 4 < 2048:
            return place
        return OffsetAddress(self.code.add_immediate(place.base, place.offset), 0)

    def load_packed(self, place: OffsetAddress) -> Register:
        """Load a whole register."""
        return self.code.f("fld", place.base, immediate=place.offset)

    def store_packed(self, value: Register, place: OffsetAddress) -> None:
        """Store a whole register."""
        self.code.emit("fsd", (), (place.base, value), place.offset)

    def split(self, packed: Register, dtype: str) -> list[Register]:
        """Split a register into its lanes, through the stack."""
        code, slot, width = self.code, self.code.scratch(), byte_width(dtype)
        code.emit("fsd", (), (SP, packed), slot)
        offsets = [FrameOffset(slot.area, slot.offset + k) for k in range(0, 8, width)]
        return [code.f(_LOADS[dtype], SP, immediate=offset) for offset in offsets]

    def join(self, lanes: Sequence[Register], dtype: str, to: Register | None = None) -> Register:
        """Join lanes to a register."""
        code = self.code
        if dtype == "f32":
            return code.f("vfcpka.s.s", *lanes, to=to)
        slot, width = code.scratch(), byte_width(dtype)
        for number, lane in enumerate(lanes):
            code.emit(_STORES[dtype], (), (SP, lane), FrameOffset(slot.area, slot.offset + width * number))
        found = code.f("fld", SP, immediate=slot)
        if to is not None:
            code.move(found, to)
        return found if to is None else to

    def with_lane(self, packed: Register, number: int, lane: Value, dtype: str) -> None:
        """Replace one lane of a register."""
        code, slot, width = self.code, self.code.scratch(), byte_width(dtype)
        code.emit("fsd", (), (SP, packed), slot)
        code.emit(_STORES[dtype], (), (SP, cast(Register, lane)), FrameOffset(slot.area, slot.offset + width * number))
        code.f("fld", SP, immediate=slot, to=packed)
