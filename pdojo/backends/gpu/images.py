"""Images: compiled device code for a driver to load, kept in the user's cache."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from dataclasses import asdict, dataclass, field, fields
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol

from pdojo.backends.common.file_cache import MOST_BYTES, FileCache
from pdojo.backends.gpu import hip, nvrtc
from pdojo.backends.gpu.resources import Resources
from pdojo.backends.gpu.spelling import CudaSpelling, DeviceSpelling, HipSpelling
from pdojo.files import cache_folder

_FORMAT = [each.name for each in fields(Resources)]
"""The fields of a file's resources; files with other fields, by other versions of pdojo, are ignored."""


@dataclass(frozen=True)
class Image:
    """Compiled device code."""

    data: bytes = field(repr=False)
    """The driver's input: a cubin, or a code object."""
    kernels: dict[str, Resources]
    """The resources of each kernel, keyed by its symbol."""

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

    @property
    def toolkit(self) -> tuple[int, int] | None:
        """The version of CUDA that images are for; None if drivers do not tell theirs in such numbers."""
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

    @property
    def toolkit(self) -> tuple[int, int]:
        """The version of NVRTC."""
        return nvrtc.toolkit()

    def compile(self, text: str, processor: str) -> Image:
        """A cubin."""
        compiled = nvrtc.compile_cuda(text, processor=processor)
        return Image(compiled.cubin, compiled.kernels)


class Clang:
    """HIP C++ by clang."""

    spelling = HipSpelling()
    toolkit = None

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
        self._files = FileCache(folder or cache_folder("images"), ".image", most_bytes)

    def image(self, text: str, processor: str, compiler: DeviceCompiler) -> Image:
        """The image of a text, from the cache or compiled. Raises the errors of `DeviceCompiler.compile`.

        A damaged file counts as missing. If the folder is not writable, every call compiles.
        """
        key = json.dumps([_FORMAT, compiler.spelling.name, compiler.version, processor, text])
        known = self._files.read(key)
        if known is not None:
            return Image.from_json(json.loads(known))
        found = compiler.compile(text, processor)
        self._files.store(key, json.dumps(found.to_json()).encode())
        return found
