"""Images: compiled device code for a driver to load, kept in the user's cache."""

from __future__ import annotations

import json
import os
from base64 import b64decode, b64encode
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol

from pdojo.backends.gpu import hip, nvrtc
from pdojo.backends.gpu.resources import Resources
from pdojo.backends.gpu.spelling import CudaSpelling, DeviceSpelling, HipSpelling
from pdojo.files import cache_folder, read_bytes, replace_file

MOST_BYTES = 256 << 20
"""Limit of the cache in bytes; the least recently used images are removed first."""
_LARGEST = 64 << 20
"""Limit of one image in bytes."""
_FORMAT = [each.name for each in fields(Resources)]
"""The fields of a file's resources; files with other fields, by other versions of pdojo, are ignored."""
_BETWEEN = 32
"""Number of images that a process stores between two checks of the cache's size."""


@dataclass(frozen=True)
class Image:
    """Compiled device code."""

    data: bytes = field(repr=False)
    """The driver's input: a cubin, or a code object."""
    kernels: dict[str, Resources]
    """The resources of each kernel, by its symbol."""

    def to_json(self) -> dict[str, Any]:
        """A JSON object that `from_json` reads."""
        return {"data": b64encode(self.data).decode(), "kernels": {n: asdict(r) for n, r in self.kernels.items()}}

    @staticmethod
    def from_json(data: dict[str, Any]) -> Image:
        """The image that `to_json` wrote."""
        return Image(b64decode(data["data"]), {n: Resources(**r) for n, r in data["kernels"].items()})


class DeviceCompiler(Protocol):
    """Compiles device code in one spelling."""

    @property
    def spelling(self) -> DeviceSpelling:
        """The spelling of the texts that this compiler takes."""
        ...

    @property
    def version(self) -> str:
        """All facts that determine images, in addition to text and processor. Raises MissingTool."""
        ...

    def compile(self, text: str, processor: str) -> Image:
        """Compile a text. Raises MissingTool if the compiler is not installed, LoweringError if it rejects the text."""
        ...


class Nvrtc:
    """CUDA C++ by NVRTC."""

    spelling = CudaSpelling()

    @property
    def version(self) -> str:
        """The version of NVRTC, and the options."""
        return f"{nvrtc.version()}: {' '.join(nvrtc.OPTIONS)}"

    def compile(self, text: str, processor: str) -> Image:
        """A cubin."""
        compiled = nvrtc.compile_cuda(text, processor=processor)
        return Image(compiled.cubin, compiled.kernels)


class Clang:
    """HIP C++ by clang."""

    spelling = HipSpelling()

    @property
    def version(self) -> str:
        """The version of clang, the options, and a digest of the header before every text."""
        header = sha256(hip.header_text().encode()).hexdigest()[:16]
        return f"{hip.version()}: {' '.join(hip.OPTIONS)}, header {header}"

    def compile(self, text: str, processor: str) -> Image:
        """A code object."""
        compiled = hip.compile_hip(text, processor=processor)
        return Image(compiled.code_object, compiled.kernels)


class ImageCache:
    """Images in a folder, keyed by the inputs of the compiler; several processes may use it at once."""

    def __init__(self, folder: Path | None = None, most_bytes: int = MOST_BYTES) -> None:
        """`folder` None is the one in the user's cache."""
        self.folder = folder or cache_folder("images")
        self.most_bytes = most_bytes
        self._stored = 0

    def image(self, text: str, processor: str, compiler: DeviceCompiler) -> Image:
        """The image of a text, from the cache or compiled. Raises the errors of `DeviceCompiler.compile`.

        A damaged file counts as missing. If the folder is not writable, every call compiles.
        """
        facts = json.dumps([_FORMAT, compiler.spelling.name, compiler.version, processor, text])
        file = self.folder / f"{sha256(facts.encode()).hexdigest()}.image"
        found = _read(file)
        if found is None:
            found = compiler.compile(text, processor)
            self._store(file, found)
        return found

    def _store(self, file: Path, image: Image) -> None:
        payload = json.dumps(image.to_json()).encode()
        with suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            replace_file(file, sha256(payload).hexdigest().encode() + b"\n" + payload)
            self._stored += 1
            if self._stored % _BETWEEN == 1:
                self._remove_oldest()

    def _remove_oldest(self) -> None:
        entries = [(entry.stat(), entry.path) for entry in os.scandir(self.folder) if entry.name.endswith(".image")]
        total = sum(stat.st_size for stat, _ in entries)
        for stat, path in sorted(entries, key=lambda entry: entry[0].st_mtime_ns):
            if total <= self.most_bytes:
                return
            Path(path).unlink(missing_ok=True)
            total -= stat.st_size


def _read(file: Path) -> Image | None:
    """The image in a file, marked as used now; None if the file is missing or damaged."""
    try:
        digest, _, payload = read_bytes(file, _LARGEST).partition(b"\n")
        os.utime(file)
    except OSError:
        return None
    if sha256(payload).hexdigest().encode() != digest:
        return None
    return Image.from_json(json.loads(payload))
