"""Compiled kernels as Python callables on NumPy arrays, PyTorch tensors and DLPack objects."""

from __future__ import annotations

import ctypes
import mmap
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from pdojo.backends.calling.arguments import CallArguments, Outputs
from pdojo.backends.calling.arrays import (
    AnyArray,
    Parameter,
    aligned_empty,
    check_overlap,
    empty_for,
    parameters_of,
)
from pdojo.backends.calling.quick import QuickCalls
from pdojo.backends.calling.strided import strides_in
from pdojo.backends.common.binding import split_kernel
from pdojo.backends.llvm.index_checks import IndexChecks
from pdojo.backends.llvm.openmp import start_threads
from pdojo.dialect.affine import Size
from pdojo.dialect.lookups import sizes_in
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.sizes import solve_sizes
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


@dataclass(frozen=True)
class Constants:
    """The computation of a kernel's constant temporaries, and the interface of the code that reads them."""

    binding: LoadedKernel
    """The kernel that computes the constants from the constant inputs."""
    arguments: tuple[Parameter, ...]
    """The arguments of the code that runs in every call: interface arrays and constants."""

    def computed(self, given: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """New arrays with the constants for some constant inputs, keyed by name."""
        # A kernel for given sizes may have arrays of other shapes in the same memory.
        arrays = {
            p.name: empty_for(p) if p.written else given[p.name].reshape(p.shape) for p in self.binding.parameters
        }
        self.binding(**arrays)
        return {p.name: arrays[p.name] for p in self.binding.parameters if p.written}


class Workspace(NamedTuple):
    """Scratch memory of a call."""

    memory: NDArray[np.uint8]
    address: int

    @staticmethod
    def of(size: int, *, is_sparse: bool = False) -> Workspace:
        """New memory of `size` bytes. Raises UsageError if there is not enough; if it is sparse, only addresses count.

        Memory is sparse if calls touch a part of it, as at sizes below the greatest.
        """
        try:
            memory = aligned_empty((size,), np.dtype(np.uint8))
        except UsageError:
            if not is_sparse or sys.platform != "linux":
                raise
            memory = _reserved(size)
        return Workspace(memory, memory.ctypes.data)


_MAP_NORESERVE = 0x4000
"""The flag of Linux's mmap, on every processor that pdojo runs on; Python's module has it from 3.13 on."""


def _reserved(size: int) -> NDArray[np.uint8]:
    """An array whose pages take memory when they are touched. Raises UsageError if there are no addresses."""
    try:
        memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE)
    except OSError:
        raise UsageError(f"there is no memory for an array of {size} bytes") from None
    return np.frombuffer(memory, np.uint8)


