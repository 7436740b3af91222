"""Kernels for given sizes: a kernel with sizes is, for each of their values, a kernel without."""

from __future__ import annotations

from collections.abc import Mapping

from pdojo.dialect.notation.parser import parse_notation
from pdojo.dialect.notation.printer import print_notation
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.view.build import assign_ids, ids_of
from pdojo.errors import UsageError


def bound(kernel: KernelOp, sizes: Mapping[str, int]) -> KernelOp:
    """The kernel for given values of all its sizes; statements and scopes keep their identifiers.

    Raises UsageError for a value that is missing or outside of its range.
    """
    known = kernel.known_sizes()
    if missing := [name for name in known if name not in sizes]:
        raise UsageError(f"kernel '{kernel.sym_name.data}' needs a value for its size '{missing[0]}'")
    if not known:
        return kernel
    (found,) = parse_notation(print_notation(kernel), f"kernel '{kernel.sym_name.data}'", sizes)
    assign_ids(found, ids_of(kernel))
    return found
