"""Targets that write bytes: xDSL's targets write text."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import IO

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.target import Target

from pdojo.errors import UsageError


@dataclass(frozen=True)
class BinaryTarget(Target):
    """A target whose output is bytes. `pdojo-opt` calls `emit_bytes`; other tools call `emit` with a text file, and
    the bytes go to its binary buffer."""

    @abstractmethod
    def emit_bytes(self, ctx: Context, module: ModuleOp) -> bytes:
        """The output as bytes."""

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        """Write to the binary buffer of `output`. Raises UsageError if `output` is a terminal or has no such buffer."""
        below = getattr(output, "buffer", None)
        if below is None or output.isatty():
            raise UsageError(f"target '{self.name}' writes bytes: give it a file (-o FILE)")
        output.flush()
        below.write(self.emit_bytes(ctx, module))
        below.flush()
