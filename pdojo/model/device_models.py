"""Models as callables on a GPU: prepared launches, in memory and a stream of the caller.

A call allocates one block for intermediates and workspaces, writes the addresses of arrays into the prepared arguments,
and launches. It does not wait, and copies nothing, so that it can be captured in a graph
(docs/decisions/2026-11-30-torch-on-gpus.md).
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from pdojo.backends.calling.arrays import Parameter, parameters_at
from pdojo.backends.common.placement import rounded
from pdojo.backends.gpu.driver import MEMORY_ALIGNMENT, DeviceMemory, GpuContext, PreparedLaunch
from pdojo.backends.gpu.executable import GpuKernel
from pdojo.backends.gpu.session import DeviceSet
from pdojo.backends.measure.arrays import ArraySet, random_inputs
from pdojo.dialect.affine import Size
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.notation import parse_notation, print_notation
from pdojo.dialect.ops import KernelOp
from pdojo.errors import LoweringError, MeasurementError
from pdojo.model.calls import Calls, Interface
from pdojo.model.compiling import compile_kernels
from pdojo.model.constants import SharedConstants
from pdojo.model.device_code import DeviceObject, DeviceRequest, gpu_backend
from pdojo.model.kept import Kept
from pdojo.model.present import Present
from pdojo.passes.scheduled_kernel import PASS, Scheduler, assume_alignment

if TYPE_CHECKING:
    from pdojo.model.model import Model
    from pdojo.model.sized_programs import SizedPrograms

_MOST_VALUES = 256
"""Most combinations of sizes for which launches are kept."""


@dataclass(frozen=True, eq=False)
class Place:
    """A device, and where calls of models get memory and a stream there."""

    machine: Machine
    """The machine that kernels are compiled for."""
    gpu: GpuContext
    allocate: Callable[[int], tuple[object, int]]
    """New memory of some bytes on the device, as its owner and its address, a multiple of 256."""
    stream: Callable[[], int]
    """The handle of the stream in which this thread's next work belongs."""

    def wait(self) -> None:
        """Wait for all work of the stream. Raises DriverError for failures in it."""
        self.gpu.synchronize(self.stream())


