"""The manifest of a generated library: entries, variants and digests of all files, as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from hashlib import sha256
from math import prod
from pathlib import Path
from typing import Any

from pdojo.errors import UsageError
from pdojo.files import read_bytes
from pdojo.kernels.workload import size_of, size_text
from pdojo.library.model_plan import ModelPlan, plan_from_json
from pdojo.library.paths import contents
from pdojo.library.records import Array, Entry, Sizes, Variant, range_of

FORMAT = "pdojo library"
VERSION = 3
MANIFEST = "manifest.json"
LARGEST = 1 << 30
"""Most bytes of a file of a library."""
ALIGNED, UNALIGNED = 64, 1
"""Alignments of the two variants: of a cache line, and of the elements."""


@dataclass(frozen=True)
class DeviceProgram:
    """The program of an entry for a GPU or a Snitch core."""

    entry: str
    file: str
    """Path of the code: a cubin, a code object of HIP, or assembly of a Snitch core."""
    variant: Variant
    """The program; `symbol` is a name of it, `object` the digest of the file."""


@dataclass(frozen=True)
class Manifest:
    """All facts of a library."""

    name: str
    version: str
    prefix: str
    licence: str
    """SPDX expression."""
    triples: tuple[str, ...]
    """LLVM triples of the shared libraries in `lib/`."""
    levels: tuple[str, ...]
    """Machine descriptions, best first; a handle takes the first whose features the processor has."""
    tools: Mapping[str, str]
    """Versions that determine bytes: pdojo, llvmlite, LLVM, compiler, linker."""
    entries: tuple[Entry, ...]
    files: Mapping[str, str]
    """SHA-256 of every file of the folder but the manifest, keyed by relative path."""
    devices: tuple[DeviceProgram, ...] = ()
    """Programs for devices, in the order of devices and entries."""
    models: tuple[ModelPlan, ...] = ()
    """Models, sorted by name."""

    def library(self, triple: str) -> str:
        """Path of the shared library of a triple, relative to the library's folder."""
        return library_path(self.name, triple)

    def text(self) -> str:
        """The manifest as JSON; the same facts give the same bytes."""
        facts = {"format": FORMAT, "format_version": VERSION, **asdict(self)}
        return json.dumps(facts, indent=2, default=size_text) + "\n"


def triple_of(architecture: str) -> str:
    """LLVM's triple of an architecture."""
    return f"{architecture}-unknown-linux-gnu"


def library_path(name: str, triple: str) -> str:
    """Path of the shared library of a triple, relative to the library's folder, as linkers find it."""
    return f"lib/{triple}/lib{name}.so"


def soname(name: str, version: str) -> str:
    """The name by which programs load a library: versions with the same first number are compatible."""
    return f"lib{name}.so.{major(version)}"


def major(version: str) -> str:
    """The first number of a version."""
    return version.partition(".")[0]


def digest(data: bytes) -> str:
    """SHA-256 in hexadecimal digits."""
    return sha256(data).hexdigest()


def digests(folder: Path) -> dict[str, str]:
    """SHA-256 of every regular file below `folder` but the manifest, keyed by relative path, sorted."""
    return {path: digest(read_bytes(folder / path, LARGEST)) for path, fault in _listed(folder) if fault is None}


def _listed(folder: Path) -> list[tuple[str, str | None]]:
    return sorted(((path, fault) for path, fault in contents(folder) if path != MANIFEST), key=lambda each: each[0])


def order_of(operator: str, sizes: Sizes) -> tuple[str, int, tuple[tuple[int, int, int], ...]]:
    """The key by which entries are sorted: those that serve fewer sizes first. A call runs the first that serves it."""
    ranges = [range_of(size) for size in sizes.values()]
    return operator, prod(map(len, ranges)), tuple((each.start, each[-1] if each else 0, each.step) for each in ranges)


def is_open(sizes: Sizes) -> bool:
    """Whether calls choose a size."""
    return any(isinstance(size, range) for size in sizes.values())


def entry_name(operator: str, sizes: Sizes) -> str:
    """The name of an entry: `softmax_f32_64x512`, `softmax_f32_1to4096x8to512by8`."""
    shape = "x".join(size_text(size).replace("..", "to").replace("/", "by") for size in sizes.values())
    return f"{operator}_{shape}" if shape else operator


def kernel_path(entry: str) -> str:
    """Path of the plain kernel of an entry, relative to the library's folder."""
    return f"kernels/{entry}.pdojo"


def program_name(entry: str, level: str, align: int) -> str:
    """The name of the program of an entry, for files and symbols."""
    return f"{entry}-{level}{'' if align == ALIGNED else '-unaligned'}"


def trace_path(program: str) -> str:
    """Path of the trace of a program by its name, relative to the library's folder."""
    return f"traces/{program}.trace"


def machine_path(level: str) -> str:
    """Path of the machine description of a level, relative to the library's folder."""
    return f"machines/{level}.toml"


def _variant_from_json(data: Mapping[str, Any]) -> Variant:
    values: dict[str, Any] = {**data, "workspace": tuple(data["workspace"])}
    return Variant(**values)


def _range(text: str) -> range:
    """The inverse of `size_text` for a range. Raises UsageError for another text."""
    found = size_of(text)
    if isinstance(found, int) or size_text(found) != text:
        raise UsageError(f"'{text}' is no range of sizes")
    return found


def sizes_from_json(data: Mapping[str, Any]) -> Sizes:
    """Sizes of an entry or a model. Raises UsageError for a text that is no size."""
    return {name: _range(size) if isinstance(size, str) else size for name, size in data.items()}


def model_from_json(data: Mapping[str, Any]) -> ModelPlan:
    """The inverse of `asdict`. Raises KeyError or TypeError for other data, UsageError for a text that is no size."""
    return plan_from_json(data, entry_from_json, sizes_from_json)


def device_from_json(data: Mapping[str, Any]) -> DeviceProgram:
    """The inverse of `asdict`. Raises KeyError or TypeError for other data."""
    return DeviceProgram(data["entry"], data["file"], _variant_from_json(data["variant"]))


def differing(folder: Path, files: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The paths at which a folder differs from the digests in `files`, with what is wrong."""
    there = dict(_listed(folder))
    for path in sorted({*there, *files}):
        fault = "the file is missing" if path not in there else there[path] or _fault(folder / path, files.get(path))
        if fault is not None:
            # The names of files of a foreign folder may do something to a terminal.
            yield path if path.isprintable() else ascii(path), fault


def _fault(file: Path, wanted: str | None) -> str | None:
    """The fault of a regular file whose digest should be `wanted`; None if there is none."""
    if wanted is None:
        return "the manifest does not list the file"
    try:
        found = digest(read_bytes(file, LARGEST))
    except OSError as error:
        return f"it cannot be read: {error.strerror}"
    return None if found == wanted else "the file has another digest than in the manifest"


def entry_from_json(data: Mapping[str, Any]) -> Entry:
    """The inverse of `asdict`. Raises KeyError or TypeError for other data, UsageError for a text that is no size."""
    arrays = tuple(Array(a["name"], a["dtype"], tuple(a["shape"]), a["direction"]) for a in data["arrays"])
    variants = tuple(map(_variant_from_json, data["variants"]))
    sizes = sizes_from_json(data["sizes"])
    lists = {"arrays": arrays, "numerics": tuple(data["numerics"]), "variants": variants}
    values: dict[str, Any] = {**data, **lists, "sizes": sizes}
    return Entry(**values)
