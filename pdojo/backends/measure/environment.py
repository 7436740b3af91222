"""Facts that determine a measurement in addition to the program: processor, system, tool chain."""

from __future__ import annotations

import os
import platform
import re
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, cast

from pdojo.backends.common.source_digest import RUNNING, source_digest

_PACKAGES = ("pdojo", "xdsl", "numpy", "llvmlite")


@lru_cache(maxsize=1)
def environment() -> dict[str, Any]:
    """The processor, the system, the versions of the tool chain, and a digest of pdojo's source."""
    import llvmlite.binding as llvm

    return {
        "processor": _processor(),
        "cpus": sorted(os.sched_getaffinity(0)),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "llvm": ".".join(map(str, cast(tuple[int, ...], llvm.llvm_version_info))),
        "huge_pages": _chosen("/sys/kernel/mm/transparent_hugepage/enabled"),
        **{name: _version(name) for name in _PACKAGES},
        "lowering": source_digest(*RUNNING),
    }


def huge_page_bytes() -> int | None:
    """Bytes of this process that lie on huge pages; None if the system does not report it."""
    try:
        text = Path("/proc/self/smaps_rollup").read_text()
    except OSError:
        return None
    match = re.search(r"^AnonHugePages:\s+(\d+) kB", text, re.MULTILINE)
    return None if match is None else int(match[1]) << 10


def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.processor()
    match = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return platform.machine() if match is None else match[1].strip()


def _chosen(path: str) -> str | None:
    """The selected value of a sysfs file, which marks it by brackets among all choices; None if there is none."""
    try:
        match = re.search(r"\[(\w+)\]", Path(path).read_text())
    except OSError:
        return None
    return None if match is None else match[1]


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
