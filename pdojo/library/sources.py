"""Kernels of a specification at any sizes and element types: library kernels, files, and given kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from xdsl.dialects.builtin import ArrayAttr

from pdojo.api.programs import named
from pdojo.dialect.attributes import Numerics, NumericsAttr
from pdojo.dialect.notation import parse_notation, print_notation
from pdojo.dialect.notation.sizes import names_of
from pdojo.dialect.notation.source import Source
from pdojo.dialect.ops import KernelOp
from pdojo.errors import UsageError, did_you_mean
from pdojo.kernels import PRESETS, Workload, kernel_names
from pdojo.kernels.workload import size_text, sizes_in
from pdojo.library.records import Sizes
from pdojo.library.spec import OperatorSpec

_TYPE = "T"
"""The name of the element type in a kernel's text."""


@dataclass(frozen=True)
class SizedKernel:
    """A plain kernel at sizes."""

    kernel: KernelOp
    sizes: Sizes
    """All sizes of the kernel's text, in its order; empty for a kernel with fixed sizes."""
    element: str | None
    """The element type that the text names; None for a text without such a name."""
    source: Workload | str | None = None
    """The kernel at other sizes, for verification (`pdojo.passes.task`)."""

    @property
    def workload(self) -> Workload | None:
        """The workload of a library kernel."""
        return self.source if isinstance(self.source, Workload) else None


@dataclass(frozen=True)
class KernelSource:
    """The kernel of an operator, at any sizes."""

    title: str
    """The kernel's name."""
    declared: Sizes
    """Names of its sizes in order, with the values or ranges of the text."""
    has_type: bool
    """Whether the text names an element type that may be replaced."""
    text: str | None = None
    """The kernel in the notation; None for a library kernel."""
    numerics: tuple[Numerics, ...] | None = None
    """Classes of rounding changes to permit; None for the kernel's own."""

    @staticmethod
    def of(spec: OperatorSpec, folder: Path) -> KernelSource:
        """The kernel that a specification names. Raises UsageError, and the errors of reading a file."""
        if spec.kernel in PRESETS:
            kernel, shape = PRESETS[spec.kernel]
            raise UsageError(f"'{spec.kernel}' is {kernel} at {shape}; write kernel = \"{kernel}\" and these sizes")
        if spec.kernel in kernel_names():
            own = Workload(spec.kernel)
            return KernelSource(spec.kernel, own.sizes, own.element_type is not None, numerics=spec.numerics)
        path = folder / spec.kernel
        try:
            there = path.exists()
        except OSError as error:
            raise UsageError(f"cannot read '{path}': {error.strerror}") from None
        if not there:
            hint = did_you_mean(spec.kernel, kernel_names())
            raise UsageError(f"there is no library kernel and no file '{spec.kernel}'; {hint}")
        found = named(path)
        if not isinstance(found.source, str):
            return given_source(found.kernel, spec.numerics)
        names = names_of(Source(found.source, str(path)))
        values = {name: names.values[name] for name in names.parameters}
        sizes = {name: value for name, value in values.items() if isinstance(value, int)}
        declared = {**sizes, **_open_sizes(found.kernel)}
        return KernelSource(found.kernel.sym_name.data, declared, _TYPE in values, found.source, spec.numerics)

    def sizes(self, shape: str) -> dict[str, int | range]:
        """All sizes for a shape (`64x512`, `1..64x512`, `8x64x56,S=2`). Raises UsageError for a text that is none."""
        if not self.declared:
            raise UsageError(f"'{self.title}' has fixed sizes; leave out '{shape}'")
        return {**self.declared, **sizes_in(shape, self.title, tuple(self.declared))}

    def at(self, sizes: Sizes, dtype: str | None) -> SizedKernel:
        """The plain kernel at sizes. Raises UsageError or NotationError for impossible ones."""
        if dtype is not None and not self.has_type:
            raise UsageError(f"'{self.title}' has the element types that its text says; leave out '{dtype}'")
        # A range of one value is this value.
        sizes = {n: size[0] if isinstance(size, range) and len(size) == 1 else size for n, size in sizes.items()}
        if self.text is None:
            return self._of_library(sizes, dtype)
        values: dict[str, str | int | range] = {**sizes, **({} if dtype is None else {_TYPE: dtype})}
        kernels = {kernel.sym_name.data: kernel for kernel in parse_notation(self.text, self.title, values)}
        kernel = self._prepared(kernels[self.title])
        element = names_of(Source(self.text, self.title), values).values.get(_TYPE)
        follows = dtype is None and not _constants(kernels[self.title])
        return SizedKernel(kernel, sizes, str(element) if self.has_type else None, self.text if follows else None)

    def _of_library(self, sizes: Sizes, dtype: str | None) -> SizedKernel:
        changed = tuple((name, sizes[name]) for name in self.declared if sizes[name] != self.declared[name])
        shape = "x".join(map(size_text, sizes.values()))
        label = f"{self.title}:{shape}" if dtype is None else f"{self.title}:{shape} {dtype}"
        workload = Workload(self.title, changed, dtype, label)
        kernel = workload.instantiate()
        follows = not _constants(kernel)
        return SizedKernel(self._prepared(kernel), sizes, workload.element_type, workload if follows else None)

    def _prepared(self, kernel: KernelOp) -> KernelOp:
        """A copy without constants, which operators compute in each call, and with the permitted classes."""
        found = kernel.clone()
        found.properties.pop("constants", None)
        for buffer in (*found.buffers(), *found.guests()):
            buffer.properties.pop("constant", None)
        if self.numerics is not None:
            found.properties["numerics"] = ArrayAttr(NumericsAttr(each) for each in self.numerics)
        # Parsed again: traces store the identifiers of the program as printed.
        (parsed,) = parse_notation(print_notation(found), self.title)
        return parsed


def given_source(kernel: KernelOp, numerics: Sequence[Numerics] | None = None) -> KernelSource:
    """A kernel without names for its constant sizes, such as those of a model."""
    permitted = None if numerics is None else tuple(numerics)
    return KernelSource(kernel.sym_name.data, _open_sizes(kernel), False, print_notation(kernel), permitted)


def _open_sizes(kernel: KernelOp) -> dict[str, int | range]:
    """The sizes that a kernel leaves to its callers."""
    return {size.name: size.values for size in kernel.known_sizes().values()}


def _constants(kernel: KernelOp) -> bool:
    return bool(kernel.constant_names) or any("constant" in buffer.properties for buffer in kernel.buffers())
