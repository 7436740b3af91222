"""Compiled kernels as Python callables on NumPy arrays, PyTorch tensors and DLPack objects."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from pdojo.backends.calling.arguments import CallArguments, Outputs
from pdojo.backends.calling.arrays import AnyArray, Parameter, aligned_empty, parameters_of
from pdojo.backends.llvm.openmp import start_threads
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.view.build import nest_of
from pdojo.errors import UsageError

if TYPE_CHECKING:
    from pdojo.backends.llvm.build import Native
    from pdojo.backends.llvm.objects import ObjectCode


class Workspaces(Protocol):
    """The workspace that a kernel needs in addition to its arrays."""

    @property
    def shared_bytes(self) -> int:
        """Bytes shared by all threads."""
        ...

    @property
    def thread_bytes(self) -> int:
        """Bytes for each thread."""
        ...

    @property
    def parallel(self) -> bool:
        """Whether part of the kernel runs on several threads."""
        ...


class LoadedCode(Protocol):
    """Machine code in this process."""

    @property
    def address(self) -> int:
        """The address of the kernel's function."""
        ...

    @property
    def source(self) -> Workspaces:
        """The source of the code."""
        ...


@dataclass(eq=False, repr=False)
class LoadedKernel:
    """A kernel that can be called.

    Call it with arrays in the order of the interface or by name. `out` arrays may be left out: then they are allocated,
    aligned to 64 bytes. The call returns the `out` arrays: tensors if the caller gave tensors, else NumPy arrays.
    Nothing is copied. Several threads may call it at once.
    """

    name: str
    parameters: tuple[Parameter, ...]
    code: LoadedCode
    threads: int
    """Largest number of threads for parallel scopes."""
    _workspaces: list[NDArray[Any]] = field(default_factory=list[NDArray[Any]])
    """Workspaces that no running call uses."""

    def __post_init__(self) -> None:
        kinds = [*([ctypes.c_void_p] * (len(self.parameters) + 1)), ctypes.c_int]
        self._function = ctypes.CFUNCTYPE(None, *kinds)(self.code.address)
        self._concurrent = self.code.source.parallel and self.threads > 1

    def __call__(self, *arrays: AnyArray, **named: AnyArray) -> Outputs:
        """Run the kernel; raises UsageError, naming the array, if one does not fit."""
        arguments = CallArguments.of(self.name, self.parameters, arrays, named)
        self.run_at([v.ctypes.data for v in arguments.views])
        return arguments.outputs

    def bind(self, *arrays: AnyArray, **named: AnyArray) -> Callable[[], None]:
        """Check the arrays once. The returned function runs the kernel on them with almost no overhead."""
        views = CallArguments.of(self.name, self.parameters, arrays, named).views
        pointers = [v.ctypes.data for v in views]
        workspace = self._allocate()
        function, threads = self._function, self.threads
        place = None if workspace is None else workspace.ctypes.data

        def run(_keep: object = (views, workspace, self)) -> None:
            function(*pointers, place, threads)

        def run_together() -> None:
            start_threads()
            run()

        return run_together if self._concurrent else run

    def random_inputs(self, seed: int = 0) -> dict[str, NDArray[Any]]:
        """Aligned random arrays for the kernel's inputs, by name, determined by `seed`."""
        from pdojo.backends.measure.arrays import random_arguments

        return random_arguments(self.parameters, seed)

    def __repr__(self) -> str:
        rows = [f"{p.intent.value} {p.name} {p.dtype}[{', '.join(map(str, p.shape))}]" for p in self.parameters]
        threads = "1 thread" if self.threads == 1 else f"{self.threads} threads"
        return f"<{type(self).__name__} {self.name}({', '.join(rows)}), {threads}>"

    def run_at(self, pointers: list[int]) -> None:
        """Run the kernel on arrays at these addresses, in the order of the interface; nothing is checked."""
        if self._concurrent:
            start_threads()
        try:
            workspace = self._workspaces.pop()
        except IndexError:
            workspace = self._allocate()
        if workspace is None:
            self._function(*pointers, None, self.threads)
            return
        if workspace.nbytes < self._workspace_bytes():
            workspace = aligned_empty((self._workspace_bytes(),), np.dtype(np.uint8))
        self._function(*pointers, workspace.ctypes.data, self.threads)
        self._workspaces.append(workspace)

    def _workspace_bytes(self) -> int:
        source = self.code.source
        return source.shared_bytes + source.thread_bytes * self.threads

    def _allocate(self) -> NDArray[Any] | None:
        size = self._workspace_bytes()
        return aligned_empty((size,), np.dtype(np.uint8)) if size else None


@dataclass(eq=False, repr=False)
class Executable(LoadedKernel):
    """A kernel compiled in this process, which also shows its code. `pdojo.compile` makes it.

    >>> import pdojo
    >>> pdojo.compile("exp:8x8")
    <Executable exp(in x f32[8, 8], out y f32[8, 8]), 1 thread>
    """

    native: Native = field(kw_only=True)

    @property
    def llvm_ir(self) -> str:
        """The LLVM IR before passes."""
        return self.native.source.text

    @property
    def optimized_ir(self) -> str:
        """The LLVM IR after the passes."""
        return self.native.optimized_ir

    @property
    def asm(self) -> str:
        """The assembly text of the machine code."""
        return self.native.asm


def compile(
    kernel: KernelOp,
    machine: Machine | None = None,
    *,
    threads: int | None = None,
    optimize: Literal["search", "full"] = "full",
) -> Executable:
    """Compile a kernel for this processor, in process.

    `threads` is the number of threads for parallel scopes; None is the machine's number, or the OpenMP default without
    a machine. `optimize` selects a cheap pass pipeline or LLVM's O3. Raises LoweringError if the machine lacks what the
    kernel uses.
    """
    from pdojo.backends.llvm.build import build, emit

    native = build(emit(kernel, machine), optimize)
    if threads is None:
        threads = _default_threads(machine, parallel=native.source.parallel)
    if threads < 1:
        raise UsageError(f"a kernel runs on at least 1 thread, not {threads}")
    return Executable(kernel.sym_name.data, parameters_of(nest_of(kernel)), native, threads, native=native)


def assemble(
    kernel: KernelOp, machine: Machine | None = None, *, optimize: Literal["search", "full"] = "full"
) -> ObjectCode:
    """Compile a kernel for this processor to object code, for `load` in this process or another."""
    from pdojo.backends.llvm import objects
    from pdojo.backends.llvm.build import emit

    return objects.assemble(emit(kernel, machine), optimize)


def load(kernel: KernelOp, code: ObjectCode, threads: int) -> LoadedKernel:
    """Make object code from `assemble` callable in this process."""
    from pdojo.backends.llvm import objects

    return LoadedKernel(kernel.sym_name.data, parameters_of(nest_of(kernel)), objects.load(code), threads)


def _default_threads(machine: Machine | None, *, parallel: bool) -> int:
    if machine is not None:
        return machine.threads
    if not parallel:
        return 1
    from pdojo.backends.llvm.openmp import runtime

    return runtime().max_threads()
