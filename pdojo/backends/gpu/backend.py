"""The backend of GPUs: CUDA C++ and HIP C++, run and timed on the first device of this computer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pdojo.backends.backend import Arrays, Listing
from pdojo.backends.gpu.driver import NoDevice
from pdojo.backends.measure.outcome import Outcome
from pdojo.backends.measure.pool import Workers
from pdojo.backends.measure.request import DEFAULT_OPTIONS, Contender, MeasuredProgram, Options, Reference
from pdojo.backends.measure.worker import Listener, PhaseLimits, Worker
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.view.nest import Nest
from pdojo.errors import LoweringError, MeasurementError, UsageError

if TYPE_CHECKING:
    from pdojo.backends.gpu.executable import GpuCompiler, GpuKernel
    from pdojo.backends.gpu.program import LaunchedCode

SESSION = "pdojo.backends.gpu.session:GpuSession"
_FIBERS = "`pdojo-opt -t fibers` prints code for a CPU, to check it without a device"


class GpuWorker(Worker):
    """Measures programs on a device.

    The process has no limit of address space: a driver reserves as much as all devices and the host have together.
    """

    def __init__(
        self, backend: GpuBackend, *, limits: PhaseLimits | None = None, processors: Sequence[int] | None = None
    ):
        super().__init__(
            limits=limits, memory_bytes=None, processors=processors, compiler=backend.compiler_path, session=SESSION
        )
        self._backend = backend

    def compare(
        self,
        contenders: Sequence[Contender],
        options: Options = DEFAULT_OPTIONS,
        reference: Reference | None = None,
        listener: Listener | None = None,
    ) -> list[Outcome]:
        """Like the base method.

        Also raises MeasurementError if this computer has no such device, and UsageError for several threads.
        """
        if options.threads > 1:
            raise UsageError("one thread of the host launches what runs on a GPU; leave out --threads")
        for program in contenders:
            try:
                if isinstance(program, MeasuredProgram):
                    self._backend.check_runs_here(program.machine)
            except LoweringError as error:
                raise MeasurementError(str(error)) from None
        return super().compare(contenders, options, reference, listener)


@dataclass(frozen=True, eq=False)
class GpuBackend:
    """Device code for one vendor's GPUs."""

    compiler_path: str
    """`module:name` of a GpuCompiler, for workers."""
    unit = "s"
    is_simulated = False
    device_folder = "device"

    @property
    def compiler(self) -> GpuCompiler:
        """The compiler at `compiler_path`."""
        from importlib import import_module

        module, _, name = self.compiler_path.partition(":")
        return getattr(import_module(module), name)

    @property
    def listings(self) -> Mapping[str, Listing]:
        """Machine code, if its disassembler or compiler is installed, and device code."""
        from pdojo.backends.gpu import hip, nvrtc

        if self.compiler.vendor.name == "HIP":
            return {**({"amdgcn": self._amdgcn} if hip.toolchains() else {}), "hip": self._text}
        return {**({"sass": self._sass} if nvrtc.disassembler() is not None else {}), "cuda": self._text}

    def check_lowers(self, nest: Nest, machine: Machine) -> None:
        """Raise LoweringError if the kernel cannot be lowered to code for the machine."""
        from pdojo.backends.gpu.program import greatest_sequence
        from pdojo.backends.gpu.targets import device_text

        (made,) = device_text(nest.kernel, spelling=self.compiler.compiler.spelling, machine=machine).kernels
        greatest_sequence(made.nest, made.launches)

    def check_runs_here(self, machine: Machine) -> None:
        """Raise LoweringError if there is no driver, no device, or if the device has another architecture."""
        from pdojo.backends.gpu.executable import check_architecture

        try:
            check_architecture(self.compiler.gpu(), machine.processor)
        except NoDevice as error:
            raise NoDevice(f"{error}; {_FIBERS}") from None
        except LoweringError as error:
            raise LoweringError(f"{error}; {_FIBERS}") from None

    def runs(self) -> GpuWorker:
        """A worker process, which times programs in turns."""
        return GpuWorker(self)

    def compilers(self, count: int | None = None) -> Workers:
        """`count` processes (None: one for each processor) whose `assemble` compiles programs for a worker to load."""
        return Workers(count, lambda: GpuWorker(self))

    def call(self, kernel: KernelOp, machine: Machine, inputs: Arrays) -> Arrays:
        """Compile a kernel and call it once on the device."""
        from pdojo.backends.calling.arrays import empty_for

        loaded = self.compile(kernel, machine, None, "full")
        arrays = {p.name: empty_for(p) for p in loaded.parameters}
        for name, array in inputs.items():
            arrays[name][...] = array
        loaded(**arrays)
        return {p.name: arrays[p.name] for p in loaded.parameters if p.written}

    def compile(
        self, kernel: KernelOp, machine: Machine, threads: int | None, optimize: Literal["search", "full"]
    ) -> GpuKernel:
        """The kernel as a callable, loaded on the device."""
        self.check_runs_here(machine)
        return self.compiler(kernel, machine, threads=threads, optimize=optimize)

    def compiler_version(self) -> str:
        """The version of NVRTC or clang, and the options."""
        return self.compiler.compiler.version

    def device_code(self, kernel: KernelOp, machine: Machine) -> LaunchedCode:
        """Device code and its image."""
        from pdojo.backends.gpu.images import ImageCache
        from pdojo.backends.gpu.program import LaunchedCode, compile_program

        made = self.compiler
        program = compile_program(kernel, machine, made.compiler, ImageCache())
        contents = (self._text(kernel, machine), program.image.data)
        files = dict(zip(made.vendor.endings, contents, strict=True))
        return LaunchedCode(files, program.workspace_bytes, made.vendor, program)

    def emulate(
        self, kernel: KernelOp, machine: Machine, inputs: Arrays, notice: Callable[[], None]
    ) -> Iterator[tuple[str, Arrays]]:
        """Run device code by fibers of the CPU."""
        from pdojo.backends.gpu.emulation import emulate

        library = self.compiler.compiler.spelling.library
        yield from emulate(kernel, machine, inputs, library=library, notice=notice)

    def environment(self) -> Mapping[str, Any]:
        """The device and its driver, and the tool chain."""
        from pdojo.backends.gpu.environment import environment_of

        return environment_of(self.compiler)

    def _text(self, kernel: KernelOp, machine: Machine) -> str:
        from pdojo.backends.gpu.targets import device_text

        return device_text(kernel, spelling=self.compiler.compiler.spelling, machine=machine).text

    def _sass(self, kernel: KernelOp, machine: Machine) -> str:
        from pdojo.backends.gpu.nvrtc import disassemble

        return disassemble(self.compiler.assemble(kernel, machine).image.data)

    def _amdgcn(self, kernel: KernelOp, machine: Machine) -> str:
        from pdojo.backends.gpu.hip import compile_hip

        return compile_hip(self._text(kernel, machine), processor=machine.processor).assembly


CUDA = GpuBackend("pdojo.backends.gpu.executable:CUDA")
HIP = GpuBackend("pdojo.backends.gpu.executable:HIP")
