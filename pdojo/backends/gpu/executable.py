"""GPU kernels as Python callables, on host arrays, which are copied, and on device arrays."""

from __future__ import annotations

import ctypes
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any, Literal, NoReturn

from numpy.typing import NDArray

from pdojo.backends.calling.arguments import CallArguments, Outputs, matched
from pdojo.backends.calling.arrays import AnyArray, Parameter, empty_for, parameters_at, parameters_of
from pdojo.backends.gpu.device_arrays import addresses_of, facts_of, is_on_device, shapes_of, stream_handle
from pdojo.backends.gpu.driver import (
    MEMORY_ALIGNMENT,
    DeviceMemory,
    DriverError,
    GpuContext,
    OldDriver,
    PreparedLaunch,
    Stream,
    driver_of,
)
from pdojo.backends.gpu.images import Clang, DeviceCompiler, ImageCache, Nvrtc
from pdojo.backends.gpu.program import DeviceProgram, compile_program
from pdojo.backends.gpu.sequence import Launched, launch_sequence, roots_of
from pdojo.backends.gpu.vendors import CUDA_VENDOR, HIP_VENDOR, REFUSED_CODE, Vendor
from pdojo.dialect.attributes import Intent
from pdojo.dialect.indices import check_indices
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.machines.registry import known_machine
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.sizes import solve_sizes
from pdojo.dialect.view.build import nest_of
from pdojo.dialect.view.nest import Nest
from pdojo.errors import LoweringError, UsageError

_KEPT = 64
"""Number of calls whose launches stay prepared."""


class DeviceCall:
    """A call of a kernel on given device addresses; it owns its workspace."""

    def __init__(
        self,
        kernel: GpuKernel,
        addresses: Sequence[int],
        sizes: Mapping[str, int],
        workspace: DeviceMemory | None = None,
    ) -> None:
        """`sizes` has the values of all sizes, in order. With `workspace` None, new memory is allocated."""
        program = kernel.program
        if workspace is None and program.workspace_bytes:
            workspace = kernel.gpu.memory(program.workspace_bytes)
        self.workspace = workspace
        self.addresses, self.sizes = addresses, sizes
        self._gpu = kernel.gpu
        place = ctypes.c_void_p(None if workspace is None else workspace.address)
        self._launches = kernel.launches([*map(ctypes.c_void_p, addresses)], place, sizes)

    def __call__(self, stream: int) -> None:
        """Launch asynchronously in a stream. Raises DriverError."""
        handle, before = ctypes.c_void_p(stream), self._gpu.enter()
        try:
            for launch in self._launches:
                launch(handle)
        finally:
            self._gpu.leave(before)

    @property
    def launches(self) -> int:
        """The number of launches."""
        return len(self._launches)


