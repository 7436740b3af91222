"""Problems of searches: a plain kernel and a machine."""

from __future__ import annotations

from dataclasses import dataclass

from pdojo.backends.calling.arrays import parameters_of
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.notation import print_notation
from pdojo.dialect.view.build import nest_of
from pdojo.kernels import Workload
from pdojo.transforms.game import Game


@dataclass(frozen=True)
class Problem:
    """A plain kernel for a machine, with its names."""

    text: str
    """The plain kernel, in the notation."""
    machine: Machine
    kernel: str
    shape: str
    """Sizes of a library kernel in its file's order, else shapes of the input arrays: `24576x512`, `256x64,64x512`."""
    dtype: str
    """Element types of the interface arrays."""
    label: str = ""
    """The name of the workload in tables; '' if the kernel is no workload."""

    @staticmethod
    def of(game: Game, workload: Workload | None = None) -> Problem:
        """The problem of a state, with the names of the workload."""
        plain = game.plain
        arrays = parameters_of(nest_of(plain))
        shapes = ["x".join(map(str, array.shape)) or "1" for array in arrays if not array.written]
        dtypes = dict.fromkeys(array.dtype for array in arrays)
        return Problem(
            print_notation(plain),
            game.machine,
            plain.sym_name.data,
            "x".join(map(str, workload.sizes.values())) if workload else ",".join(shapes),
            ",".join(dtypes),
            workload.label if workload else "",
        )
