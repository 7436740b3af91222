"""Compilation of HIP C++ to machine code by clang, without a GPU or an installation of HIP."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.util import find_spec
from pathlib import Path

from pdojo.backends.gpu.resources import MissingTool, Resources, refusal
from pdojo.errors import LoweringError
from pdojo.files import write_file

REMEDY = "pip install ziglang, or install clang-19 and lld-19 or later"
HEADER = "hip_minimal.h"
"""The header included before the text, which needs no include of its own."""
OLDEST, NEWEST = 19, 30
"""The versions of clang that are searched for; earlier ones do not support gfx942."""
OPTIONS = (
    *("-x", "hip", "--offload-device-only", "-nogpuinc", "-nogpulib", "-nostdinc", "-std=c++17", "-O3"),
    "-ffp-contract=off",
    "-mcode-object-version=5",
    "-fuse-cuid=none",
)
"""No header but ours is included, even if HIP is installed. Products and sums are contracted only where the text says
so (fmaf). The version of code objects is the newest that all of ROCm 6 loads. The object contains no file name,
which would be random."""

_METADATA = re.compile(r"^\s*\.amdgpu_metadata\n(.*?)^\s*\.end_amdgpu_metadata", re.DOTALL | re.MULTILINE)
_ENTRY = re.compile(r"^    \.(\w+): +(\S+)$", re.MULTILINE)


@dataclass(frozen=True)
class Toolchain:
    """The commands of a clang that targets AMD's GPUs."""

    name: str
    clang: tuple[str, ...]
    linker: tuple[str, ...]


@dataclass(frozen=True)
class HipImage:
    """Compiled HIP C++."""

    code_object: bytes
    """An ELF file for one architecture, for HIP's `hipModuleLoadData`."""
    log: str
    """Clang's messages."""
    kernels: dict[str, Resources]
    """The resources of each kernel, keyed by its symbol."""
    assembly: str
    """The machine code as assembly text."""


def toolchains() -> list[Toolchain]:
    """The installed tool chains: the clang of the `ziglang` wheel, which starts fastest, then the system's."""
    found: list[Toolchain] = []
    spec = find_spec("ziglang")
    if spec is not None and spec.submodule_search_locations:
        zig = str(Path(spec.submodule_search_locations[0]) / "zig")
        found.append(Toolchain("zig", (zig, "clang"), (zig, "ld.lld")))
    for version in range(NEWEST, OLDEST - 1, -1):
        clang, linker = (shutil.which(f"{name}-{version}") for name in ("clang++", "ld.lld"))
        if clang is not None and linker is not None:
            found.append(Toolchain(f"clang {version}", (clang,), (linker,)))
    return found


@cache
def version(tools: Toolchain | None = None) -> str:
    """The version string of a clang (None: the first of `toolchains()`). Raises MissingTool if there is none."""
    tools = tools or next(iter(toolchains()), None)
    if tools is None:
        raise MissingTool(f"there is no clang for AMD's GPUs: {REMEDY}")
    done = subprocess.run([*tools.clang, "--version"], capture_output=True, text=True, check=False)
    return f"{tools.name}: {done.stdout.partition(chr(10))[0].strip()}"


def compile_hip(text: str, *, processor: str = "gfx942", tools: Toolchain | None = None) -> HipImage:
    """Compile HIP C++ for a processor, with the first of `toolchains()` if `tools` is None.

    The text needs no include: `hip_minimal.h` is put before it. Equal texts give equal bytes. Raises MissingTool if
    there is no clang, and LoweringError with the first error and its line if clang or the linker rejects the text.
    """
    tools = tools or next(iter(toolchains()), None)
    if tools is None:
        raise MissingTool(f"there is no clang for AMD's GPUs: {REMEDY}")
    with tempfile.TemporaryDirectory(prefix="pdojo-hip-") as folder:
        place = Path(folder)
        write_file(place / HEADER, header_text())
        write_file(place / "kernel.hip", text)
        run = _ToolRun(text, place)
        run(*tools.clang, *OPTIONS, f"--offload-arch={processor}", "-include", HEADER, "-S", "kernel.hip", "-o", "k.s")
        run(*tools.clang, "-target", "amdgcn-amd-amdhsa", f"-mcpu={processor}", "-c", "k.s", "-o", "k.o")
        run(*tools.linker, "-shared", "k.o", "-o", "k.hsaco")
        assembly = (place / "k.s").read_text(encoding="utf-8")
        return HipImage((place / "k.hsaco").read_bytes(), run.log, parse_metadata(assembly), assembly)


def header_text() -> str:
    """The header that is put before every text."""
    return (resources.files("pdojo.backends.gpu") / HEADER).read_text(encoding="utf-8")


def parse_metadata(assembly: str) -> dict[str, Resources]:
    """The resources of each kernel, from the metadata in the assembly of clang (LLVM, "User Guide for AMDGPU Backend",
    code object metadata)."""
    found = _METADATA.search(assembly)
    if found is None:
        return {}
    _, *kernels = re.split(r"^  - ", found[1].split("amdhsa.target")[0], flags=re.MULTILINE)
    entries = [dict(_ENTRY.findall("    " + kernel)) for kernel in kernels]
    return {entry["name"]: _resources(entry) for entry in entries if "vgpr_count" in entry}


def _resources(entry: dict[str, str]) -> Resources:
    spilled = 4 * int(entry["vgpr_spill_count"])
    return Resources(
        registers=int(entry["vgpr_count"]),
        spill_stores=spilled,
        spill_loads=spilled,
        shared=int(entry["group_segment_fixed_size"]),
        stack=int(entry["private_segment_fixed_size"]),
        scalar_registers=int(entry["sgpr_count"]),
        scalar_spills=int(entry["sgpr_spill_count"]),
    )


@dataclass
class _ToolRun:
    """Runs commands on a text in a folder, and collects their standard errors."""

    text: str
    folder: Path
    log: str = ""

    def __call__(self, *command: str) -> None:
        """Run a command. Raises LoweringError if it fails."""
        try:
            done = subprocess.run(
                command, cwd=self.folder, capture_output=True, text=True, errors="replace", check=False
            )
        except OSError as error:
            raise LoweringError(f"cannot start '{command[0]}': {error.strerror}") from None
        self.log += done.stderr
        if done.returncode:
            raise refusal("clang", done.stderr, self.text)
