"""The list of the library's kernels."""

from __future__ import annotations

from pdojo.kernels import PRESETS, Workload, kernel_names, workload


def list_kernels() -> str:
    """The library kernels, one per line, with their default sizes and element type."""
    rows = {name: Workload(name) for name in kernel_names()} | {name: workload(name) for name in PRESETS}
    width = max(map(len, rows))
    return "".join(f"{name:{width}}  {_defaults(row)}".rstrip() + "\n" for name, row in sorted(rows.items()))


def _defaults(row: Workload) -> str:
    sizes = " ".join(f"{name}={value}" for name, value in row.sizes.items())
    return f"{sizes}  {row.element_type or ''}"
