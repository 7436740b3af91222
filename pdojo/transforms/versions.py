"""Versions of a kernel for parts of the ranges of its sizes: `split_range@N{at=32}` and `specialise@N{value=128}`.

Both replace a kernel by several, and list them in a `pdojo.versions`. They are legal by construction: a version is the
kernel itself with narrower ranges, and a call runs the first version whose ranges have its sizes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import count

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from pdojo.dialect.affine import Size
from pdojo.dialect.ops import KernelOp, VersionsOp
from pdojo.dialect.versions import narrowed
from pdojo.errors import IllegalMove, LocationError, did_you_mean
from pdojo.transforms.move import Move

PARAMETERS = {"split_range": "at", "specialise": "value"}
"""The parameter of each move that makes versions, keyed by the move's name."""


def divide(module: ModuleOp, kernel: KernelOp, move: Move) -> VersionsOp:
    """Replace a kernel of a module by versions. Returns the list of versions that callers see.

    Raises LocationError for a size that the kernel lacks, IllegalMove for a number that leaves a version without sizes.
    """
    parts = _parts(move, _size(kernel, move))
    symbols = {each.sym_name.data: each for each in module.walk() if isinstance(each, KernelOp | VersionsOp)}
    name = kernel.sym_name.data
    lists = [each for each in symbols.values() if isinstance(each, VersionsOp) and name in each.names]
    base = lists[0].sym_name.data if lists else name
    # Numbers go on, so that no name is that of an earlier version.
    used = [int(each[len(base) + 1 :]) for each in symbols if re.fullmatch(rf"{base}_[0-9]{{1,9}}", each)]
    fresh = (f"{base}_{number}" for number in count(max(used, default=0) + 1))
    made: list[str] = []
    for part in parts:
        version = narrowed(kernel, {move.at: part})
        version.sym_name = StringAttr(next(fresh))
        made.append(version.sym_name.data)
        Rewriter.insert_op(version, InsertPoint.before(kernel))
    if lists:
        names = lists[0].names
        place = names.index(name)
        listed = VersionsOp(base, [*names[:place], *made, *names[place + 1 :]])
        Rewriter.replace_op(lists[0], listed)
    else:
        listed = VersionsOp(base, made)
        Rewriter.insert_op(listed, InsertPoint.after(kernel))
    Rewriter.erase_op(kernel)
    return listed


@dataclass(frozen=True)
class _VersionsPass(ModulePass):
    size: str
    """Name of the size."""
    kernel: str = ""
    """Symbol of the kernel; may be left out if the module has one kernel."""

    def _divide(self, module: ModuleOp, move: str, value: int) -> None:
        kernels = {k.sym_name.data: k for k in module.walk() if isinstance(k, KernelOp)}
        found = [k for name, k in kernels.items() if self.kernel in ("", name)]
        if len(found) != 1:
            raise LocationError(f"pass '{self.name}' needs kernel=NAME: the module's kernels are {', '.join(kernels)}")
        divide(module, found[0], Move(move, self.size, ((PARAMETERS[move], value),)))


@dataclass(frozen=True)
class SplitRangePass(_VersionsPass):
    """Replace a kernel by a version for the values of a size below `at`, and one for the others."""

    name = "pdojo-split-range"

    at: int = 0
    """The least value of the second version."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite the module. Raises LocationError or IllegalMove as `divide` does."""
        self._divide(op, "split_range", self.at)


@dataclass(frozen=True)
class SpecialisePass(_VersionsPass):
    """Replace a kernel by a version for one value of a size, and one for all values."""

    name = "pdojo-specialise"

    value: int = 0
    """The value of the first version."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite the module. Raises LocationError or IllegalMove as `divide` does."""
        self._divide(op, "specialise", self.value)


def _size(kernel: KernelOp, move: Move) -> Size:
    """The size at which a move is. Raises LocationError."""
    sizes, name = kernel.known_sizes(), kernel.sym_name.data
    if not sizes:
        raise LocationError(f"{move} is about a size, and kernel '{name}' has none: size N in 1..4096")
    if move.at not in sizes:
        raise LocationError(f"{move}: kernel '{name}' has no size '{move.at}'; {did_you_mean(move.at, sizes)}")
    return sizes[move.at]


def _parts(move: Move, size: Size) -> list[range]:
    """The ranges of the versions. Raises IllegalMove."""
    parameter = PARAMETERS[move.name]
    given = dict(move.params)
    value = given.pop(parameter, None)
    if given or not isinstance(value, int):
        raise IllegalMove(f"{move}: write {move.name}@{move.at}{{{parameter}={size.high}}}")
    splits = move.name == "split_range"
    lowest = size.low + size.step * splits
    if not lowest <= value <= size.high or value % size.step or size.low == size.high:
        multiple = f", a multiple of {size.step}" * (size.step > 1)
        known = f"{parameter} is from {lowest} to {size.high}{multiple}"
        reason = f"{size.name} has one value" if size.low == size.high else known
        raise IllegalMove(f"{move} is refused: {reason}")
    if splits:
        return [range(size.low, value, size.step), range(value, size.high + 1, size.step)]
    return [range(value, value + 1), size.values]
