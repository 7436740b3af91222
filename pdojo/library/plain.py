"""The plain kernels of a generated library."""

from __future__ import annotations

from pathlib import Path

from pdojo.backends.calling.arrays import parameters_of
from pdojo.dialect.notation import parse_notation
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.view.build import nest_of
from pdojo.errors import UsageError
from pdojo.files import read_text
from pdojo.library.manifest import Entry
from pdojo.library.paths import inside


def plain_kernel(folder: Path, entry: Entry) -> KernelOp:
    """The plain kernel of an entry. Raises PdojoError for a text that is not one kernel."""
    try:
        text = read_text(inside(folder, entry.kernel))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"it cannot be read: {error}") from None
    kernels = parse_notation(text, entry.kernel)
    if len(kernels) != 1:
        raise UsageError(f"it has {len(kernels)} kernels instead of one")
    return kernels[0]


def interface_fault(entry: Entry, plain: KernelOp) -> str | None:
    """A difference between the entry in the manifest and its plain kernel; None if there is none."""
    found = [f"{p.intent.value} {p.name} {p.dtype} {list(p.shape)}" for p in parameters_of(nest_of(plain))]
    listed = [f"{a.direction} {a.name} {a.dtype} {list(a.shape)}" for a in entry.arrays]
    if found != listed:
        return f"the kernel has the arrays {', '.join(found)}, and the manifest lists {', '.join(listed)}"
    permitted, said = sorted(n.value for n in plain.permitted), sorted(entry.numerics)
    if permitted != said:
        return f"the kernel has the numerics {' '.join(permitted)}, and the manifest lists {' '.join(said)}"
    return None