@dataclass(frozen=True, eq=False)
class PlacedKernel:
    """A kernel on a device as an executable of calls; calls compute all constants."""

    kernel: GpuKernel
    given: tuple[int, ...] = ()
    constants: None = None

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The interface, in order."""
        return self.kernel.parameters

    @property
    def arguments(self) -> tuple[Parameter, ...]:
        """The interface."""
        return self.kernel.parameters

    def bound_constants(self, **_: Any) -> dict[str, NDArray[Any]]:
        """None."""
        return {}


def compile_on(
    model: Model,
    place: Place,
    *,
    tune: Literal["none", "pass"] = "pass",
    scheduler: Scheduler | None = None,
    cached: bool = True,
    programs: SizedPrograms | None = None,
) -> DeviceModel:
    """The model as a callable on a device; the options are those of `Model.compile`, but `programs` only count kernels.

    Raises MissingTool without the compiler of device code, LoweringError for a kernel that device code cannot express
    or that calls cannot run without waiting, DriverError if the device fails, NotCoveredError if `programs` are closed.
    """
    if programs is not None:
        programs.count(len(model.kernels))
    requests = [_request(kernel, place.machine, tune, scheduler) for kernel in model.kernels]
    codes = compile_kernels(requests, cached=cached)
    loaded = {kernel: _loaded(code, place) for kernel, code in zip(model.kernels, codes, strict=True)}
    interface = Interface(model.inputs, model.results, model.memory)
    calls = Calls(model.calls, [loaded[step.kernel] for step in model.calls], interface, SharedConstants())
    return DeviceModel(model, calls, place)


def _request(kernel: KernelOp, machine: Machine, tune: str, scheduler: Scheduler | None) -> DeviceRequest:
    """The program to compile for a kernel: the scheduler's if it knows one, else the pass's."""
    plain, compiler = assume_alignment(kernel, None), gpu_backend(machine).compiler_path
    if tune == "none":
        return DeviceRequest(print_notation(plain), machine, None, compiler)
    known = None if scheduler is None else scheduler(plain, machine)
    if known is not None:
        return DeviceRequest(print_notation(known), machine, None, compiler)
    return DeviceRequest(print_notation(plain), machine, PASS, compiler)


def _loaded(code: DeviceObject, place: Place) -> PlacedKernel:
    (kernel,) = parse_notation(code.text)
    loaded = gpu_backend(place.machine).compiler.load(kernel, code.program, place.gpu)
    if loaded.checked:
        names = ", ".join(loaded.parameters[k].name for k in loaded.checked)
        raise LoweringError(f"kernel '{loaded.name}': calls would wait for the indices in {names}, to check them")
    return PlacedKernel(loaded)


class DeviceModel:
    """A model on a device, made by `compile_on`; several threads may call it at once.

    A model with sizes is called at values of these only (`at`).
    """

    def __init__(
        self,
        model: Model,
        calls: Calls[PlacedKernel],
        place: Place,
        present: Present | None = None,
        constants: Mapping[int, DeviceMemory] | None = None,
    ) -> None:
        self._whole = model
        self._calls = calls
        self.place = place
        self._present = present or Present({})
        self._is_open = bool(model.sizes) and present is None
        """Whether its sizes have no values."""
        self._known: Kept[DeviceModel] = Kept(_MOST_VALUES)
        """The model at values of its sizes."""
        self._constants = _uploaded(calls, place) if constants is None else constants
        """The constants, by their places among the numbers of a call."""
        if self._is_open:
            return
        tensor = self._present.tensor
        self.results = {tensor(each): name for each, name in model.results.items()}
        """The tensors that kernels write into arrays of the caller, with the names of the outputs."""
        self.inputs_read = tuple([tensor(each) for each in model.inputs if each in calls.tensors])
        """The inputs that kernels read."""
        self.offsets, used = model.memory.at(self._present.number)
        self.workspace = rounded(used, MEMORY_ALIGNMENT)
        """The place of the workspace in the block, behind the intermediates; kernels run one after the other."""
        self.bytes = self.workspace + max([e.kernel.program.workspace_bytes for e, _ in calls.steps], default=0)
        """The size of the block."""
        self.apart_places = [(slot, own, self._present.number(offset)) for slot, own, offset in calls.apart]
        self._idle: list[BoundLaunches] = []
        """Launches that no running call uses."""

    @property
    def sizes(self) -> Sequence[Size]:
        """The sizes that have no values."""
        return [*self._whole.sizes.values()] if self._is_open else []

    @cached_property
    def model(self) -> Model:
        """The model, at the values of its sizes if they have some."""
        return self._whole if self._is_open else self._whole.at(self._present)

    def at(self, values: Sequence[int]) -> DeviceModel:
        """The model at values of its sizes, in order; nothing is compiled. Raises UsageError for one out of range."""

        def made() -> DeviceModel:
            present = Present.of(self._whole.name, self.sizes, values)
            return DeviceModel(self._whole, self._calls, self.place, present, self._constants)

        return self._known.get(tuple(values), made) if self._is_open else self

    def run_at(self, inputs: Sequence[int], outputs: Sequence[int]) -> None:
        """Launch the kernels on arrays at these addresses of the device, multiples of 64; nothing is checked.

        `inputs` are in the order of `inputs_read`, `outputs` in that of `results`. Memory of the block goes back to its
        owner at the end: later work of the stream may have it. Raises DriverError.
        """
        owner, block = self.place.allocate(self.bytes) if self.bytes else (None, 0)
        try:
            bound = self._idle.pop()
        except IndexError:
            bound = self._bound()
        bound.put((*inputs, *outputs), block)
        bound.launch(self.place.stream())
        self._idle.append(bound)
        del owner

    def apart(self) -> list[DeviceModel]:
        """Each step as a model of its own, with the same code; steps that calls leave out have the pass's."""
        executables = iter([executable for executable, _ in self._calls.steps])
        found: list[DeviceModel] = []
        for step in self.model.steps:
            model = type(self.model).of_step(step)
            if step.places:
                found.append(compile_on(model, self.place))
                continue
            interface = Interface(model.inputs, model.results, model.memory)
            calls = Calls(model.calls, [next(executables)], interface, self._calls.shared)
            found.append(DeviceModel(model, calls, self.place))
        return found

    def check_memory(self) -> None:
        """Run each kernel once on random inputs between zones that it must not write; at all sizes that were called.

        Raises MeasurementError, with the kernel and the array, if one writes outside of its outputs.
        """
        if self._is_open:
            for each in self._known.values:
                each.check_memory()
            return
        stream = self.place.gpu.stream()
        for executable, places in {id(each): (each, places) for each, places in self._calls.steps}.values():
            kernel, sizes = executable.kernel, self._sizes(executable, places)
            parameters = (*parameters_at(kernel.parameters, sizes),)
            arrays = ArraySet(parameters, random_inputs(parameters, 0))
            device = DeviceSet(self.place.gpu, stream, arrays)
            kernel.prepare(device.addresses, sizes=sizes)(stream.handle)
            stream.synchronize()
            device.download()
            damage = arrays.damage()
            if damage is not None:
                raise MeasurementError(f"kernel '{kernel.name}' of {self._whole.name}: {damage}; please report this")

    def _sizes(self, executable: PlacedKernel, places: Sequence[int]) -> dict[str, int]:
        """The values of a kernel's sizes."""
        extents = {place: extent for extent, place in self._calls.sizes.items()}
        values = [self._present.number(extents[place]) for place in places[len(executable.arguments) :]]
        return dict(zip(executable.kernel.nest.sizes, values, strict=True))

    def _bound(self) -> BoundLaunches:
        """New prepared launches of all kernels."""
        cells = {place: ctypes.c_void_p(memory.address) for place, memory in self._constants.items()}
        workspace, launches = ctypes.c_void_p(), list[PreparedLaunch]()
        for executable, places in self._calls.steps:
            arrays = [cells.setdefault(place, ctypes.c_void_p()) for place in places[: len(executable.arguments)]]
            launches += executable.kernel.launches(arrays, workspace, self._sizes(executable, places))
        inside = [(cells[slot], self.offsets[t]) for t, slot in self._calls.tensors.items() if t in self.offsets]
        outside = [(cells[slot], argument, offset) for slot, argument, offset in self.apart_places]
        return BoundLaunches(self.place.gpu, launches, [*inside, (workspace, self.workspace)], outside)

    def __repr__(self) -> str:
        return f"<DeviceModel {self._whole.name} on {self.place.gpu.info.name}>"


