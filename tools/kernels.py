"""The list of the library's kernels."""

from __future__ import annotations

from pdojo.kernels import PRESETS, Workload, kernel_names, workload


def library() -> dict[str, Workload]:
    """The library kernels, keyed by name, with their default sizes and element type."""
    rows = {name: Workload(name) for name in kernel_names()} | {name: workload(name) for name in PRESETS}
    return dict(sorted(rows.items()))


def print_kernels(*, as_json: bool) -> None:
    """Print the library kernels, one per line or as JSON."""
    from pdojo_tools.outputs import write_json, write_output

    rows = library()
    if as_json:
        write_json([{"name": name, "sizes": row.sizes, "dtype": row.element_type} for name, row in rows.items()])
        return
    width = max(map(len, rows))
    write_output("".join(f"{name:{width}}  {_defaults(row)}".rstrip() + "\n" for name, row in rows.items()), None)


def _defaults(row: Workload) -> str:
    sizes = " ".join(f"{name}={value}" for name, value in row.sizes.items())
    return f"{sizes}  {row.element_type or ''}"
