"""The operator library: one notation file per kernel, in its plain form, for any sizes and element types.

`pdojo.kernels()` lists the names; `pdojo.load` makes a kernel: `softmax` at its file's sizes, `softmax:64x512` at
others.

>>> import pdojo
>>> "softmax" in pdojo.kernels()
True
"""

from __future__ import annotations

import sys
from types import ModuleType

from pdojo.kernels.workload import (
    LONG,
    PRESETS,
    TABLE_3,
    Workload,
    kernel_names,
    kernel_path,
    library_workload,
    workload,
)

__all__ = ["LONG", "PRESETS", "TABLE_3", "Workload", "kernel_names", "kernel_path", "library_workload", "workload"]


class _Library(ModuleType):
    """This module as a callable: `pdojo.kernels` names both the module and the function."""

    def __call__(self) -> tuple[str, ...]:
        """The names of all library kernels, sorted."""
        return kernel_names()


sys.modules[__name__].__class__ = _Library
