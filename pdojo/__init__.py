"""A game of legal moves that turns numerical kernels into fast ones.

    kernels   names of the kernels of the library
    load      a kernel of the library, or of a file
    parse     a kernel of a text
    build     a kernel from Python: functions of typed handles, as in NumPy
    machine   a machine by its name; this one by default
    game      play with a kernel: legal moves, made and taken back
    compile   a kernel as a callable on NumPy arrays and PyTorch tensors
    run       call a kernel once
    tune      let an expert pass and a search make the moves, verify, measure
    onnx      ONNX models as graphs of kernels; needs the extra `onnx`
    torch     a backend of `torch.compile`; needs the extra `torch`

>>> import pdojo
>>> tuned = pdojo.tune("softmax:4x8", expert="naive", measure=False)
>>> tuned.is_verified
True
>>> pdojo.run(tuned.kernel).shape
(4, 8)
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pdojo import build
    from pdojo import onnx as onnx
    from pdojo import torch as torch
    from pdojo.api.calls import compile, game, run
    from pdojo.api.programs import load, parse
    from pdojo.api.tuning import tune
    from pdojo.backends.calling.arrays import aligned
    from pdojo.backends.llvm.executable import Executable
    from pdojo.dialect.machines.machine import Machine
    from pdojo.dialect.machines.registry import machine
    from pdojo.errors import (
        IllegalMove,
        IndexOutOfRange,
        InvalidKernel,
        LocationError,
        LoweringError,
        MeasurementError,
        NotationError,
        PdojoError,
        UsageError,
    )
    from pdojo.search.tuning.result import TuneResult
    from pdojo.search.tuning.workflow import TuneListener
    from pdojo.transforms.game import Game

    __version__: str

    def kernels() -> tuple[str, ...]:
        """The names of all library kernels, sorted."""
        ...


_HOMES = {
    **dict.fromkeys(("compile", "game", "run"), "pdojo.api.calls"),
    **dict.fromkeys(("load", "parse"), "pdojo.api.programs"),
    "tune": "pdojo.api.tuning",
    "aligned": "pdojo.backends.calling.arrays",
    "Executable": "pdojo.backends.llvm.executable",
    "Machine": "pdojo.dialect.machines.machine",
    "machine": "pdojo.dialect.machines.registry",
    "TuneListener": "pdojo.search.tuning.workflow",
    "TuneResult": "pdojo.search.tuning.result",
    "Game": "pdojo.transforms.game",
}

__all__ = [
    "Executable",
    "Game",
    "IllegalMove",
    "IndexOutOfRange",
    "InvalidKernel",
    "LocationError",
    "LoweringError",
    "Machine",
    "MeasurementError",
    "NotationError",
    "PdojoError",
    "TuneListener",
    "TuneResult",
    "UsageError",
    "__version__",
    "aligned",
    "build",
    "compile",
    "game",
    "kernels",
    "load",
    "machine",
    "parse",
    "run",
    "tune",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that the tools start quickly."""
    if name == "__version__":
        return import_module("importlib.metadata").version("pdojo")
    if name in ("build", "kernels", "onnx", "torch"):
        return import_module(f"pdojo.{name}")
    if name not in __all__:
        raise AttributeError(f"module 'pdojo' has no attribute '{name}'")
    return getattr(import_module(_HOMES.get(name, "pdojo.errors")), name)


def __dir__() -> list[str]:
    """The public names, imported or not yet, and the subpackages."""
    there = [name for name, value in globals().items() if name.startswith("__") or isinstance(value, ModuleType)]
    return sorted({*there, *__all__})
