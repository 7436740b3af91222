"""The processor of this computer, as a machine description."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import cast

from pdojo.dialect.machines import NARROWED, host_description, shipped_machines
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.machines.machine_file import read_machine
from pdojo.dialect.machines.shipped import shipped_machine
from pdojo.errors import UsageError
from pdojo.files import cache_folder

_ARM = ("aarch64", "arm64")
_CORES = {"znver4": "x86-64-zen4", "neoverse-v2": "neoverse-v2"}
"""Descriptions of cores, by LLVM's names, whose pipelines differ from the usual ones for their features."""

UNCALIBRATED = "PDOJO_UNCALIBRATED"
"""Environment variable: if set and not empty, measurements of this processor are neither made nor used."""


@lru_cache(maxsize=1)
def detect() -> Machine:
    """Describe this computer's processor, from the operating system, LLVM, and stored measurements.

    Raises UsageError for a file of measurements that cannot be read.
    """
    found = uncalibrated()
    file = calibration_file(found)
    if os.environ.get(UNCALIBRATED) or file is None or not file.is_file():
        return found
    return replace(found, measured=read_machine(file, shipped_machine).measured)


def calibration_file(described: Machine) -> Path | None:
    """The file of this processor's measurements, in the user's cache; other processors have other files.

    None if the user has no home folder.
    """
    facts = (processor_name(), described.threads, described.cache_bytes, described.features)
    folder = cache_folder("machines")
    return None if folder is None else folder / f"{sha256(repr(facts).encode()).hexdigest()[:16]}.toml"


def processor_name() -> str:
    """The processor's name in the system's words."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    name = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    return name or platform.processor() or platform.machine()


def parent_of_host() -> Machine | None:
    """The shipped description that the host's description is derived from; None if the architecture has none."""
    found = _described_here()
    return shipped_machine(found.name) if found.name != "host" else None


def _described_here() -> Machine:
    import llvmlite.binding as llvm

    detected = cast("Mapping[str, bool]", llvm.get_host_cpu_features())
    features = {name for name, present in detected.items() if present}
    whole = described(platform.machine(), features, llvm.get_host_cpu_name())
    name = os.environ.get(NARROWED)
    return narrowed(whole, name) if name else whole


def narrowed(whole: Machine, name: str) -> Machine:
    """The shipped machine `name`. Raises UsageError if the processor `whole` lacks a feature of it."""
    able = [each for each in map(shipped_machine, shipped_machines()[1:]) if _contains(whole, each)]
    found = next((each for each in able if each.name == name), None)
    if found is None:
        known = ", ".join(each.name for each in able) or "nothing"
        raise UsageError(f"{NARROWED}={name}: this processor can be narrowed to {known}, not to '{name}'")
    return found


def _contains(whole: Machine, narrower: Machine) -> bool:
    return whole.architecture == narrower.architecture and set(narrower.features) <= set(whole.features)


def uncalibrated() -> Machine:
    """The processor of this computer, without measurements."""
    base = _described_here()
    return replace(
        base,
        name="host",
        description=host_description(),
        threads=_threads(),
        cache_bytes=_cache_bytes() or base.cache_bytes,
        cache_line=_cache_line() or base.cache_line,
    )


def described(architecture: str, features: set[str], core: str = "") -> Machine:
    """A machine for an architecture (the system's name), its features, and a core (LLVM's name)."""
    found = _of_features(architecture, features)
    if core not in _CORES or shipped_machine(_CORES[core]).architecture != found.architecture:
        return found
    return replace(found, cpu=shipped_machine(_CORES[core]).cpu)


def _of_features(architecture: str, features: set[str]) -> Machine:
    present = tuple(sorted(features))
    if architecture in ("x86_64", "AMD64"):
        if "avx512f" in features:
            tiles = "amx-tile" in features
            return replace(shipped_machine("x86-64-amx" if tiles else "x86-64-avx512"), features=present)
        base = shipped_machine("x86-64-avx2")
        if "avx2" in features:
            return replace(base, features=present)
        # SSE2 is part of x86-64: sixteen registers of 16 bytes.
        return replace(base, vector_bytes=(16,), register_bytes=256, gather=False, features=present)
    if architecture in _ARM:
        # NEON is part of AArch64; systems that report no features have it too.
        return replace(shipped_machine("aarch64-neon"), features=present)
    if architecture == "riscv64" and "v" in features:
        width = max((int(m[1]) for f in features if (m := re.fullmatch(r"zvl(\d+)b", f))), default=128) // 8
        return replace(shipped_machine("rv64gcv"), vector_bytes=(width,), register_bytes=32 * width, features=present)
    return Machine("host", (), 0, gather=False, threads=1, architecture=architecture, features=present)


def _threads() -> int:
    """Processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")


def _cache_bytes() -> tuple[int, ...]:
    """Data cache sizes of processor 0 in bytes, innermost first, from sysfs; empty if sysfs has none."""
    sizes: dict[int, int] = {}
    for entry in sorted(_CACHES.glob("index*")):
        try:
            kind, level, size = ((entry / f).read_text().strip() for f in ("type", "level", "size"))
        except OSError:
            return ()
        if kind != "Instruction":
            sizes[int(level)] = int(size.rstrip("K")) << 10
    return tuple(size for _, size in sorted(sizes.items()))


def _cache_line() -> int:
    """Bytes of a line of processor 0's first cache, from sysfs; 0 if sysfs has none."""
    try:
        return int((_CACHES / "index0" / "coherency_line_size").read_text())
    except (OSError, ValueError):
        return 0
