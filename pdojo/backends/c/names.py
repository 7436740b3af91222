"""Identifiers and types of C for the names and element types of a kernel."""

from __future__ import annotations

from collections.abc import Iterable

from pdojo.dialect.attributes import Intent
from pdojo.dialect.names import variable
from pdojo.dialect.strides import spelled
from pdojo.dialect.view.nest import Buffer


class Identifiers:
    """Identifiers for arrays in one C scope, each used once."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        """`taken` are reserved names."""
        self._taken = set(taken)

    def fresh(self, name: str) -> str:
        """An identifier like `name`: with `_` appended if C, its library or another array has it already."""
        spelled = variable(name)
        while spelled in self._taken:
            spelled += "_"
        self._taken.add(spelled)
        return spelled


def comment(buffer: Buffer, name: str) -> str:
    """A comment line about the array behind a pointer: `x: f32 [4][8], read, aligned to 4 bytes`."""
    extents = "".join(f"[{extent.render(str)}]" for extent in buffer.extents)
    uses = {Intent.IN: "read", Intent.OUT: "written", Intent.INOUT: "read and written"}
    assert buffer.intent is not None
    text = f"{name}: {buffer.dtype} {extents}{' ' * bool(extents)}{uses[buffer.intent]}, aligned to {buffer.alignment}"
    return f"{text}, {spelled(buffer.strides)}" if buffer.strides else text
