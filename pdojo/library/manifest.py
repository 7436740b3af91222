"""The manifest of a generated library: entries, variants and digests of all files, as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from pdojo.files import read_bytes

FORMAT = "pdojo library"
VERSION = 1
MANIFEST = "manifest.json"
LARGEST = 1 << 30
"""Most bytes of a file of a library."""


@dataclass(frozen=True)
class Array:
    """An array argument of an operator."""

    name: str
    dtype: str
    """Element type in notation: `f32`, `bf16`, `i8`."""
    shape: tuple[int, ...]
    direction: Literal["in", "inout", "out"]


@dataclass(frozen=True)
class Variant:
    """The program of an entry for a level and an alignment."""

    level: str
    """Name of the machine description in `machines/`."""
    align: int
    """Bytes to which callers align all arrays."""
    trace: str
    """Path of the trace, relative to the library's folder."""
    symbol: str
    """Hidden symbol of the function in the shared library."""
    program: str
    """SHA-256 of the program in canonical notation."""
    object: str
    """SHA-256 of the object file."""
    workspace: tuple[int, int]
    """Bytes of workspace: for a call, and for each thread."""


@dataclass(frozen=True)
class Entry:
    """An operator at sizes."""

    name: str
    """Unique name in the library: `softmax_f32_24576x512`."""
    operator: str
    """The C function without the library's prefix: `softmax_f32`."""
    sizes: Mapping[str, int]
    """Values of the operator's size arguments, in their order; empty for a kernel with fixed sizes."""
    arrays: tuple[Array, ...]
    numerics: tuple[str, ...]
    """Classes of rounding changes that the kernel permits."""
    kernel: str
    """Path of the plain kernel, relative to the library's folder."""
    dispatch: Literal["exact", "chunk", "row"]
    """`exact`: serves its sizes; `chunk`, `row`: part of an operator that serves any size of dimension 0."""
    variants: tuple[Variant, ...]


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
    """SHA-256 of every file of the folder but the manifest, by relative path."""
    devices: tuple[DeviceProgram, ...] = ()
    """Programs for devices, in the order of devices and entries."""

    def library(self, triple: str) -> str:
        """Path of the shared library of a triple, relative to the library's folder."""
        return library_path(self.name, triple)

    def text(self) -> str:
        """The manifest as JSON; the same facts give the same bytes."""
        return json.dumps({"format": FORMAT, "format_version": VERSION, **asdict(self)}, indent=2) + "\n"


def library_path(name: str, triple: str) -> str:
    """Path of the shared library of a triple, relative to the library's folder."""
    return f"lib/{triple}/lib{name}.so"


def digest(data: bytes) -> str:
    """SHA-256 in hexadecimal digits."""
    return sha256(data).hexdigest()


def digests(folder: Path) -> dict[str, str]:
    """SHA-256 of every file below `folder` but the manifest, by relative path, sorted."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path != folder / MANIFEST)
    return {path.relative_to(folder).as_posix(): digest(read_bytes(path, LARGEST)) for path in files}


def _variant_from_json(data: Mapping[str, Any]) -> Variant:
    values: dict[str, Any] = {**data, "workspace": tuple(data["workspace"])}
    return Variant(**values)


def device_from_json(data: Mapping[str, Any]) -> DeviceProgram:
    """The inverse of `asdict`. Raises KeyError or TypeError for other data."""
    return DeviceProgram(data["entry"], data["file"], _variant_from_json(data["variant"]))


def differing(folder: Path, files: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The paths at which a folder differs from the digests in `files`, with what is wrong."""
    there = digests(folder)
    for name in sorted({*there, *files}):
        if name not in there:
            yield name, "the file is missing"
        elif name not in files:
            yield name, "the manifest does not list the file"
        elif there[name] != files[name]:
            yield name, "the file has another digest than in the manifest"


def entry_from_json(data: Mapping[str, Any]) -> Entry:
    """The inverse of `asdict`. Raises KeyError or TypeError for other data."""
    arrays = tuple(Array(a["name"], a["dtype"], tuple(a["shape"]), a["direction"]) for a in data["arrays"])
    variants = tuple(map(_variant_from_json, data["variants"]))
    values: dict[str, Any] = {**data, "arrays": arrays, "numerics": tuple(data["numerics"]), "variants": variants}
    return Entry(**values)
