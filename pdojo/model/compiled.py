"""Models as callables of this process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from pdojo.backends.calling.arguments import CallArguments
from pdojo.backends.calling.arrays import ALIGNMENT, AnyArray, aligned, aligned_empty
from pdojo.backends.llvm.executable import LoadedKernel
from pdojo.backends.llvm.executable import compile as compile_kernel
from pdojo.backends.measure.arrays import ArraySet, random_inputs
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.machines.registry import machine as machine_named
from pdojo.dialect.notation import print_notation
from pdojo.dialect.ops import KernelOp
from pdojo.errors import MeasurementError, UsageError
from pdojo.model.compiling import KernelRequest
from pdojo.model.constants import Held, SharedConstants
from pdojo.model.element_types import memory_of, numpy_type
from pdojo.model.flattening import flattened
from pdojo.model.graph import Known, Operand, Tensor, dtype_of
from pdojo.model.kernels import Step
from pdojo.model.sized_programs import SizedPrograms
from pdojo.passes.scheduled_kernel import PASS, Scheduler, assume_alignment

if TYPE_CHECKING:
    from pdojo.model.model import Model


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
    requests = [_request(kernel, described, tune, scheduler, has_form=programs is not None) for kernel in model.kernels]
    programs = programs or SizedPrograms()
    executables = programs.load(model.kernels, requests, described.threads, cached=cached)
    loaded = dict(zip(model.kernels, executables, strict=True))
    return CompiledModel(model, [loaded[step.kernel] for step in model.calls], programs.constants)


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


class CompiledModel:
    """A model that can be called, made by `Model.compile`.

    Call it with arrays in the order of the model's inputs, or by name: NumPy arrays or PyTorch tensors on the CPU.
    Output arrays may be given by name; those left out are allocated. The call returns all outputs. Several threads may
    call it at once.
    """

    def __init__(
        self, model: Model, executables: Sequence[LoadedKernel], constants: SharedConstants | None = None
    ) -> None:
        self.model = model
        self._shared = constants or SharedConstants()
        self._held: list[Held] = []
        """The shared constants that it keeps alive."""
        self._parameters = model.parameters
        self._names = {p.name: value for p, value in zip(self._parameters, self._interface(), strict=True)}
        self._constants: dict[int, NDArray[Any]] = {}
        self._slots: dict[object, int] = {}
        """The place of each array in the list of addresses; the key is a tensor, or the identity of a constant."""
        self._steps = [self._step(*call) for call in zip(model.calls, executables, strict=True)]
        self._calls = [(each.run_with_indices, _getter(slots, each.given)) for each, slots in self._steps]
        self._written = model.results
        self._apart = self._places_apart()
        """Of each array outside the block: its place among addresses and among arguments, and its offset."""
        self._free: list[tuple[NDArray[np.uint8], list[int]]] = []
        """Blocks of intermediates that no running call uses, with the addresses of all arrays in their last call."""

    def __call__(self, /, *arrays: AnyArray, **named: AnyArray) -> Any:
        """Run the model; raises UsageError, naming the array, if one does not fit."""
        return self._called(arrays, named, self._run_steps)

    def profile(self, *arrays: AnyArray, **named: AnyArray) -> tuple[float, ...]:
        """The seconds of each call (`model.calls`) in one run. Raises UsageError like a call."""
        seconds: list[float] = []

        def timed(addresses: list[int]) -> None:
            for executable, slots in self._steps:
                start = perf_counter()
                executable.run_with_indices([*(addresses[slot] for slot in slots), *executable.given])
                seconds.append(perf_counter() - start)

        self._called(arrays, named, timed)
        return tuple(seconds)

    def check_memory(self) -> None:
        """Run each kernel once on random inputs between zones that it must not write.

        Raises MeasurementError, with the kernel and the array, if one writes outside of its outputs.
        """
        for executable in {id(each): each for each, _ in self._steps}.values():
            parameters = executable.parameters
            arrays = ArraySet(parameters, random_inputs(parameters, 0))
            executable.bind(*arrays.arrays)()
            damage = arrays.damage()
            if damage is not None:
                raise MeasurementError(f"kernel '{executable.name}' of {self.model.name}: {damage}; please report this")

    def _run_steps(self, addresses: list[int]) -> None:
        for run_at, arrays in self._calls:
            run_at(arrays(addresses))

    def _called(
        self, arrays: Sequence[AnyArray], named: Mapping[str, AnyArray], run: Callable[[list[int]], None]
    ) -> Any:
        given = [self._as_memory(p.name, each) for p, each in zip(self._parameters, arrays, strict=False)]
        given += arrays[len(given) :]
        by_name = {name: self._as_memory(name, array) for name, array in named.items()}
        arguments = CallArguments.of(self.model.name, self._parameters, given, by_name)
        views = dict(zip([p.name for p in self._parameters], arguments.views, strict=True))
        self._run(views, run)
        if arguments.are_tensors:
            return arguments.outputs
        outputs = [views[name].view(numpy_type(dtype_of(value))) for name, value in self.model.outputs]
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def _interface(self) -> list[Operand]:
        return [*self.model.inputs, *(value for _, value in self.model.outputs)]

    def _as_memory(self, name: str, array: AnyArray) -> AnyArray:
        """An array of the caller as kernels take it; arrays of other types are left to the check of the call."""
        value = self._names.get(name)
        if value is None or not isinstance(array, np.ndarray):
            return array
        given = cast("NDArray[Any]", array)
        fits = given.dtype == numpy_type(dtype_of(value))
        return memory_of(given) if fits and given.flags.c_contiguous else given

    def _step(self, step: Step, executable: LoadedKernel) -> tuple[LoadedKernel, list[int]]:
        """A call, with the places of its arrays in the list of addresses."""
        operands = {p.name: o for p, o in zip(executable.parameters, (*step.inputs, *step.outputs), strict=True)}
        if executable.constants is None:
            return executable, [self._slot(operands[p.name]) for p in executable.arguments]
        known = {p.name: _known(operands[p.name]) for p in executable.parameters if p.constant}
        made = self._kept(self._shared.bound(executable, known))
        return executable, [
            self._place(made[p.name]) if p.name in made else self._slot(operands[p.name]) for p in executable.arguments
        ]

    def _kept(self, held: Held) -> Mapping[str, NDArray[Any]]:
        """Arrays that live as long as the model."""
        self._held.append(held)
        return held.arrays

    def _place(self, array: NDArray[Any]) -> int:
        """The place of an array that was made by binding."""
        slot = self._slots.setdefault(id(array), len(self._slots))
        self._constants[slot] = array
        return slot

    def _slot(self, operand: Operand) -> int:
        if not isinstance(operand, Tensor):
            return self._place(self._kept(self._shared.aligned(operand))[""])
        return self._slots.setdefault(operand.memory, len(self._slots))

    def _places_apart(self) -> list[tuple[int, int, int]]:
        numbers = {tensor: number for number, tensor in enumerate((*self.inputs_read, *self._written))}
        tensors = [(slot, key) for key, slot in self._slots.items() if isinstance(key, Tensor)]
        places = [(slot, *self.model.memory.place(key)) for slot, key in tensors]
        return [(slot, numbers[whole], offset) for slot, whole, offset in places if whole in numbers]

    def run_at(
        self, inputs: Sequence[int], outputs: Sequence[int], run: Callable[[list[int]], None] | None = None
    ) -> None:
        """Run the kernels on arrays at these addresses, multiples of 64; only indices are checked.

        Raises IndexOutOfRange for an index that a kernel refuses; kernels before it have run.

        `inputs` are in the order of the model's inputs that kernels read, `outputs` in that of `model.results`. `run`
        runs the kernels at the addresses of all arrays; None calls one after the other.
        """
        try:
            block, addresses = self._free.pop()
        except IndexError:
            block = aligned_empty((max(1, self.model.memory.bytes),), np.dtype(np.uint8))
            addresses = self._addresses(block)
        given = (*inputs, *outputs)
        for slot, place, offset in self._apart:
            addresses[slot] = given[place] + offset
        (run or self._run_steps)(addresses)
        self._free.append((block, addresses))

    def apart(self) -> list[CompiledModel]:
        """Each step as a model of its own, with the same code; steps that calls leave out have plain code."""
        executables = iter([executable for executable, _ in self._steps])
        return [
            CompiledModel(
                type(self.model).of_step(step),
                [compile_kernel(step.kernel) if step.places else next(executables)],
                self._shared,
            )
            for step in self.model.steps
        ]

    @property
    def inputs_read(self) -> tuple[Tensor, ...]:
        """The inputs that kernels read."""
        return tuple(tensor for tensor in self.model.inputs if tensor in self._slots)

    def _run(self, views: Mapping[str, NDArray[Any]], run: Callable[[list[int]], None]) -> None:
        inputs = [_aligned(views[tensor.name]) for tensor in self.inputs_read]
        results = {tensor: _aligned_output(views[name]) for tensor, name in self._written.items()}
        self.run_at([each.ctypes.data for each in inputs], [each.ctypes.data for each in results.values()], run)
        for tensor, name in self._written.items():
            if results[tensor] is not views[name]:
                views[name][...] = results[tensor]
        self._copy_others(views, results)

    def _addresses(self, block: NDArray[np.uint8]) -> list[int]:
        """The addresses of the constants and of the arrays in the block of intermediates; 0 for others."""
        start, offsets = block.ctypes.data, self.model.memory.offsets
        addresses = [0] * len(self._slots)
        for key, slot in self._slots.items():
            if slot in self._constants:
                addresses[slot] = self._constants[slot].ctypes.data
            elif isinstance(key, Tensor) and key in offsets:
                addresses[slot] = start + offsets[key]
        return addresses

    def _copy_others(self, views: Mapping[str, NDArray[Any]], results: Mapping[Tensor, NDArray[Any]]) -> None:
        """Write the outputs that no kernel writes: inputs, constants, and other views of an output."""
        written = set(self._written.values())
        for name, value in self.model.outputs:
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
        rows = [f"{p.intent.value} {p.name} {p.dtype}{list(p.shape)}" for p in self._parameters]
        return f"<CompiledModel {self.model.name}({', '.join(rows)})>"


def _getter(slots: Sequence[int], given: Sequence[int]) -> Callable[[list[int]], Sequence[int]]:
    """From a list to its elements at some places, and the values of sizes."""
    if given or len(slots) < 2:
        return lambda addresses: [*(addresses[slot] for slot in slots), *given]
    return itemgetter(*slots)


def _known(operand: Operand) -> Known:
    assert not isinstance(operand, Tensor), operand
    return operand


def _aligned(array: NDArray[Any]) -> NDArray[Any]:
    """An input at an address that tuned kernels accept: itself, or a copy."""
    return aligned(array) if array.ctypes.data % ALIGNMENT else array


def _aligned_output(array: NDArray[Any]) -> NDArray[Any]:
    """Memory for an output at an address that tuned kernels accept: its own, or other memory."""
    return aligned_empty(array.shape, array.dtype) if array.ctypes.data % ALIGNMENT else array
