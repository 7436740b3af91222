"""Identifiers and types of C for the names and element types of a kernel."""

from __future__ import annotations

from collections.abc import Iterable

from pdojo.dialect.attributes import Intent
from pdojo.dialect.names import variable
from pdojo.dialect.nest import Buffer

C_TYPES = {
    "f64": "double",
    "f32": "float",
    "f16": "uint16_t",
    "bf16": "uint16_t",
    "i64": "int64_t",
    "i32": "int32_t",
    "i16": "int16_t",
    "i8": "int8_t",
    "i1": "uint8_t",
}
"""What an element is in memory: of f16 and bf16 the bits; an i1 is 0 or 1."""


class Names:
    """Identifiers of one C scope for arrays, each used once."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        """`taken` is what nothing here may be called."""
        self._taken = set(taken)

    def fresh(self, name: str) -> str:
        """An identifier like `name`: with `_` behind it where C, its library or something here is called so."""
        spelled = variable(name)
        while spelled in self._taken:
            spelled += "_"
        self._taken.add(spelled)
        return spelled


def parameter(buffer: Buffer, name: str) -> str:
    """The declaration of the pointer to an interface array."""
    const = "const " if buffer.intent is Intent.IN else ""
    return f"{const}{C_TYPES[buffer.dtype]} *restrict {name}"


def comment(buffer: Buffer, name: str) -> str:
    """One line that says what the array behind a pointer is: `x: f32 [4][8], read, aligned to 4 bytes`."""
    extents = "".join(f"[{extent}]" for extent in buffer.shape)
    uses = {Intent.IN: "read", Intent.OUT: "written", Intent.INOUT: "read and written"}
    assert buffer.intent is not None
    return f"{name}: {buffer.dtype} {extents}{' ' * bool(extents)}{uses[buffer.intent]}, aligned to {buffer.alignment}"
