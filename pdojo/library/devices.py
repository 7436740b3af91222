"""Programs of a library for GPUs and Snitch cores: compiled without a device, with a loader in C for GPUs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from pdojo.backends.backend import CompilesForDevices
from pdojo.backends.gpu.resources import MissingTool
from pdojo.backends.gpu.vendors import Vendor
from pdojo.backends.registry import backend_of
from pdojo.dialect.assumptions import with_alignment
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation import print_notation
from pdojo.dialect.ops import KernelOp
from pdojo.errors import LoweringError, PdojoError, UsageError
from pdojo.library.entries import PlannedEntry
from pdojo.library.levels import Level
from pdojo.library.loader import LoadedEntry, loader_texts
from pdojo.library.manifest import ALIGNED, DeviceProgram, digest, is_open, machine_path, program_name, trace_path
from pdojo.library.naming import licence_line
from pdojo.library.records import Variant
from pdojo.library.spec import LibrarySpec
from pdojo.passes.scheduled_kernel import PASS, make_moves

_LOADER = "device_loader.h"


@dataclass(frozen=True)
class DeviceChoice:
    """An entry on a device, with its moves."""

    entry: PlannedEntry
    device: Level
    trace: str
    kernel: KernelOp
    """The program after the moves."""

    @property
    def name(self) -> str:
        """A unique name, for files."""
        return program_name(self.entry.name, self.device.name, ALIGNED)


@dataclass(frozen=True)
class DeviceFiles:
    """The files of programs for devices, keyed by path relative to the library's folder, and their facts."""

    files: Mapping[str, str | bytes]
    programs: tuple[DeviceProgram, ...]
    tools: Mapping[str, str]
    """Versions of the compilers."""
    left_out: tuple[str, ...]
    """Entries that a device has no code for, with the reason."""


def devices_of(spec: LibrarySpec) -> tuple[Level, ...]:
    """The devices of a specification. Raises UsageError for an unknown machine, or one that is no such device."""
    found: list[Level] = []
    for name in spec.devices:
        try:
            described = machine(str(spec.folder / name) if name.endswith(".toml") else name)
            check_device(described)
        except PdojoError as error:
            raise spec.error(f"key 'devices': {error}") from None
        found.append(Level(described, described))
    return tuple(found)


def check_device(described: Machine) -> None:
    """Raise UsageError for a machine that is no device of libraries."""
    _backend(described)


def _backend(described: Machine) -> CompilesForDevices:
    found = backend_of(described)
    if not isinstance(found, CompilesForDevices):
        raise UsageError(f"'{described.name}' is no GPU and no Snitch core; CPUs are levels")
    return found


def device_tools(devices: Iterable[Level]) -> dict[str, str]:
    """The versions of the compilers of devices. Raises MissingTool if one is not installed."""
    found = {device.name: _backend(device.machine).compiler_version() for device in devices}
    return {f"compiler for {name}": version for name, version in found.items() if version is not None}


def choose_for_devices(devices: Sequence[Level], entries: Sequence[PlannedEntry]) -> list[DeviceChoice]:
    """The expert pass's programs of all entries with constant sizes, keyed by device."""
    exact = [entry for entry in entries if not is_open(entry.sizes)]
    return [_choose(entry, device) for device in devices for entry in exact]


def _choose(entry: PlannedEntry, device: Level) -> DeviceChoice:
    made = make_moves(with_alignment(entry.kernel, ALIGNED), device.machine, PASS if entry.is_tuned else None)
    return DeviceChoice(entry, device, made.game.trace.dump(), made.after)


def device_files(spec: LibrarySpec, choices: Sequence[DeviceChoice]) -> DeviceFiles:
    """Compile programs for devices, in the order given. Raises MissingTool if a compiler is not installed."""
    made = _DeviceFiles(spec)
    for device, group in groupby(choices, lambda choice: choice.device):
        made.add(device, list(group))
    return DeviceFiles(made.files, tuple(made.programs), made.tools, tuple(made.left_out))


class _DeviceFiles:
    def __init__(self, spec: LibrarySpec) -> None:
        self.files: dict[str, str | bytes] = {}
        self.programs: list[DeviceProgram] = []
        self.tools: dict[str, str] = {}
        self.left_out: list[str] = []
        self._spec = spec

    def add(self, device: Level, choices: Sequence[DeviceChoice]) -> None:
        """Compile the programs of a device."""
        from pdojo.backends.gpu.program import LaunchedCode  # much to load, for few libraries

        backend = _backend(device.machine)
        folder = f"{backend.device_folder}/{device.name}"
        loaded: list[tuple[Vendor, LoadedEntry]] = []
        for choice in choices:
            try:
                made = backend.device_code(choice.kernel, device.machine)
            except MissingTool:
                raise
            except LoweringError as error:
                self.left_out.append(f"{choice.entry.name} has no program for {device.name}: {error}")
                continue
            files = {f"{choice.entry.name}.{ending}": data for ending, data in made.files.items()}
            image = list(files)[-1]
            if isinstance(made, LaunchedCode):
                licence = licence_line(self._spec.licence)
                files = {name: f"{licence}\n{data}" if isinstance(data, str) else data for name, data in files.items()}
                loaded.append((made.vendor, LoadedEntry(choice.entry, image, made.program)))
            self.tools |= device_tools([device])
            self.files |= {f"{folder}/{name}": data for name, data in files.items()}
            self.files[trace_path(choice.name)] = choice.trace
            self.programs.append(_facts(choice, f"{folder}/{image}", files[image], made.workspace_bytes))
        if any(program.variant.level == device.name for program in self.programs):
            self.files[machine_path(device.name)] = device.text(self._spec.name)
        if loaded:
            vendor, entries = loaded[0][0], [entry for _, entry in loaded]
            stem = "".join(c if c.isalnum() else "_" for c in f"{self._spec.prefix}_{device.name}")
            texts = loader_texts(self._spec.name, stem, vendor, entries, self._spec.licence)
            texts[_LOADER] = (Path(__file__).parent / _LOADER).read_text(encoding="utf-8")
            self.files |= {f"{folder}/{name}": text for name, text in texts.items()}


def _facts(choice: DeviceChoice, file: str, code: str | bytes, workspace: int) -> DeviceProgram:
    data = code.encode() if isinstance(code, str) else code
    program = digest(print_notation(choice.kernel).encode())
    trace = trace_path(choice.name)
    variant = Variant(choice.device.name, ALIGNED, trace, choice.name, program, digest(data), (workspace, 0))
    return DeviceProgram(choice.entry.name, file, variant)
