"""The plain kernels of a generated library."""

from __future__ import annotations

from pathlib import Path

from pdojo.dialect.notation import parse_notation
from pdojo.dialect.ops import KernelOp
from pdojo.errors import UsageError
from pdojo.files import read_text
from pdojo.kernels.workload import size_text
from pdojo.library.entries import arrays_of
from pdojo.library.paths import inside
from pdojo.library.records import Entry


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
    found, listed = (
        [f"{a.direction} {a.name} {a.dtype} {list(a.shape)}" for a in each] for each in (arrays_of(plain), entry.arrays)
    )
    if found != listed:
        return f"the kernel has the arrays {', '.join(found)}, and the manifest lists {', '.join(listed)}"
    open_ = {name: size_text(s.values) for name, s in plain.known_sizes().items()}
    sizes = {name: size_text(size) for name, size in entry.sizes.items() if name in open_ or isinstance(size, range)}
    if open_ != sizes:
        return f"the kernel has the sizes {open_}, and the manifest lists {sizes}"
    permitted, said = sorted(n.value for n in plain.permitted), sorted(entry.numerics)
    if permitted != said:
        return f"the kernel has the numerics {' '.join(permitted)}, and the manifest lists {' '.join(said)}"
    return None
