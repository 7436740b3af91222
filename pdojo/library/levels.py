"""The levels of a library: machine descriptions, best first, for which each entry has programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.machines.machine_file import read_machine
from pdojo.dialect.machines.measured import ProcessorMeasurements
from pdojo.dialect.machines.registry import host, known_machine, machine
from pdojo.dialect.machines.writing import machine_text
from pdojo.errors import PdojoError, UsageError
from pdojo.library.features import ARCHITECTURES, detectable, feature_tests
from pdojo.library.manifest import machine_path, triple_of
from pdojo.library.paths import inside
from pdojo.library.spec import LibrarySpec

TILES = "amx-tile"
"""The feature whose instructions a process must request from the system."""
HOST = "host"


@dataclass(frozen=True)
class Level:
    """A machine description of a library."""

    machine: Machine
    """The description as `machines/NAME.toml` has it."""
    tuned: Machine
    """The description for choices: with measurements of this computer, if the level is its own."""
    is_measured: bool = False
    """Whether programs are timed on this computer."""

    @property
    def name(self) -> str:
        """The name in the manifest."""
        return self.machine.name

    @property
    def triple(self) -> str:
        """The folder of its shared library, which is LLVM's triple."""
        return triple_of(self.machine.architecture)

    def text(self, library: str) -> str:
        """The machine file; the name in it begins with the library's, as shipped names are taken."""
        parent = _parent(self.machine)
        return machine_text(replace(self.machine, name=f"{library}.{self.name}", description=""), parent)


def read_level(folder: Path, name: str) -> Machine:
    """The machine description of a level of the library in a folder.

    Raises UsageError for a wrong file, and for one that inherits from another file.
    """
    found = read_machine(inside(folder, machine_path(name)), known_machine, alone=True)
    return replace(found, name=name)


def check_level(described: Machine) -> None:
    """Raise UsageError for a machine that is no CPU of libraries, or whose features no program can detect."""
    if described.backend != "llvm" or described.architecture not in ARCHITECTURES:
        raise UsageError(
            f"'{described.name}' is no CPU that libraries are for; they are for {', '.join(ARCHITECTURES)}"
        )
    feature_tests(described)


def levels_of(spec: LibrarySpec, *, measure: bool) -> tuple[Level, ...]:
    """The levels of a specification, best first; with `measure`, the best one that this computer runs is measured.

    Raises UsageError for an unknown machine, or one that is no CPU or whose features no program can detect.
    """
    found = sorted((_level(name, spec) for name in spec.levels), key=_rank)
    names = [level.name for level in found]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise spec.error(f"key 'levels': two levels are called '{twice}'")
    here = next((number for number, level in enumerate(found) if measure and runs_here(level.machine)), None)
    if here is None and spec.tuning.search is not None:
        raise spec.error("key 'tuning.search': this computer runs no level of the library, so nothing can be searched")
    return tuple(replace(level, is_measured=number == here) for number, level in enumerate(found))


def runs_here(machine: Machine) -> bool:
    """Whether this computer runs the code of a machine."""
    own = host()
    return machine.architecture == own.architecture and set(machine.features) <= set(own.features)


def _rank(level: Level) -> tuple[str, int, int]:
    """The levels of an architecture, sorted: the widest vectors and the most features first."""
    described = level.machine
    return described.architecture, -max(described.vector_bytes, default=0), -len(described.features)


def _level(name: str, spec: LibrarySpec) -> Level:
    try:
        path = str(spec.folder / name) if name.endswith(".toml") else name
        described = own_level() if name == HOST else Level(machine(path), machine(path))
        check_level(described.machine)
    except PdojoError as error:
        raise spec.error(f"key 'levels': {error}") from None
    threads = described.machine.threads if spec.threads is None else spec.threads
    return Level(
        replace(described.machine, threads=threads, measured=ProcessorMeasurements()),
        replace(described.tuned, threads=threads),
    )


def own_level() -> Level:
    """This computer's processor as a level, with the features that a program can detect."""
    own = host()
    found = replace(own, name=_own_name(own), features=detectable(own), description="")
    return Level(found, found)


def _own_name(own: Machine) -> str:
    import llvmlite.binding as llvm

    return f"{own.architecture.replace('_', '-')}-{llvm.get_host_cpu_name()}"


def _parent(described: Machine) -> Machine | None:
    """A shipped description with the same instructions, from which the file inherits them."""
    from pdojo.dialect.machines import shipped_machines
    from pdojo.dialect.machines.shipped import shipped_machine

    shipped = [shipped_machine(name) for name in shipped_machines() if name != HOST]
    same = [each for each in shipped if _code(each) == _code(described)]
    named = next((each for each in same if each.name == described.name), None)
    if named is not None or not _code(described):
        return named
    if not same:
        raise UsageError(
            f"level '{described.name}' has instructions of its own; libraries take those of shipped machines only"
        )
    return same[0]


def _code(described: Machine) -> Sequence[object]:
    return [each.name for each in (*described.intrinsics, *described.matrix_loads)]
