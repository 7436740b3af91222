"""Workloads: library kernels at given sizes and with a given element type."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pdojo.dialect.notation.sizes import Names, names_of
from pdojo.dialect.notation.source import Source
from pdojo.errors import UsageError, did_you_mean
from pdojo.files import exists

if TYPE_CHECKING:
    from pdojo.dialect.ops import KernelOp

_FOLDER = Path(__file__).parent

PRESETS: dict[str, tuple[str, str]] = {
    "batchnorm_1": ("batchnorm", "8x3x2048x2048"),
    "batchnorm_2": ("batchnorm", "8x64x300x300"),
    "conv_1": ("conv", "8x10x3x512x512x5"),
    "conv_2": ("conv", "8x64x64x56x56x3"),
    "layernorm_1": ("layernorm", "16384x1024"),
    "layernorm_2": ("layernorm", "4096x4096"),
}
"""Names of kernels at sizes, for kernels with two rows in the paper's Table 3."""

TABLE_3 = (
    "add",
    "batchnorm_1",
    "batchnorm_2",
    "bmm",
    "conv_1",
    "conv_2",
    "layernorm_1",
    "layernorm_2",
    "matmul",
    "mul",
    "reducemean",
    "relu",
    "relu_ffn",
    "rmsnorm",
    "softmax",
    "swiglu",
)
"""The rows of the paper's Table 3; a kernel with one row has its sizes by default."""


LONG = frozenset({"conv_winograd"})
"""Kernels of more than fifty statements, which are too long for walks through all their moves."""


def kernel_names(*, long: bool = True) -> tuple[str, ...]:
    """The names of all library kernels, sorted; without `long`, of those that are not in `LONG`."""
    names = sorted(path.stem for path in _FOLDER.glob("*.pdojo"))
    return tuple(name for name in names if long or name not in LONG)


def kernel_path(name: str) -> Path:
    """The notation file of a library kernel. Raises UsageError for an unknown name."""
    if name not in kernel_names():
        raise UsageError(f"unknown kernel '{name}'; {did_you_mean(name, (*kernel_names(), *PRESETS))}")
    return _FOLDER / f"{name}.pdojo"


@dataclass(frozen=True)
class Workload:
    """A library kernel with sizes and an element type."""

    kernel: str
    """The name of its file without the suffix."""
    given: tuple[tuple[str, int | range], ...] = ()
    """The sizes that differ from those in the file, in the file's order; those with a range are known at run time."""
    dtype: str | None = None
    """The element type; None for the type in the file."""
    label: str = ""
    """The name in tables."""

    @property
    def path(self) -> Path:
        """The notation file. Raises UsageError for an unknown kernel."""
        return kernel_path(self.kernel)

    @cached_property
    def names(self) -> Names:
        """The values of all names in the file. Raises UsageError for sizes that the kernel does not have."""
        values: dict[str, float | str | range] = dict(self.given)
        if self.dtype is not None:
            values["T"] = self.dtype
        source = Source(self.path.read_text(encoding="utf-8"), self.path.name)
        names = names_of(source, values)
        if self.dtype is not None and "T" not in names.parameters:
            raise UsageError(f"kernel '{self.kernel}' has the element types that its name says; leave out the type")
        names.check_given()
        return names

    @property
    def sizes(self) -> dict[str, int]:
        """All parameters that are sizes, in the file's order; the greatest value of one known at run time."""
        ranges, found = self.names.ranges, dict[str, int]()
        for name in self.names.parameters:
            value = ranges[name].high if name in ranges else self.names.values[name]
            if isinstance(value, int):
                found[name] = value
        return found

    @property
    def element_type(self) -> str | None:
        """The element type of the interface arrays; None if the file fixes several."""
        found = self.names.values.get("T")
        return found if isinstance(found, str) else None

    def instantiate(self) -> KernelOp:
        """The plain program. Raises UsageError or NotationError for impossible sizes."""
        # Imported here: names and sizes, which tools list, do not need the dialect.
        from pdojo.dialect.notation import parse_notation, print_notation
        from pdojo.kernels.plain import without_copies

        names = self.names
        text = self.path.read_text(encoding="utf-8")
        values = {name: names.values[name] for name in names.parameters}
        plain = {name: value for name, value in values.items() if isinstance(value, int | float | str)}
        (kernel,) = parse_notation(text, self.path.name, {**plain, **dict(self.given)})
        without_copies(kernel)
        # Parse again: traces store the identifiers of the program as printed.
        (kernel,) = parse_notation(print_notation(kernel), self.path.name)
        return kernel

    def to_json(self) -> dict[str, Any]:
        """The workload as plain data that `from_json` reads."""
        given = {name: value if isinstance(value, int) else size_text(value) for name, value in self.given}
        return {"kernel": self.kernel, "given": given, "dtype": self.dtype, "label": self.label}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Workload:
        """The inverse of `to_json`."""
        given = tuple((name, size_of(str(value))) for name, value in data["given"].items())
        return cls(data["kernel"], given, data["dtype"], data["label"])


