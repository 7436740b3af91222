"""A small library for tests, and calls of its functions through ctypes."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from pdojo.backends.calling.arrays import aligned_empty
from pdojo.dialect.machines.registry import host
from pdojo.errors import UsageError
from pdojo.library.build import build_library
from pdojo.library.linking import compiler_for
from pdojo.library.manifest import Manifest, triple_of
from pdojo.library.publishing import check_digests
from pdojo.library.spec import LibrarySpec, spec_of
from toolchain import library_fault

SHIPPED = {"x86_64": ["x86-64-avx2"], "aarch64": ["aarch64-neon"], "riscv64": ["rv64gcv"]}
"""A level besides the host's own, by architecture."""


def require_compiler(architecture: str | None = None) -> None:
    """Skip the test, with the reason, if no C compiler links for an architecture, by default the host's."""
    try:
        fault = library_fault(compiler_for(architecture or host().architecture).command)
    except UsageError as error:
        fault = str(error)
    if fault is not None:
        pytest.skip(fault)


def small_spec(**changes: Any) -> LibrarySpec:
    """A specification of a few tiny operators, chosen by the pass."""
    data: dict[str, Any] = {
        "name": "small",
        "version": "2.1.0",
        "licence": "MIT",
        "levels": [*SHIPPED[host().architecture], "host"],
        "threads": 2,
        "tuning": {"measure": False},
        "operators": [
            {"kernel": "softmax", "shapes": ["6x16"], "rows": True},
            {"kernel": "matmul", "shapes": ["6x10x8"], "plain": ["3x5x7", "3x5x6", "2x9x9"]},
        ],
    }
    return spec_of({**data, **changes}, "<test>", Path())


def build_unproved(spec: LibrarySpec, folder: Path, kernels: Sequence[Any] = (), **options: Any) -> Manifest:
    """Build a library of which the digests of files alone are checked, unless `options` say more."""
    options.setdefault("check", check_digests)
    return build_library(spec, folder, kernels, **options)


@dataclass
class Loaded:
    """A shared library in this process."""

    folder: Path
    name: str
    library: ctypes.CDLL

    @staticmethod
    def of(folder: Path, name: str = "small") -> Loaded:
        """The library in a folder."""
        path = folder / "lib" / triple_of(host().architecture) / f"lib{name}.so"
        found = Loaded(folder, name, ctypes.CDLL(str(path)))
        for function in ("message", "version", "level"):
            found.function(function).restype = ctypes.c_char_p
        return found

    def function(self, name: str) -> Any:
        """A function by its name without the prefix."""
        return getattr(self.library, f"{self.name}_{name}")

    def create(self, threads: int = 2, level: str | None = None) -> ctypes.c_void_p:
        """A new handle."""
        handle = ctypes.c_void_p()
        if level is None:
            code = self.function("create")(ctypes.byref(handle), threads)
        else:
            code = self.function("create_level")(ctypes.byref(handle), threads, level.encode())
        assert code == 0, self.function("message")(code)
        return handle

    def call(self, operator: str, handle: object, sizes: Sequence[int], arrays: Sequence[NDArray[Any] | None]) -> int:
        """The code of a call."""
        pointers = [ctypes.c_void_p(None if a is None else a.ctypes.data) for a in arrays]
        code: int = self.function(operator)(handle, *map(ctypes.c_int64, sizes), *pointers)
        return code


def placed(array: NDArray[Any], offset: int = 0) -> NDArray[Any]:
    """A copy whose address is `offset` bytes after a multiple of 64."""
    memory = aligned_empty((array.nbytes + 128,), np.dtype(np.uint8))
    copy = memory[offset : offset + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def poisoned(shape: Sequence[int], offset: int = 0) -> NDArray[np.float32]:
    """An output that nothing has written."""
    return placed(np.full(shape, np.nan, np.float32), offset)
