"""Compiling the kernels of a model: code that was compiled before is in the user's cache.

Kernels take seconds of a processor each. If they take longer than starting processes, several processes share the
rest.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from typing import Any, Protocol, TypeVar

from pdojo.backends.common.file_cache import FileCache
from pdojo.backends.common.gc_pause import uncollected
from pdojo.backends.common.processes import shared_map
from pdojo.backends.common.source_digest import whole_digest
from pdojo.backends.llvm.executable import assemble
from pdojo.backends.llvm.objects import ObjectCode
from pdojo.backends.llvm.optimize import processor
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.machines.machine_file import machine_to_json
from pdojo.dialect.notation import parse_notation
from pdojo.files import cache_folder
from pdojo.model.progress import progress
from pdojo.passes.scheduled_kernel import make_moves

MOST_BYTES = 1 << 30
"""Limit of the cache in bytes."""


class Code(Protocol):
    """Compiled code of a kernel."""

    def to_json(self) -> dict[str, Any]:
        """A JSON object for the cache."""
        ...


C = TypeVar("C", bound=Code)
C_co = TypeVar("C_co", bound=Code, covariant=True)


class CodeRequest(Protocol[C_co]):
    """A kernel to be compiled."""

    @property
    def text(self) -> str:
        """The kernel in the notation."""
        ...

    @property
    def key(self) -> str:
        """All facts that determine the code: equal keys, equal code."""
        ...

    def compiled(self) -> C_co:
        """The code. Raises LoweringError if the machine lacks what the kernel uses."""
        ...

    def read(self, data: dict[str, Any]) -> C_co:
        """The code from the cache."""
        ...


@dataclass(frozen=True)
class KernelRequest:
    """A kernel to be compiled for this processor."""

    text: str
    """The kernel in the notation."""
    machine: Machine | None
    """The described machine; None for code that needs no further library."""
    expert: str | None
    """The expert pass that makes moves first; None for a kernel that is compiled as it is."""
    form: str = ""
    """The text with fewer dimensions that stands for the kernel at other sizes; '' if no program with sizes may."""

    @property
    def key(self) -> str:
        """All facts that determine the code: equal keys, equal code."""
        machine = None if self.machine is None else machine_to_json(self.machine)
        target = processor(self.machine)
        facts = [versions(), target.triple, target.name, target.features, machine, self.expert, self.text]
        return json.dumps(facts, sort_keys=True)

    def code(self, threads: int) -> object:
        """The key of the code among those of one model, for a number of threads."""
        return self.text, self.expert, threads

    def compiled(self) -> ObjectCode:
        """The code. Raises LoweringError if the machine lacks what the kernel uses."""
        with uncollected():
            (kernel,) = parse_notation(self.text)
            if self.expert is not None:
                assert self.machine is not None
                kernel = make_moves(kernel, self.machine, self.expert).after
            return assemble(kernel, self.machine)

    def read(self, data: dict[str, Any]) -> ObjectCode:
        """The code from the cache."""
        return ObjectCode.from_json(data)


def compile_kernels(requests: Sequence[CodeRequest[C]], *, cached: bool = True) -> list[C]:
    """The code of all kernels, in order; `cached` reads and extends the user's cache.

    A terminal shows the progress. Raises LoweringError if the machine lacks what a kernel uses.
    """
    files = FileCache(cache_folder("kernels"), ".kernel", MOST_BYTES) if cached else None
    keys = [request.key for request in requests]
    found: dict[str, C] = {}
    missing: dict[str, CodeRequest[C]] = {}
    for key, request in zip(keys, requests, strict=True):
        known = None if files is None or key in missing else files.read(key)
        if known is None:
            missing[key] = request
        else:
            found[key] = request.read(json.loads(known))
    # Long programs first, so that all processes end at about the same time.
    order = sorted(missing, key=lambda key: -len(missing[key].text))
    # An interrupt ends the other processes at once, wherever it comes.
    with (
        closing(shared_map(_code, [missing[key] for key in order])) as codes,
        progress("compiling", len(order)) as count,
    ):
        for key, code in zip(order, codes, strict=True):
            found[key] = code
            if files is not None:
                files.store(key, json.dumps(code.to_json()).encode())
            count()
    return [found[key] for key in keys]


def _code(request: CodeRequest[C]) -> C:
    """The code of a kernel, in a process of the pool."""
    return request.compiled()


@cache
def versions() -> list[str]:
    """The versions of all code that decides or generates code."""
    return [whole_digest("**/*.py", "**/*.toml"), *(version(package) for package in ("llvmlite", "xdsl"))]