@dataclass(eq=False, repr=False)
class GpuKernel:
    """A kernel loaded on a device.

    Call it with arrays in the order of the interface or by name, and with sizes by name that no shape gives. Host
    arrays (as for `pdojo.backends.llvm.executable.LoadedKernel`, of any alignment) are copied to the device and back,
    and `out` arrays may be left out. Device arrays (objects with `data_ptr` or `__cuda_array_interface__`) are used in
    place: the call launches in `stream` (None: the default stream), and no array may be left out. It waits only for
    indices that it has to check. The rest is not checked if an earlier call had arrays with the same
    `device_arrays.facts_of`.
    """

    name: str
    parameters: tuple[Parameter, ...]
    program: DeviceProgram
    gpu: GpuContext
    nest: Nest
    _prepared: OrderedDict[tuple[object, ...], DeviceCall] = field(
        default_factory=OrderedDict[tuple[object, ...], DeviceCall]
    )
    """The latest distinct calls, by stream and each array's `facts_of`."""
    _workspaces: dict[int, DeviceMemory] = field(default_factory=dict[int, DeviceMemory])
    """One workspace per stream."""

    def __post_init__(self) -> None:
        module = self.gpu.module(self.program.image.data)
        self.functions = [module.function(e.name, e.shared_bytes) for e in self.program.entries]
        self._names = [p.name for p in self.parameters]
        self._sizes = (*self.nest.sizes.values(),)
        self._extents = {p.name: p.extents for p in self.parameters}
        self.checked = [k for k, p in enumerate(self.parameters) if p.indices and p.indices.outside.is_checked]
        """The positions of arrays of indices that calls check, for which they wait."""
        self._returned = [k for k, p in enumerate(self.parameters) if p.intent is Intent.OUT]
        # Copies on the device are aligned, whatever the alignment of host arrays.
        self._on_host = tuple(replace(p, alignment=1) for p in self.parameters)

    def __call__(self, /, *arrays: AnyArray, stream: object = None, **named: AnyArray) -> Outputs:
        """Run the kernel. Raises UsageError, naming the array, if one does not fit, DriverError if the device fails.

        Returns the `out` arrays; device arrays are returned as given.
        """
        known = {size.name: int(named.pop(size.name)) for size in self._sizes if size.name in named}
        given = matched(self.name, self._names, arrays, named) if named else None
        if given is not None:
            arrays = tuple(given[name] for name in self._names if name in given)
        handle = 0 if stream is None else stream_handle(stream)
        key = (handle, *known.items(), *map(facts_of, arrays))
        call = self._prepared.get(key)
        if call is None:
            if given is None:
                given = matched(self.name, self._names, arrays, {})
            if not any(map(is_on_device, arrays)):
                return self._call_on_host({**given, **known}, stream)
            sizes = solve_sizes(self.name, self._sizes, self._extents, shapes_of(given) if self._sizes else {}, known)
            addresses = addresses_of(given, parameters_at(self.parameters, sizes), self.name)
            call = DeviceCall(self, addresses, sizes, self._workspace(handle))
            self._prepared[key] = call
            if len(self._prepared) > _KEPT:
                self._prepared.popitem(last=False)
        self._check_indices(call, handle)
        call(handle)
        found = [arrays[k] for k in self._returned]
        return None if not found else found[0] if len(found) == 1 else tuple(found)

    def bind_constants(self, **_: AnyArray) -> NoReturn:
        """Raise UsageError: on a device, every call computes the constants."""
        raise UsageError(
            f"kernel '{self.name}': calls on a GPU compute all constants; the pass 'pdojo-split-constants' makes a "
            f"kernel for binding and one for calls"
        )

    def bind(self, /, *arrays: AnyArray, **named: AnyArray) -> Callable[[], None]:
        """Check host arrays once. The returned function copies them to the device, runs the kernel, and copies results
        back.
        """
        given = CallArguments.of(self.name, self._on_host, arrays, named, self._sizes)
        views = given.views
        extra = [max(0, p.alignment - MEMORY_ALIGNMENT) for p in self.parameters]
        memory = [self.gpu.memory(view.nbytes + more) for view, more in zip(views, extra, strict=True)]
        offsets = [-m.address % p.alignment for p, m in zip(self.parameters, memory, strict=True)]
        addresses = [m.address + offset for m, offset in zip(memory, offsets, strict=True)]
        sizes = dict(zip(self.nest.sizes, given.sizes, strict=True))
        call = DeviceCall(self, addresses, sizes)
        rows = list(zip(self.parameters, views, memory, offsets, strict=True))
        stream = self._own_stream.handle

        def run() -> None:
            for parameter, view in zip(self.parameters, views, strict=True):
                if parameter.indices is not None:
                    check_indices(self.name, parameter.indices, view, sizes)
            # Copy outputs, too: elements that the kernel does not write must keep their values.
            for _, view, place, offset in rows:
                place.upload(view, stream, offset)
            call(stream)
            self.gpu.synchronize(stream)
            for parameter, view, place, offset in rows:
                if parameter.written:
                    place.download(view, stream, offset)

        return run

    def prepare(
        self,
        addresses: Sequence[int],
        workspace: DeviceMemory | None = None,
        sizes: Mapping[str, int] | None = None,
    ) -> DeviceCall:
        """A call on arrays at unchecked device addresses, in the order of the interface.

        `sizes` has the values of all sizes; with None all are the greatest. `workspace` may be shared with calls that
        do not run at the same time; None allocates a new one.
        """
        greatest = {name: size.high for name, size in self.nest.sizes.items()}
        return DeviceCall(self, addresses, greatest if sizes is None else sizes, workspace)

    def launches(
        self, arrays: Sequence[ctypes.c_void_p], workspace: ctypes.c_void_p, sizes: Mapping[str, int]
    ) -> list[PreparedLaunch]:
        """The launches of a call for values of all sizes; they read the addresses of arrays when they run."""
        found: list[PreparedLaunch] = []
        for number, blocks, values in self.sequence(sizes):
            entry = self.program.entries[number]
            arguments: list[Any] = [arrays[k] for k in entry.arrays]
            if entry.has_workspace:
                arguments.append(workspace)
            arguments += [ctypes.c_int64(size) for size in sizes.values()]
            arguments += [ctypes.c_int(value) for value in values]
            found.append(PreparedLaunch(self.functions[number], blocks, entry.threads, arguments))
        return found

    def sequence(self, sizes: Mapping[str, int]) -> tuple[Launched, ...]:
        """The launches of a call for values of all sizes."""
        if not sizes:
            return self.program.sequence
        roots, entries = roots_of(self.nest), self.program.entries
        return launch_sequence(self.nest, [roots[e.root] for e in entries], [e.variables for e in entries], sizes)

    def random_inputs(self, seed: int = 0) -> dict[str, NDArray[Any]]:
        """Random host arrays for the kernel's inputs, keyed by name, determined by `seed`."""
        from pdojo.backends.measure.arrays import random_arguments

        return random_arguments(self.parameters, seed)

    def __repr__(self) -> str:
        rows = [f"{p.intent.value} {p.name} {p.dtype}[{', '.join(p.extent_texts)}]" for p in self.parameters]
        return f"<{type(self).__name__} {self.name}({', '.join(rows)}), {self.gpu.info.name}>"

    def _call_on_host(self, given: Mapping[str, AnyArray], stream: object) -> Outputs:
        if stream is not None:
            raise UsageError(f"kernel '{self.name}': a stream is for arrays on the device")
        arguments = CallArguments.of(self.name, self._on_host, (), given, self._sizes)
        self.bind(*arguments.views, **dict(zip(self.nest.sizes, arguments.sizes, strict=True)))()
        return arguments.outputs

    def _check_indices(self, call: DeviceCall, stream: int) -> None:
        """Raise IndexOutOfRange for an index on the device that the kernel refuses."""
        for k in self.checked:
            (parameter,), indices = parameters_at([self.parameters[k]], call.sizes), self.parameters[k].indices
            assert indices is not None
            given = empty_for(parameter)
            self.gpu.read(call.addresses[k], given, stream)
            check_indices(self.name, indices, given, call.sizes)

    @cached_property
    def _own_stream(self) -> Stream:
        """The stream of calls on host arrays."""
        return self.gpu.stream()

    def _workspace(self, stream: int) -> DeviceMemory | None:
        size = self.program.workspace_bytes
        if size and stream not in self._workspaces:
            self._workspaces[stream] = self.gpu.memory(size)
        return self._workspaces.get(stream)