@dataclass(eq=False, repr=False)
class LoadedKernel:
    """A kernel that can be called.

    Call it with arrays in the order of the interface or by name. `out` arrays may be left out: then they are allocated,
    aligned to 64 bytes. The call returns the `out` arrays: tensors if the caller gave tensors, else NumPy arrays.
    Nothing is copied. Several threads may call it at once.

    A kernel with constants (`docs/notation.md`) computes them in every call. `bind` and `bind_constants` compute them
    once, for all calls of their result.
    """

    name: str
    parameters: tuple[Parameter, ...]
    code: LoadedCode
    threads: int
    """Largest number of threads for parallel scopes."""
    constants: Constants | None = None
    """The computation of constant temporaries; None if there are none. `code` is the rest of the kernel."""
    sizes: tuple[Size, ...] = ()
    """The sizes of the code: by the shapes of arrays or by name (`kernel(x, N=5)`), unless they are `given`."""
    given: tuple[int, ...] = ()
    """The values of all sizes, if the kernel is one for these only (`at`)."""
    _workspaces: list[Workspace] = field(default_factory=list["Workspace"])
    """Workspaces that no running call uses."""

    def __post_init__(self) -> None:
        given = sum(p.strides.count(None) for p in self.arguments)
        pointers, numbers = [ctypes.c_void_p] * len(self.arguments), [ctypes.c_int64] * (len(self.sizes) + given)
        kinds = [*pointers, *numbers, ctypes.c_void_p, ctypes.c_int]
        self._function = ctypes.CFUNCTYPE(None, *kinds)(self.code.address)
        source = self.code.source
        self._concurrent = source.parallel and self.threads > 1
        self._workspace_bytes = source.shared_bytes + source.thread_bytes * self.threads
        # Arguments of object code have no extents; those of the interface do.
        known = {p.name: p for p in self.parameters}
        self._check = IndexChecks(self.name, [known.get(p.name, p) for p in self.arguments], self.sizes)

    def __call__(self, /, *arrays: AnyArray, **named: AnyArray) -> Outputs:
        """Run the kernel; raises UsageError, naming the array, if one does not fit."""
        quick = None if named else self._quick
        if quick is not None and (fitting := quick.arrays(arrays)) is not None:
            found, addresses = fitting
            self.run_at(addresses)
            return quick.outputs(found)
        arguments = CallArguments.of(self.name, self.parameters, arrays, named, () if self.given else self.sizes)
        self.run(self._memory(arguments.views), arguments.sizes or None)
        return arguments.outputs

    @cached_property
    def _quick(self) -> QuickCalls | None:
        """The short way of calls; None if arrays need more. Kernels of models are called by address, without it."""
        is_plain = self.constants is None and not self.sizes and QuickCalls.fit(self.parameters)
        return QuickCalls(self.parameters) if is_plain else None

    @property
    def arguments(self) -> tuple[Parameter, ...]:
        """The arguments of the code: the interface, or a part of it and the constants."""
        return self.parameters if self.constants is None else self.constants.arguments

    def _memory(self, views: Sequence[NDArray[Any]]) -> Sequence[NDArray[Any]]:
        """The arrays for the code, from those of the interface; constants are computed."""
        if self.constants is None:
            return views
        given = {p.name: array for p, array in zip(self.parameters, views, strict=True)}
        known = {**given, **self.constants.computed(given)}
        return [known[p.name] for p in self.arguments]

    def bind_constants(self, /, **named: AnyArray) -> BoundKernel:
        """Bind the constant inputs, by name, and compute the constants once.

        The result takes the other arrays, and has copies of the constant inputs, so that their later changes have no
        effect. Raises UsageError for a kernel without constants, and for an array that is missing or does not fit.

        >>> import numpy as np
        >>> import pdojo
        >>> scale = pdojo.compile('''
        ... kernel scale(x, w) -> (y)
        ... x f32 [4] heap
        ... w f32 [4] heap const
        ... y f32 [4] heap
        ... p f32 [4] heap const
        ...
        ... 4 p[{0}] = exp(w[{0}])
        ... 4 y[{0}] = x[{0}] * p[{0}]
        ... ''')
        >>> bound = scale.bind_constants(w=np.zeros(4, np.float32))
        >>> bound(np.arange(4, dtype=np.float32))
        array([0., 1., 2., 3.], dtype=float32)
        """
        inputs = {p.name for p in self.parameters if p.constant}
        held, sizes = self._bound(named)
        copies = {name: _copied(each) if name in inputs else each for name, each in held.items()}
        return BoundKernel(self, copies, sizes)

    def bound_constants(self, /, **named: AnyArray) -> dict[str, NDArray[Any]]:
        """The constants that calls read, keyed by name: computed ones, and constant inputs as they are, not copied.

        Raises UsageError as `bind_constants` does.
        """
        return self._bound(named)[0]

    def _bound(self, named: Mapping[str, AnyArray]) -> tuple[dict[str, NDArray[Any]], dict[str, int]]:
        """The constants that calls read, keyed by name, and the sizes on which shapes of constant inputs depend."""
        bound = tuple(p for p in self.parameters if p.constant)
        if not bound and self.constants is None:
            raise UsageError(f"kernel '{self.name}' has no constant arrays; they are declared 'const'")
        sizes = () if self.given else sizes_in(extent for p in bound for extent in p.extents)
        arguments = CallArguments.of(self.name, bound, (), named, sizes)
        given = {p.name: array for p, array in zip(bound, arguments.views, strict=True)}
        made = {} if self.constants is None else self.constants.computed(given)
        known = {**given, **made}
        values = zip([size.name for size in sizes], arguments.sizes, strict=True)
        return {p.name: known[p.name] for p in self.arguments if p.name in known}, dict(values)

    def bind(self, /, *arrays: AnyArray, **named: AnyArray) -> Callable[[], None]:
        """Check the arrays once, and compute the constants.

        The returned function runs the kernel on the arrays with almost no overhead. Nothing is copied: the bytes of
        constant inputs must not change as long as it is used.
        """
        given = CallArguments.of(self.name, self.parameters, arrays, named, () if self.given else self.sizes)
        return self.bound(self._memory(given.views), given.sizes or None)

    def at(self, values: Sequence[int], parameters: Sequence[Parameter]) -> LoadedKernel:
        """The kernel for these values of its sizes only; its interface is in the memory of the one that it then has."""
        return replace(self, parameters=tuple(parameters), given=tuple(values), _workspaces=[])

    def bound(self, views: Sequence[NDArray[Any]], sizes: Sequence[int] | None = None) -> Callable[[], None]:
        """A function that runs the code on checked arrays; sizes are by default those of the arrays' shapes."""
        pointers = self._numbers(views, sizes)
        size = self._workspace_bytes
        workspace = self._new_workspace() if size else None
        place = None if workspace is None else workspace.address
        function = self._function
        # Converted once: a call converts each argument otherwise, which takes longer than a small kernel.
        kinds = cast("Sequence[Callable[[object], object]]", function.argtypes)
        arguments = [kind(value) for kind, value in zip(kinds, (*pointers, place, self.threads), strict=True)]

        def run(_keep: object = (views, workspace, self)) -> None:
            function(*arguments)

        def run_together() -> None:
            start_threads(self.threads)
            run()

        return run_together if self._concurrent else run

    def _new_workspace(self) -> Workspace:
        return Workspace.of(self._workspace_bytes, is_sparse=bool(self.sizes))

    def random_inputs(self, seed: int = 0) -> dict[str, NDArray[Any]]:
        """Aligned random arrays for the kernel's inputs, keyed by name, determined by `seed`."""
        from pdojo.backends.measure.arrays import random_arguments

        return random_arguments(self.parameters, seed)

    def __repr__(self) -> str:
        rows = [f"{p.intent.value} {p.name} {p.dtype}[{', '.join(p.extent_texts)}]" for p in self.parameters]
        threads = "1 thread" if self.threads == 1 else f"{self.threads} threads"
        return f"<{type(self).__name__} {self.name}({', '.join(rows)}), {threads}>"

    def run(self, views: Sequence[NDArray[Any]], sizes: Sequence[int] | None = None) -> None:
        """Run the code on checked arrays; sizes are by default those of the arrays' shapes."""
        self.run_at(self._numbers(views, sizes))

    def _numbers(self, views: Sequence[NDArray[Any]], sizes: Sequence[int] | None) -> list[int]:
        """The addresses of arrays, sizes, and the strides that a call gives."""
        strides: list[int] = []
        for parameter, array in zip(self.arguments, views, strict=True):
            if parameter.strides:
                rows = zip(strides_in(array), parameter.strides, strict=False)
                strides += [stride for stride, known in rows if known is None]
        return [*(v.ctypes.data for v in views), *(self._sizes_of(views) if sizes is None else sizes), *strides]

    def _sizes_of(self, views: Sequence[NDArray[Any]]) -> Sequence[int]:
        """The values of the sizes that the shapes of all arrays determine. Raises UsageError."""
        if not self.sizes or self.given:
            return self.given
        extents = {p.name: p.extents for p in self.arguments}
        shapes = {p.name: view.shape for p, view in zip(self.arguments, views, strict=True)}
        return [*solve_sizes(self.name, self.sizes, extents, shapes, {}).values()]

    @property
    def direct(self) -> Any:
        """The function of the code, of the numbers of `run_at`, no workspace, and the number of threads; None if calls
        need a workspace, other threads, or checks of indices."""
        return None if self._check or self._workspace_bytes or self._concurrent else self._function

    @property
    def run_with_indices(self) -> Callable[[Sequence[int]], None]:
        """`run_at`, after a check of the indices among the arrays, which raises IndexOutOfRange."""
        return self._run_with_indices if self._check else self.run_at

    def _run_with_indices(self, pointers: Sequence[int]) -> None:
        self._check(pointers)
        self.run_at(pointers)

    def run_at(self, pointers: Sequence[int]) -> None:
        """Run the code on arrays at these addresses, in the order of `arguments`, then sizes, then given strides.

        Nothing is checked.
        """
        if self._concurrent:
            start_threads(self.threads)
        size = self._workspace_bytes
        if not size:
            self._function(*pointers, None, self.threads)
            return
        try:
            workspace = self._workspaces.pop()
        except IndexError:
            workspace = self._new_workspace()
        if workspace.memory.nbytes < size:
            workspace = self._new_workspace()
        self._function(*pointers, workspace.address, self.threads)
        self._workspaces.append(workspace)


