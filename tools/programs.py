"""The kernel that a command line names: a library kernel, or one in a file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pdojo_tools.inputs import parse, read_input
from pdojo_tools.machines import named_machine
from xdsl.context import Context
from xdsl.universe import Universe

from pdojo.dialect.analysis.program import Program
from pdojo.dialect.analysis.validate import validate
from pdojo.dialect.assumptions import ALIGNMENT, with_alignment
from pdojo.dialect.machine import Machine, host, known_machine
from pdojo.dialect.notation.source import did_you_mean
from pdojo.dialect.ops import KernelOp
from pdojo.errors import UsageError
from pdojo.files import exists
from pdojo.kernels import PRESETS, Workload, kernel_names, workload
from pdojo.transforms.trace import Trace


def load_kernel(
    argument: str, wanted: str | None = None, *, shape: str | None = None, dtype: str | None = None
) -> KernelOp:
    """The kernel of a file (or of standard input, `-`), or a library kernel (`softmax`, `softmax:24576x512`).

    `wanted` chooses where a file has several; `shape` and `dtype` are for library kernels (`pdojo.kernels.workload`).
    Raises PdojoError for anything that is no valid kernel.
    """
    name = argument.partition(":")[0]
    found = library_workload(argument, shape, dtype)
    if found is not None:
        kernel = _chosen([found.instantiate()], wanted, name)
        validate(Program(kernel, host()))
        return kernel
    if not exists(argument) and _is_bare_word(name):
        hint = did_you_mean(name, (*kernel_names(), *PRESETS))
        raise UsageError(f"there is no file '{argument}' and no library kernel of that name; {hint}")
    if shape is not None or dtype is not None:
        raise UsageError(f"a shape and an element type are for library kernels; '{argument}' has its own")
    chunk = read_input(argument)
    context = Context()
    for name, factory in Universe.get_multiverse().all_dialects.items():
        context.register_dialect(name, factory)
    program = parse(chunk, context, None)
    program.verify()
    kernel = _chosen([op for op in program.module.walk() if isinstance(op, KernelOp)], wanted, chunk.name)
    validate(Program(kernel, host()))
    return kernel


def library_workload(argument: str, shape: str | None = None, dtype: str | None = None) -> Workload | None:
    """The library kernel that an argument names, at its sizes; None where it names none. Files come first."""
    name = argument.partition(":")[0]
    if exists(argument) or name not in (*kernel_names(), *PRESETS):
        return None
    return workload(f"{name}:{shape}" if shape else argument, dtype)


def text_of(path: str) -> str | None:
    """The text of a file in the notation, whose sizes may have names; None for others, and for standard input."""
    if path == "-":
        return None
    chunk = read_input(path)
    return chunk.text if chunk.format(None) == "notation" else None


def _is_bare_word(argument: str) -> bool:
    """Whether the argument is neither a path nor the name of a file with a suffix, nor standard input."""
    return argument != "-" and "." not in argument and Path(argument).name == argument


def _chosen(kernels: list[KernelOp], wanted: str | None, source: str) -> KernelOp:
    if not kernels:
        raise UsageError(f"{source} has no pdojo.kernel")
    by_name = {kernel.sym_name.data: kernel for kernel in kernels}
    if wanted is not None:
        if wanted not in by_name:
            raise UsageError(f"{source} has no kernel '{wanted}'; it has {', '.join(by_name)}")
        return by_name[wanted]
    if len(kernels) > 1:
        raise UsageError(f"{source} has the kernels {', '.join(by_name)}; choose one with --kernel")
    return kernels[0]


def aligned(kernel: KernelOp, given: int | None, trace: Trace | None = None) -> KernelOp:
    """A copy with what callers guarantee: the alignment of the command line, else the trace's, else the usual one."""
    if given is not None:
        return with_alignment(kernel, given)
    return with_alignment(kernel, *(trace.alignments if trace and trace.alignments else (ALIGNMENT,)))


def machine_for(
    kernel: KernelOp, name: str | None, threads: int | None, host: Machine | None = None, *, trust: bool = False
) -> Machine:
    """The machine of that name or file (the kernel's, or the host, where left out) with that number of threads.

    `host` is what the machine of that name is; this one by default. With `trust` a file's code may be compiled.
    """
    own = "host" if kernel.machine is None else kernel.machine.data
    if (name or own) == "host" and host is not None:
        described = host
    else:
        described = named_machine(name, trust=trust) if name else known_machine(own)
    return described if threads is None else replace(described, threads=threads)
