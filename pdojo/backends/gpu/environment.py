"""Facts that determine times on a GPU, in addition to program and machine."""

from __future__ import annotations

import platform
from importlib.metadata import version
from typing import Any

from pdojo.backends.common.source_digest import RUNNING, source_digest
from pdojo.backends.gpu.driver import NoDevice, driver_of
from pdojo.backends.gpu.executable import GpuCompiler
from pdojo.backends.gpu.resources import MissingTool

SOURCES = (*RUNNING, "backends/c/**/*.py", "backends/gpu/**/*.py", "backends/gpu/*.h")
"""Files that generate device code, run it, or define its expected results."""


def environment_of(compiler: GpuCompiler) -> dict[str, Any]:
    """The device and its driver (None without a device), the compiler, and versions of packages."""
    return {
        **_device(compiler),
        "compiler": _compiler(compiler),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        **{name: version(name) for name in ("pdojo", "xdsl", "numpy")},
        "lowering": source_digest(*SOURCES),
    }


def _device(compiler: GpuCompiler) -> dict[str, Any]:
    try:
        driver = driver_of(compiler.vendor)
    except NoDevice:
        return {"device": None, "architecture": None, "driver": None}
    info = driver.info()
    return {"device": info.name, "architecture": info.architecture, "driver": driver.version}


def _compiler(compiler: GpuCompiler) -> str | None:
    try:
        return compiler.compiler.version
    except MissingTool:
        return None