def _copied(array: NDArray[Any]) -> NDArray[Any]:
    """A copy in aligned memory."""
    copy = aligned_empty(array.shape, array.dtype)
    copy[...] = array
    return copy


@dataclass(eq=False, repr=False)
class BoundKernel:
    """A kernel with its constants, which were computed once. `LoadedKernel.bind_constants` makes it.

    Call it like the kernel, without the constant inputs.
    """

    kernel: LoadedKernel
    held: dict[str, NDArray[Any]]
    """The constant inputs and the constants that every call reads, keyed by name."""
    sizes: Mapping[str, int]
    """The sizes on which shapes of constant inputs depend, keyed by name."""

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The interface arrays that are not constant."""
        return tuple(p for p in self.kernel.parameters if not p.constant)

    def __call__(self, /, *arrays: AnyArray, **named: AnyArray) -> Outputs:
        """Run the kernel; raises UsageError, naming the array, if one does not fit."""
        arguments = self._arguments(arrays, named)
        self.kernel.run(self._memory(arguments.views), arguments.sizes)
        return arguments.outputs

    def bind(self, /, *arrays: AnyArray, **named: AnyArray) -> Callable[[], None]:
        """Check the arrays once. The returned function runs the kernel on them with almost no overhead."""
        arguments = self._arguments(arrays, named)
        return self.kernel.bound(self._memory(arguments.views), arguments.sizes)

    def _arguments(self, arrays: Sequence[AnyArray], named: Mapping[str, AnyArray]) -> CallArguments:
        if known := self.sizes.keys() & named.keys():
            raise UsageError(f"kernel '{self.kernel.name}' has its size {min(known)} by its constants")
        given = {**named, **self.sizes}
        return CallArguments.of(self.kernel.name, self.parameters, arrays, given, self.kernel.sizes)

    def _memory(self, views: Sequence[NDArray[Any]]) -> Sequence[NDArray[Any]]:
        known = {**self.held, **{p.name: array for p, array in zip(self.parameters, views, strict=True)}}
        arrays = [known[p.name] for p in self.kernel.arguments]
        check_overlap(arrays, self.kernel.arguments)
        return arrays

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.kernel!r}>"


@dataclass(eq=False, repr=False)
class Executable(LoadedKernel):
    """A kernel compiled in this process, which also shows its code. `pdojo.compile` makes it.

    >>> import pdojo
    >>> pdojo.compile("exp:8x8")
    <Executable exp(in x f32[8, 8], out y f32[8, 8]), 1 thread>
    """

    native: Native = field(kw_only=True)
    """The code. `constants.binding` is the code that computes the constants."""

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

    nest = nest_of(kernel)
    parts = split_kernel(nest)
    native = build(emit(kernel if parts is None else parts.calling, machine), optimize)
    if threads is None:
        threads = _default_threads(machine, parallel=native.source.parallel)
    if threads < 1:
        raise UsageError(f"a kernel runs on at least 1 thread, not {threads}")
    constants = None
    if parts is not None:
        binding = compile(parts.binding, machine, threads=threads, optimize=optimize)
        constants = Constants(binding, parameters_of(nest_of(parts.calling)))
    return Executable(
        kernel.sym_name.data, parameters_of(nest), native, threads, constants, (*nest.sizes.values(),), native=native
    )


def assemble(
    kernel: KernelOp, machine: Machine | None = None, *, optimize: Literal["search", "full"] = "full"
) -> ObjectCode:
    """Compile a kernel for this processor to object code, for `load` in this process or another."""
    from pdojo.backends.llvm import objects
    from pdojo.backends.llvm.build import emit

    def one(part: KernelOp) -> ObjectCode:
        return objects.assemble(emit(part, machine), parameters_of(nest_of(part)), optimize)

    parts = split_kernel(nest_of(kernel))
    return one(kernel) if parts is None else replace(one(parts.calling), binding=one(parts.binding))


def load(kernel: KernelOp, code: ObjectCode, threads: int) -> LoadedKernel:
    """Make object code from `assemble` callable in this process. `kernel` may be any program with the same interface.

    Raises LoweringError if the system lacks a runtime or a permission.
    """
    from pdojo.backends.llvm import objects

    constants, nest = None, nest_of(kernel)
    parameters = parameters_of(nest)
    if code.binding is not None:
        binding = LoadedKernel(code.binding.name, code.binding.arguments, objects.load(code.binding), threads)
        sized = {p.name: (p.extents, p.indices) for p in parameters if p.extents or p.indices}
        rows = [(p, *sized.get(p.name, ((), None))) for p in code.arguments]
        constants = Constants(binding, tuple(replace(p, extents=e, indices=i) for p, e, i in rows))
    return LoadedKernel(nest.name, parameters, objects.load(code), threads, constants, (*nest.sizes.values(),))


def _default_threads(machine: Machine | None, *, parallel: bool) -> int:
    if machine is not None:
        return machine.threads
    if not parallel:
        return 1
    from pdojo.backends.llvm.openmp import runtime

    return runtime().max_threads()
