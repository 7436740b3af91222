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
    """A target whose output is no text. `pdojo-opt` asks for the bytes; other tools pass a text file, whose underlying
    binary file is written."""

    @abstractmethod
    def emit_bytes(self, ctx: Context, module: ModuleOp) -> bytes:
        """The output."""

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        """Write below a text file. Raises UsageError for a terminal, and for a text file that is no file."""
        below = getattr(output, "buffer", None)
        if below is None or output.isatty():
            raise UsageError(f"target '{self.name}' writes bytes: give it a file (-o FILE)")
        output.flush()
        below.write(self.emit_bytes(ctx, module))
        below.flush()
