"""The kernel and the machine named on a command line."""

from __future__ import annotations

from dataclasses import replace

from pdojo_tools.inputs import read_input
from pdojo_tools.machines import named_machine

from pdojo.api.programs import Named, kernel_in, named
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.machines.registry import known_machine
from pdojo.dialect.ops import KernelOp
from pdojo.errors import UsageError


def load_named(
    argument: str,
    wanted: str | None = None,
    *,
    shape: str | None = None,
    dtype: str | None = None,
    has_versions: bool = False,
) -> Named:
    """The kernel of a file (or of standard input, `-`), or a library kernel (`softmax`, `softmax:24576x512`).

    `wanted` chooses among several kernels of a file; `shape` and `dtype` are for library kernels
    (`pdojo.kernels.workload`). Raises PdojoError if there is no valid kernel.
    """
    if argument != "-":
        return named(argument, wanted, shape=shape, dtype=dtype, has_versions=has_versions)
    if shape is not None or dtype is not None:
        raise UsageError(f"a shape and an element type are for library kernels; '{argument}' has its own")
    return Named(kernel_in(read_input(argument), wanted), argument)


def load_kernel(
    argument: str, wanted: str | None = None, *, shape: str | None = None, dtype: str | None = None
) -> KernelOp:
    """The kernel of `load_named`."""
    return load_named(argument, wanted, shape=shape, dtype=dtype).kernel


def machine_for(
    kernel: KernelOp, name: str | None, threads: int | None, host: Machine | None = None, *, trust: bool = False
) -> Machine:
    """The machine `name` or in the file `name`, by default the kernel's or the host, with `threads` threads (None: its
    own).

    `host` replaces the machine of that name. With `trust`, code in a machine file may be compiled.
    """
    own = "host" if kernel.machine is None else kernel.machine.data
    if (own if name is None else name) == "host" and host is not None:
        described = host
    else:
        described = known_machine(own) if name is None else named_machine(name, trust=trust)
    return described if threads is None else replace(described, threads=threads)
