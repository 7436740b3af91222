"""The operator library: one notation file per kernel, in its plain form, for any sizes and element types."""

from __future__ import annotations

from pdojo.kernels.workload import PRESETS, TABLE_3, Workload, kernel_names, kernel_path, workload

__all__ = ["PRESETS", "TABLE_3", "Workload", "kernel_names", "kernel_path", "workload"]