@dataclass
class BoundLaunches:
    """Prepared launches whose arguments are cells, for one call at a time."""

    gpu: GpuContext
    launches: Sequence[PreparedLaunch]
    inside: Sequence[tuple[ctypes.c_void_p, int]]
    """Addresses in the block, and their offsets there."""
    outside: Sequence[tuple[ctypes.c_void_p, int, int]]
    """Addresses of arrays of the caller, their numbers, and offsets in them."""
    block: int | None = None
    """The address of the block in the last call."""

    def put(self, addresses: Sequence[int], block: int) -> None:
        """Take the arrays from these addresses, and the intermediates from the block."""
        if block != self.block:
            self.block = block
            for cell, offset in self.inside:
                cell.value = block + offset
        for cell, argument, offset in self.outside:
            cell.value = addresses[argument] + offset

    def launch(self, stream: int) -> None:
        """Launch in a stream; a launch copies its arguments. Raises DriverError."""
        handle, before = ctypes.c_void_p(stream), self.gpu.enter()
        try:
            for each in self.launches:
                each(handle)
        finally:
            self.gpu.leave(before)


def _uploaded(calls: Calls[PlacedKernel], place: Place) -> dict[int, DeviceMemory]:
    """The constants of kernels in memory of the device."""
    found: dict[int, DeviceMemory] = {}
    if calls.constants:
        stream = place.gpu.stream()
        for slot, array in calls.constants.values():
            found[slot] = place.gpu.memory(array.nbytes)
            found[slot].upload(np.ascontiguousarray(array), stream.handle)
    return found
