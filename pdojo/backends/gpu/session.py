"""The worker's side of a comparison on a GPU: check programs on device arrays, and time replays of graphs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NoReturn

import numpy as np

from pdojo.backends.gpu.driver import MEMORY_ALIGNMENT, DriverError, GpuContext, Stream
from pdojo.backends.gpu.environment import environment_of
from pdojo.backends.gpu.executable import GpuCompiler, GpuKernel
from pdojo.backends.gpu.program import DeviceProgram
from pdojo.backends.gpu.replay import Replayed
from pdojo.backends.measure.arrays import GUARD_BYTES, ArraySet
from pdojo.backends.measure.outcome import CompileError, Crash, Outcome, OutOfMemory
from pdojo.backends.measure.request import JSON, Comparison, Peer
from pdojo.backends.measure.session import Cache, ContenderState, Fatal, Referred, WorkerSession, run_compiled
from pdojo.backends.measure.timing import Timed, take_samples
from pdojo.backends.measure.tools import Tools
from pdojo.dialect.attributes import Intent
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.view.nest import Nest
from pdojo.errors import MeasurementError


class DeviceSet:
    """A set of arrays on a device, with guard zones that no candidate may change."""

    def __init__(self, gpu: GpuContext, stream: Stream, arrays: ArraySet) -> None:
        """Copy the arrays with their guard zones. Raises DriverError if there is too little memory."""
        self._arrays = arrays
        self._stream = stream
        alignment = max(MEMORY_ALIGNMENT, arrays.alignment, *(p.alignment for p in arrays.parameters))
        zones = arrays.zones()
        self._memory = gpu.memory(sum(zone.nbytes + alignment for zone in zones))
        self._offsets: list[int] = []
        at = 0
        for zone in zones:
            at += -(self._memory.address + at + GUARD_BYTES) % alignment
            self._offsets.append(at)
            at += zone.nbytes
        self.addresses = [self._memory.address + offset + GUARD_BYTES for offset in self._offsets]
        """The addresses of the arrays, in the order of the interface."""
        self.upload()

    def upload(self) -> None:
        """Copy the host arrays to the device."""
        for zone, offset in zip(self._arrays.zones(), self._offsets, strict=True):
            self._memory.upload(zone, self._stream.handle, offset)

    def download(self) -> None:
        """Copy the device arrays to the host."""
        for zone, offset in zip(self._arrays.zones(), self._offsets, strict=True):
            self._memory.download(zone, self._stream.handle, offset)

    def restore(self) -> None:
        """Restore the arrays on the device that a call reads and writes."""
        for parameter, offset in zip(self._arrays.parameters, self._offsets, strict=True):
            if parameter.intent is Intent.INOUT:
                contents = np.ascontiguousarray(self._arrays.inputs[parameter.name])
                self._memory.upload(contents, self._stream.handle, offset + GUARD_BYTES)


class GpuSession(WorkerSession):
    """One comparison on a device.

    `tools.compiler` is a GpuCompiler. An error that makes the context unusable ends the process (`Fatal`) and is the
    outcome of the candidate that caused it.
    """

    def __init__(self, comparison: Comparison, tools: Tools, cache: Cache, report: Callable[[int, str], None]) -> None:
        """Raises NoDevice without a device, MeasurementError for other libraries' implementations."""
        if any(isinstance(contender, Peer) for contender in comparison.contenders):
            raise MeasurementError("other libraries are not measured on a GPU")
        super().__init__(comparison, tools, cache, report)
        self._compiler = _compiler(tools)
        self._gpu = self._compiler.gpu()
        self._stream = self._gpu.stream()
        self._sets: dict[int, DeviceSet] = {}
        """Device copies of array sets, by identity of the set; the session keeps both alive."""

    def load(self, kernel: KernelOp, code: JSON) -> GpuKernel:
        """A kernel's code from `assembled`, loaded on the device; another process may have made it."""
        return self._compiler.load(kernel, DeviceProgram.from_json(code))

    @staticmethod
    def assembled(kernel: KernelOp, machine: Machine, effort: Literal["search", "full"], tools: Tools) -> JSON:
        """Compile a kernel to code for `load`; needs no device. Raises PdojoError."""
        return _compiler(tools).assemble(kernel, machine).to_json()

    def failure(self, candidate: ContenderState, phase: str, error: Exception) -> Outcome:
        """The outcome of a candidate that raised an error. Raises Fatal if the device is no longer usable."""
        if not isinstance(error, DriverError):
            return super().failure(candidate, phase, error)
        if error.is_fatal:
            self._end(candidate, phase, error)
        return _outcome(phase, error)

    def run_once(self, candidate: ContenderState, arrays: ArraySet) -> None:
        """Run a candidate on poisoned outputs; afterwards the results are in the host arrays."""
        arrays.reset()
        device = self._device_set(arrays)
        device.upload()
        self._kernel(candidate).prepare(device.addresses)(self._stream.handle)
        self._stream.synchronize()
        device.download()

    def check_memory(self, candidate: ContenderState, arrays: ArraySet) -> None:
        """Do nothing: arrays on a device have guard zones, but no guard pages."""

    def damage(self, arrays: ArraySet) -> str | None:
        """A message about memory that timed calls changed but must not change."""
        self._device_set(arrays).download()
        return arrays.damage()

    def is_reference(self, candidate: ContenderState) -> bool:
        """False: the reference runs on the processor, not on the device."""
        return False

    def run_plain(self, nest: Nest, arrays: ArraySet) -> Referred:
        """The outputs of a reference kernel, run on the processor, because plain code has only one thread."""
        from pdojo.backends.llvm.executable import compile as compile_here

        return run_compiled(compile_here(nest.kernel, threads=1), arrays)

    def timed(self, candidate: ContenderState, sets: Sequence[ArraySet]) -> Timed:
        """A candidate to be timed; its graph is built when the number of calls is known."""
        device = [self._device_set(arrays) for arrays in sets]
        kernel = self._kernel(candidate)
        first = kernel.prepare(device[0].addresses)
        calls = [first, *(kernel.prepare(each.addresses, first.workspace) for each in device[1:])]

        def restore() -> None:
            for each in device:
                each.restore()

        def fail(error: DriverError) -> NoReturn:
            self._end(candidate, "time", error)

        return Replayed(self._gpu, self._stream, calls, restore, fail)

    def sample(self, timed: Sequence[Timed], begin: Callable[[int], None]) -> None:
        """Take the samples. The foreign load is unknown: other processes of the host do not load the device."""
        take_samples(timed, self.options, begin)

    def facts(self) -> JSON:
        """The device, the driver and the tool chain."""
        return environment_of(self._compiler)

    def _kernel(self, candidate: ContenderState) -> GpuKernel:
        assert isinstance(candidate.compiled, GpuKernel)
        return candidate.compiled

    def _device_set(self, arrays: ArraySet) -> DeviceSet:
        if id(arrays) not in self._sets:
            self._sets[id(arrays)] = DeviceSet(self._gpu, self._stream, arrays)
        return self._sets[id(arrays)]

    def _end(self, candidate: ContenderState, phase: str, error: DriverError) -> NoReturn:
        """End this process, because the device, or the state of the stream, is lost."""
        raise Fatal(candidate.index, _outcome(phase, error)) from error


def _outcome(phase: str, error: DriverError) -> Outcome:
    if error.is_memory:
        return OutOfMemory(phase, None, str(error))
    if phase == "compile":
        return CompileError(str(error))
    return Crash(phase, error.name, str(error))


def _compiler(tools: Tools) -> GpuCompiler:
    if not isinstance(tools.compiler, GpuCompiler):
        raise MeasurementError("a worker for a GPU is started with a compiler for it (Worker(compiler=...))")
    return tools.compiler