def workload(text: str, dtype: str | None = None) -> Workload:
    """The workload of `softmax`, `softmax:24576x512`, `conv:8x10x3x512x512x5,S=2`, or a label like `batchnorm_1`.

    Sizes have the order of the kernel's file; trailing sizes may be left out. A range, as in `softmax:1..4096x512`,
    is that of a size known at run time, `8..2048/8` that of one divided by 8. Raises UsageError for any other text.
    """
    name, _, shape = text.partition(":")
    if name in PRESETS and shape:
        kernel, own = PRESETS[name]
        raise UsageError(f"'{name}' is {kernel} at {own}, and '{shape}' are other sizes; write '{kernel}:{shape}'")
    if name in PRESETS:
        name, shape = PRESETS[name]
    own = Workload(name)
    given = sizes_in(shape, name, tuple(own.sizes)) if shape else {}
    ordered = tuple((size, given[size]) for size in own.sizes if size in given and given[size] != own.sizes[size])
    found = Workload(name, ordered, dtype, text if dtype is None else f"{text} {dtype}")
    assert found.names
    return found


def library_workload(argument: str, shape: str | None = None, dtype: str | None = None) -> Workload | None:
    """The library kernel that an argument names, at its sizes; None if it names none, or names a file."""
    name = argument.partition(":")[0]
    if exists(argument) or name not in (*kernel_names(), *PRESETS):
        return None
    return workload(f"{name}:{shape}" if shape else argument, dtype)


_SIZE = r"\d{1,18}(?:\.\.\d{1,18}(?:/[1-9]\d{0,17})?)?"


def size_of(text: str) -> int | range:
    """The size `128`, or the range `1..4096` or `8..2048/8`. Raises UsageError for another text."""
    if not re.fullmatch(_SIZE, text, re.ASCII):
        raise UsageError(f"'{text[:60]}' is neither a size nor a range of sizes, such as 1..4096")
    first, _, rest = text.partition("..")
    last, _, step = rest.partition("/")
    if int(last or 0) % int(step or 1):
        raise UsageError(f"'{text}' ends at {last}, which is no multiple of {step}")
    return range(int(first), int(last) + 1, int(step or 1)) if rest else int(first)


def size_text(size: int | range) -> str:
    """The inverse of `size_of`."""
    if isinstance(size, int):
        return str(size)
    return f"{size.start}..{size[-1] if size else size.stop - 1}" + f"/{size.step}" * (size.step > 1)


def sizes_in(shape: str, kernel: str, declared: Sequence[str]) -> dict[str, int | range]:
    """The sizes in `8x64x56` and `S=2`, separated by commas; `declared` are the names of the kernel's sizes, in order.

    Raises UsageError, which names the kernel, for a text that is no shape of it.
    """
    order = "x".join(declared)
    found: dict[str, int | range] = {}
    for part in shape.split(","):
        named = re.fullmatch(rf"\s*(\w+)\s*=\s*({_SIZE})\s*", part, re.ASCII)
        if named is not None:
            found[named[1]] = size_of(named[2])
            continue
        if not re.fullmatch(rf"\s*{_SIZE}(x{_SIZE})*\s*", part, re.ASCII):
            raise UsageError(f"'{part[:60]}' is no shape; write numbers separated by x: {order}")
        numbers = [size_of(number.strip()) for number in part.split("x")]
        if len(numbers) > len(declared):
            raise UsageError(f"'{part}' has {len(numbers)} sizes; {kernel} has {order}")
        found |= dict(zip(declared, numbers, strict=False))
    for name in found:
        if name not in declared:
            raise UsageError(f"{kernel} has no size '{name}'; it has {order}")
    return found
