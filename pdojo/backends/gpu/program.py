"""A kernel as compiled device code: its image, and the launches of a call. It needs no device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from pdojo.backends.backend import DeviceCode
from pdojo.backends.gpu.device_function import LaunchText
from pdojo.backends.gpu.images import DeviceCompiler, Image, ImageCache
from pdojo.backends.gpu.resources import MULTIPROCESSORS, Resources, occupancy
from pdojo.backends.gpu.sequence import Launched, launch_sequence, roots_of
from pdojo.backends.gpu.targets import device_text
from pdojo.backends.gpu.vendors import Vendor
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.view.nest import Nest
from pdojo.errors import LoweringError


@dataclass(frozen=True)
class Entry:
    """A device function of a kernel and the parameters of its launch."""

    name: str
    root: int
    """The number of its node among those with a launch (`roots_of`)."""
    blocks: int
    """Blocks at the greatest sizes."""
    threads: int
    """Threads of a block."""
    shared_bytes: int
    """Bytes of dynamic shared memory."""
    arrays: tuple[int, ...]
    """The first parameters: positions of arrays in the kernel's interface."""
    has_workspace: bool
    """Whether the next parameter is the workspace; the kernel's sizes follow."""
    variables: tuple[int, ...]
    """The last parameters: variables of the host's loops, by depth."""


@dataclass(frozen=True)
class DeviceProgram:
    """A compiled kernel."""

    processor: str
    """The architecture of the code."""
    image: Image
    entries: tuple[Entry, ...]
    sequence: tuple[Launched, ...]
    """The launches of a call, at the greatest sizes."""
    workspace_bytes: int

    def to_json(self) -> dict[str, Any]:
        """A JSON object that `from_json` reads."""
        rest = {"processor": self.processor, "sequence": self.sequence, "workspace_bytes": self.workspace_bytes}
        return {**rest, "image": self.image.to_json(), "entries": [asdict(entry) for entry in self.entries]}

    @staticmethod
    def from_json(data: dict[str, Any]) -> DeviceProgram:
        """The program that `to_json` wrote."""
        entries = tuple(
            replace(Entry(**entry), arrays=tuple(entry["arrays"]), variables=tuple(entry["variables"]))
            for entry in data["entries"]
        )
        sequence = tuple(Launched(number, blocks, tuple(values)) for number, blocks, values in data["sequence"])
        image = Image.from_json(data["image"])
        return DeviceProgram(data["processor"], image, entries, sequence, data["workspace_bytes"])

    @property
    def resources(self) -> list[Resources]:
        """The compiler's resource report of each entry."""
        return [self.image.kernels[entry.name] for entry in self.entries]


@dataclass(frozen=True)
class LaunchedCode(DeviceCode):
    """Device code, an image, and how a driver launches it."""

    vendor: Vendor
    program: DeviceProgram


def compile_program(kernel: KernelOp, machine: Machine, compiler: DeviceCompiler, cache: ImageCache) -> DeviceProgram:
    """Compile a kernel for a machine; needs no device.

    Raises MissingTool if the compiler is not installed, LoweringError if device code cannot express the kernel, or a
    block does not fit the machine.
    """
    made = device_text(kernel, spelling=compiler.spelling, machine=machine)
    (text,) = made.kernels
    nest = text.nest
    roots = roots_of(nest)
    interface = [b for b in nest.buffers if b.intent is not None]
    entries = tuple(
        Entry(
            entry.name,
            roots.index(entry.launch.root),
            entry.launch.blocks,
            entry.launch.threads,
            entry.shared_bytes,
            tuple(interface.index(b) for b in entry.arrays),
            entry.has_workspace,
            tuple(scope.depth for scope in entry.variables),
        )
        for entry in text.launches
    )
    sequence = greatest_sequence(nest, text.launches)
    image = cache.image(made.text, machine.processor, compiler)
    _check(nest.name, text.launches, image, machine)
    return DeviceProgram(machine.processor, image, entries, sequence, text.workspace.size_bytes)


def greatest_sequence(nest: Nest, launches: Sequence[LaunchText]) -> tuple[Launched, ...]:
    """The launches of a call at the greatest sizes. Raises LoweringError if there are too many."""
    roots = [entry.launch.root for entry in launches]
    variables = [[scope.depth for scope in entry.variables] for entry in launches]
    return launch_sequence(nest, roots, variables, {name: size.high for name, size in nest.sizes.items()})


def _check(kernel: str, launches: Sequence[LaunchText], image: Image, machine: Machine) -> None:
    """Raise LoweringError if a launch would fail for lack of shared memory or registers. Spills are allowed."""
    for entry in launches:
        where = f"kernel '{kernel}', device function '{entry.name}'"
        found = image.kernels[entry.name]
        shared, most = found.shared + entry.shared_bytes, machine.gpu.shared_bytes
        if shared > most:
            raise LoweringError(f"{where}: a block takes {shared} bytes of shared memory, and may take {most}")
        described = MULTIPROCESSORS.get(machine.processor)
        if described is not None:
            full = occupancy(found, entry.launch.threads, described, entry.shared_bytes)
            if full.blocks == 0:
                raise LoweringError(
                    f"{where}: no block of {entry.launch.threads} threads with {found.registers} registers and "
                    f"{shared} bytes of shared memory fits on a multiprocessor; {full.limit} are exhausted"
                )
