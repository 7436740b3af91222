"""Tuning for Acme's accumulator machine: fuse and reuse."""

from __future__ import annotations

from pdojo.passes.cpu.kind import naive_pass
from pdojo.passes.kind import MachineKind

ACME = MachineKind(passes={"naive": naive_pass})