@dataclass(frozen=True, eq=False)
class GpuCompiler:
    """Compiles kernels for a vendor's devices, for use by a worker."""

    vendor: Vendor
    compiler: DeviceCompiler
    machine: str
    """The machine of kernels that name no machine."""
    cache: ImageCache | None = None
    """The cache of images; None is the one in the user's cache folder."""

    def __call__(
        self,
        kernel: KernelOp,
        machine: Machine | None = None,
        *,
        threads: int | None = None,
        optimize: Literal["search", "full"] = "full",
    ) -> GpuKernel:
        """Compile a kernel and load it on the device. `optimize` has no effect.

        Raises NoDevice if there is no device, LoweringError if the device has another architecture or device code
        cannot express the kernel, UsageError for several threads.
        """
        if threads not in (None, 1):
            raise UsageError(f"one thread launches a kernel on {self.vendor.devices}, not {threads}")
        return self.load(kernel, self.assemble(kernel, machine))

    def assemble(self, kernel: KernelOp, machine: Machine | None = None) -> DeviceProgram:
        """Compile a kernel; needs no device. Raises MissingTool, LoweringError."""
        return compile_program(kernel, machine or known_machine(self.machine), self.compiler, self.cache or _cache())

    def load(self, kernel: KernelOp, program: DeviceProgram, gpu: GpuContext | None = None) -> GpuKernel:
        """Load a kernel's compiled code on a device, the first one if `gpu` is None.

        Raises NoDevice, LoweringError, DriverError, OldDriver if the driver is older than the compiler.
        """
        gpu = gpu or self.gpu()
        check_architecture(gpu, program.processor)
        nest = nest_of(kernel)
        try:
            return GpuKernel(kernel.sym_name.data, parameters_of(nest), program, gpu, nest)
        except DriverError as error:
            self._check_age(gpu, error)
            raise

    def _check_age(self, gpu: GpuContext, error: DriverError) -> None:
        """Raise OldDriver if a driver refuses code because it is older than the compiler."""
        toolkit, known = self.compiler.toolkit, gpu.driver.version
        if error.code in REFUSED_CODE and toolkit is not None and tuple(map(int, known.split("."))) < toolkit:
            newest = ".".join(map(str, toolkit))
            raise OldDriver(
                f"the driver of {gpu.info.name} is for {self.vendor.name} {known}, and kernels are compiled for "
                f"{newest}: update the driver, or install an older compiler (pip install nvidia-cuda-nvrtc=={known}.*)"
            ) from error

    def gpu(self) -> GpuContext:
        """The first device. Raises NoDevice if there is none."""
        return driver_of(self.vendor).gpu()


def check_architecture(gpu: GpuContext, processor: str) -> None:
    """Raise LoweringError if a device cannot run code for a processor."""
    # `sm_90a` is `sm_90` with additional instructions that only this architecture has.
    if gpu.info.architecture != processor.removesuffix("a"):
        raise LoweringError(
            f"the device here, {gpu.info.name}, is of the architecture {gpu.info.architecture}, and the code is for "
            f"{processor}"
        )


@cache
def _cache() -> ImageCache:
    return ImageCache()


CUDA = GpuCompiler(CUDA_VENDOR, Nvrtc(), "nvidia-sm90")
HIP = GpuCompiler(HIP_VENDOR, Clang(), "amd-gfx942")
