"""Models as callables of this process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from pdojo.backends.calling.arguments import CallArguments, sizes_by_shapes
from pdojo.backends.calling.arrays import ALIGNMENT, AnyArray, aligned, aligned_empty, parameters_at
from pdojo.backends.llvm.executable import LoadedKernel, Workspace
from pdojo.backends.llvm.executable import compile as compile_kernel
from pdojo.backends.measure.arrays import ArraySet, random_inputs
from pdojo.dialect.affine import Size
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.machines.registry import machine as machine_named
from pdojo.dialect.notation import print_notation
from pdojo.dialect.ops import KernelOp
from pdojo.errors import MeasurementError, UsageError
from pdojo.model.calls import BoundCalls, Calls, Interface
from pdojo.model.compiling import KernelRequest
from pdojo.model.constants import SharedConstants
from pdojo.model.element_types import memory_of, numpy_type
from pdojo.model.flattening import flattened
from pdojo.model.graph import Tensor, dtype_of, parameters_for
from pdojo.model.kept import Kept
from pdojo.model.present import Present
from pdojo.model.quick import QuickModel, in_order
from pdojo.model.sized_programs import SizedPrograms
from pdojo.passes.scheduled_kernel import PASS, Scheduler, assume_alignment

if TYPE_CHECKING:
    from pdojo.model.model import Model

_MOST_VALUES = 256
"""Most combinations of sizes for which a model is kept."""


def compile_model(
    model: Model,
    machine: Machine | str | None,
    *,
    tune: Literal["none", "pass"],
    scheduler: Scheduler | None,
    threads: int | None,
    cached: bool,
    programs: SizedPrograms | None,
) -> CompiledModel:
    """The work of `Model.compile`."""
    described = described_machine(machine, tune, threads)
    has_form = programs is not None and not model.sizes
    requests = [_request(kernel, described, tune, scheduler, has_form=has_form) for kernel in model.kernels]
    programs = programs or SizedPrograms()
    executables = programs.load(model.name, model.kernels, requests, described.threads, cached=cached)
    loaded = dict(zip(model.kernels, executables, strict=True))
    return CompiledModel(model, _calls(model, [loaded[step.kernel] for step in model.calls], programs.constants))


def described_machine(machine: Machine | str | None, tune: str, threads: int | None) -> Machine:
    """The machine that models are compiled for. Raises UsageError for options that `Model.compile` does not take."""
    if tune not in ("none", "pass"):
        raise UsageError(f"tune is 'none' or 'pass', not {tune!r}")
    if threads is not None and (not isinstance(threads, int) or threads < 1):
        raise UsageError(f"a model runs on a number of threads from 1, not on {threads!r}")
    described = machine_named(machine or "host") if machine is None or isinstance(machine, str) else machine
    if described.backend != "llvm":
        raise UsageError(f"models run on this processor, and {described.name} is of another kind")
    return described if threads is None else replace(described, threads=threads)


def _request(
    kernel: KernelOp, machine: Machine, tune: str, scheduler: Scheduler | None, *, has_form: bool
) -> KernelRequest:
    """The program to compile for a kernel: the scheduler's if it knows one, else the pass's."""
    if tune == "none":
        return KernelRequest(print_notation(kernel), None, None, flattened(kernel) if has_form else "")
    plain = assume_alignment(kernel, None)
    known = None if scheduler is None else scheduler(plain, machine)
    if known is not None:
        return KernelRequest(print_notation(known), machine, None)
    return KernelRequest(print_notation(plain), machine, PASS, flattened(plain) if has_form else "")


def _calls(model: Model, executables: Sequence[LoadedKernel], constants: SharedConstants) -> Calls[LoadedKernel]:
    return Calls(model.calls, executables, Interface(model.inputs, model.results, model.memory), constants)


class CompiledModel:
    """A model that can be called, made by `Model.compile`.

    Call it with arrays in the order of the model's inputs, or by name: NumPy arrays or PyTorch tensors on the CPU.
    Output arrays may be given by name; those left out are allocated. The call returns all outputs. Several threads may
    call it at once. A call of a model with sizes is one of the model at their values (`at`).
    """

    def __init__(
        self,
        model: Model,
        calls: Calls[LoadedKernel],
        present: Present | None = None,
        blocks: list[Workspace] | None = None,
    ) -> None:
        self._whole = model
        self._calls = calls
        self._present = present or Present({})
        self._is_open = bool(model.sizes) and present is None
        """Whether its sizes have no values."""
        self._known: Kept[CompiledModel] = Kept(_MOST_VALUES)
        """The model at values of its sizes."""
        self._blocks: list[Workspace] = [] if blocks is None else blocks
        """Blocks of intermediates that no running call uses; a call takes another one if one is too small."""
        if self._is_open:
            return
        self.results = {self._present.tensor(tensor): name for tensor, name in model.results.items()}
        """The tensors that kernels write into arrays of the caller, with the names of the outputs."""
        tensor, read = self._present.tensor, calls.tensors
        self.inputs_read = tuple([tensor(each) for each in model.inputs if each in read])
        """The inputs that kernels read."""
        self._inputs = tuple([tensor(each) for each in model.inputs])
        self._outputs = tuple([(name, self._present.operand(each)) for name, each in model.outputs])
        self._parameters = parameters_for(self._inputs, self._outputs)
        operands = [*self._inputs, *(value for _, value in self._outputs)]
        self._names = {p.name: value for p, value in zip(self._parameters, operands, strict=True)}
        self._offsets, self._bytes = model.memory.at(self._present.number)
        self._apart = [(place, argument, self._present.number(offset)) for place, argument, offset in calls.apart]
        self._bound: dict[int, BoundCalls] = {}
        """The calls, keyed by the address of the block."""

    @cached_property
    def quick(self) -> QuickModel | None:
        """The short way of calls; None if arrays need more, or the model has sizes."""
        if self._is_open or not QuickModel.fit(self._inputs, [each for _, each in self._outputs], [*self.results]):
            return None
        outputs = [each for _, each in self._outputs if isinstance(each, Tensor)]
        return QuickModel(self._inputs, self.inputs_read, outputs, self.run_at)

    @cached_property
    def model(self) -> Model:
        """The model, at the values of its sizes if they have some."""
        return self._whole if self._is_open else self._whole.at(self._present)

    @property
    def sizes(self) -> Sequence[Size]:
        """The sizes that have no values."""
        return [*self._whole.sizes.values()] if self._is_open else []

    def at(self, values: Sequence[int]) -> CompiledModel:
        """The model at values of its sizes, in order; nothing is compiled. Raises UsageError for one out of range."""

        def made() -> CompiledModel:
            present = Present.of(self._whole.name, self.sizes, values)
            return CompiledModel(self._whole, self._calls, present, self._blocks)

        return self._known.get(tuple(values), made) if self._is_open else self

    def __call__(self, /, *arrays: AnyArray, **named: AnyArray) -> Any:
        """Run the model; raises UsageError, naming the array, if one does not fit."""
        quick = self.quick
        if quick is not None and (found := quick(in_order(quick.names, arrays, named))) is not None:
            return found
        return self._for(arrays, named)._called(arrays, named)

    def _for(self, arrays: Sequence[AnyArray], named: Mapping[str, AnyArray]) -> CompiledModel:
        """The model at the sizes of arrays."""
        if not self._is_open:
            return self
        values, _ = sizes_by_shapes(self._whole.name, self._whole.parameters, arrays, named, self.sizes)
        return self.at([*values.values()])

    def profile(self, *arrays: AnyArray, **named: AnyArray) -> tuple[float, ...]:
        """The seconds of each call (`model.calls`) in one run. Raises UsageError like a call."""
        seconds: list[float] = []

        def timed(numbers: list[int]) -> None:
            for executable, places in self._calls.steps:
                start = perf_counter()
                executable.run_with_indices([numbers[place] for place in places])
                seconds.append(perf_counter() - start)

        self._for(arrays, named)._called(arrays, named, timed)
        return tuple(seconds)

    def check_memory(self) -> None:
        """Run each kernel once on random inputs between zones that it must not write; at all sizes that were called.

        Raises MeasurementError, with the kernel and the array, if one writes outside of its outputs.
        """
        if self._is_open:
            for each in self._known.values:
                each.check_memory()
            return
        extents = {place: extent for extent, place in self._calls.sizes.items()}
        for executable, places in {id(each): (each, places) for each, places in self._calls.steps}.values():
            values = [self._present.number(extents[place]) for place in places[len(executable.arguments) :]]
            sizes = {} if executable.given else dict(zip([s.name for s in executable.sizes], values, strict=False))
            parameters = (*parameters_at(executable.parameters, sizes),)
            arrays = ArraySet(parameters, random_inputs(parameters, 0))
            executable.bind(*arrays.arrays, **sizes)()
            damage = arrays.damage()
            if damage is not None:
                title = f"kernel '{executable.name}' of {self._whole.name}"
                raise MeasurementError(f"{title}: {damage}; please report this")

    def _called(
        self, arrays: Sequence[AnyArray], named: Mapping[str, AnyArray], run: Callable[[list[int]], None] | None = None
    ) -> Any:
        given = [self._as_memory(p.name, each) for p, each in zip(self._parameters, arrays, strict=False)]
        given += arrays[len(given) :]
        by_name = {name: self._as_memory(name, array) for name, array in named.items()}
        arguments = CallArguments.of(self._whole.name, self._parameters, given, by_name)
        views = dict(zip([p.name for p in self._parameters], arguments.views, strict=True))
        self._run(views, run)
        if arguments.are_tensors:
            return arguments.outputs
        outputs = [views[name].view(numpy_type(dtype_of(value))) for name, value in self._outputs]
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def _as_memory(self, name: str, array: AnyArray) -> AnyArray:
        """An array of the caller as kernels take it; arrays of other types are left to the check of the call."""
        value = self._names.get(name)
        if value is None or not isinstance(array, np.ndarray):
            return array
        given = cast("NDArray[Any]", array)
        fits = given.dtype == numpy_type(dtype_of(value))
        return memory_of(given) if fits and given.flags.c_contiguous else given

    def run_at(
        self, inputs: Sequence[int], outputs: Sequence[int], run: Callable[[list[int]], None] | None = None
    ) -> None:
        """Run the kernels on arrays at these addresses, multiples of 64; only indices are checked.

        Raises IndexOutOfRange for an index that a kernel refuses; kernels before it have run. A model with sizes runs
        at values of these only.

        `inputs` are in the order of `inputs_read`, `outputs` in that of `results`. `run` runs the kernels with the
        numbers of all calls; None calls one after the other.
        """
        try:
            block = self._blocks.pop()
        except IndexError:
            block = Workspace.of(max(1, self._bytes))
        if block.memory.nbytes < self._bytes:
            block = Workspace.of(max(1, self._bytes))
        bound = self._bound.get(block.address)
        if bound is None:
            numbers = self._numbers_with(block.address)
            bound = self._bound[block.address] = BoundCalls(self._calls, numbers, self._apart)
        bound.place((*inputs, *outputs))
        bound.run() if run is None else run(bound.numbers)
        self._blocks.append(block)

    def apart(self) -> list[CompiledModel]:
        """Each step as a model of its own, with the same code; steps that calls leave out have plain code."""
        executables = iter([executable for executable, _ in self._calls.steps])
        found: list[CompiledModel] = []
        for step in self.model.steps:
            model = type(self.model).of_step(step)
            code = compile_kernel(step.kernel) if step.places else next(executables)
            found.append(CompiledModel(model, _calls(model, [code], self._calls.shared)))
        return found

    def _run(self, views: Mapping[str, NDArray[Any]], run: Callable[[list[int]], None] | None) -> None:
        inputs = [_aligned(views[tensor.name]) for tensor in self.inputs_read]
        results = {tensor: _aligned_output(views[name]) for tensor, name in self.results.items()}
        self.run_at([each.ctypes.data for each in inputs], [each.ctypes.data for each in results.values()], run)
        for tensor, name in self.results.items():
            if results[tensor] is not views[name]:
                views[name][...] = results[tensor]
        self._copy_others(views, results)

    def _numbers_with(self, start: int) -> list[int]:
        """The addresses of the constants and of the arrays in a block that starts there, and sizes; 0 for others."""
        numbers = [0] * self._calls.count
        for slot, array in self._calls.constants.values():
            numbers[slot] = array.ctypes.data
        for tensor, slot in self._calls.tensors.items():
            numbers[slot] = start + self._offsets[tensor] if tensor in self._offsets else 0
        for extent, slot in self._calls.sizes.items():
            numbers[slot] = self._present.number(extent)
        return numbers

    def _copy_others(self, views: Mapping[str, NDArray[Any]], results: Mapping[Tensor, NDArray[Any]]) -> None:
        """Write the outputs that no kernel writes: inputs, constants, and other views of an output."""
        written = set(self.results.values())
        for name, value in self._outputs:
            if name in written:
                continue
            if not isinstance(value, Tensor):
                source = memory_of(np.ascontiguousarray(value).reshape(value.shape))
            elif value.memory in results:
                source = results[value.memory]
            else:
                source = views[value.memory.name]
            views[name][...] = source.reshape(value.shape)

    def __repr__(self) -> str:
        given = self._whole.parameters if self._is_open else self._parameters
        rows = [f"{p.intent.value} {p.name} {p.dtype}[{', '.join(p.extent_texts)}]" for p in given]
        return f"<CompiledModel {self._whole.name}({', '.join(rows)})>"


def _aligned(array: NDArray[Any]) -> NDArray[Any]:
    """An input at an address that tuned kernels accept: itself, or a copy."""
    return aligned(array) if array.ctypes.data % ALIGNMENT else array


def _aligned_output(array: NDArray[Any]) -> NDArray[Any]:
    """Memory for an output at an address that tuned kernels accept: its own, or other memory."""
    return aligned_empty(array.shape, array.dtype) if array.ctypes.data % ALIGNMENT else array
