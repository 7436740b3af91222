"""Kernels in all forms that callers may give: an operation, a text, a file, or a library kernel at sizes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from xdsl.context import Context

from pdojo.api.options import checked
from pdojo.dialect.flow.program import Program
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.machines.registry import host, machine, machine_of
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.rules.validate import validate
from pdojo.dialect.view.versions import Versions, version_lists, versions_of
from pdojo.errors import ConversionError, UsageError, did_you_mean
from pdojo.files import exists
from pdojo.frontends import text as texts
from pdojo.frontends.text import Chunk
from pdojo.kernels import PRESETS, Workload, kernel_names, library_workload

KernelLike: TypeAlias = KernelOp | str | Path
"""A kernel, its text, the path of its file, or the name of a library kernel (`softmax`, `softmax:64x512`).

A string of several lines is a kernel's text."""


@dataclass(frozen=True)
class Named:
    """A kernel with its title and its source."""

    kernel: KernelOp
    title: str
    """The kernel's name in messages and tables."""
    workload: Workload | None = None
    """The workload of a library kernel; None for other kernels."""
    source: Workload | str | None = None
    """The source of the kernel at other sizes: a workload, or a text in the notation; None if there is neither."""
    versions: Versions | None = None
    """The versions if the source has one kernel with versions, `kernel` being the last; None for other kernels."""


@checked
def load(path: str | Path, name: str | None = None, *, shape: str | None = None, dtype: str | None = None) -> KernelOp:
    """The kernel of a file, in the notation or as xDSL IR, or a library kernel.

    `path` is a file, or a library kernel: `softmax`, `softmax:64x512`, `conv:8x10x3x64x64x5,S=2`. A file comes before
    a library kernel of the same name. `name` selects one of several kernels in a file. `shape` and `dtype` (`f32`,
    `f64`, `bf16`, `f16`) are for library kernels.

    Raises UsageError for a missing file, an unknown name or wrong sizes, NotationError for a text that does not parse,
    InvalidKernel for a kernel without meaning.

    >>> import pdojo
    >>> kernel = pdojo.load("softmax:4x8")
    >>> kernel.sym_name.data
    'softmax'
    >>> pdojo.load("sofmax")
    Traceback (most recent call last):
    ...
    pdojo.errors.UsageError: there is no file 'sofmax' and no library kernel of that name; did you mean 'softmax'?
    """
    return named(path, name, shape=shape, dtype=dtype).kernel


@checked
def parse(text: str, name: str | None = None) -> KernelOp:
    """The kernel of a text, in the notation or as xDSL IR.

    `name` chooses one of several kernels. Raises NotationError, with line and column, for a text that does not parse,
    InvalidKernel for a kernel without meaning, UsageError for a text without that kernel.

    >>> import pdojo
    >>> kernel = pdojo.parse('''
    ... kernel double(x) -> (y)
    ... x f32 [8] heap
    ... y f32 [8] heap
    ...
    ... 8 y[{0}] = x[{0}] * 2
    ... ''')
    >>> kernel.sym_name.data
    'double'
    """
    return kernel_in(texts.given(text, "<text>"), name)


def kernel_of(kernel: KernelLike) -> KernelOp:
    """The kernel that `kernel` denotes. Raises the errors of `load` and `parse`."""
    return named(kernel).kernel


def named(
    kernel: KernelLike,
    name: str | None = None,
    *,
    shape: str | None = None,
    dtype: str | None = None,
    has_versions: bool = False,
) -> Named:
    """The kernel that `kernel` denotes, with its title and source; with `has_versions`, also one with versions.

    Raises the errors of `load` and `parse`.
    """
    if isinstance(kernel, KernelOp):
        return Named(kernel, kernel.sym_name.data)
    if isinstance(kernel, str) and "\n" in kernel:
        return _of_chunk(texts.given(kernel, "<text>"), name, "", has_versions=has_versions)
    if not isinstance(kernel, str | Path):
        raise UsageError(
            f"a kernel is a KernelOp, a text, a path or the name of a library kernel, and this is a "
            f"{type(kernel).__name__}; a game's kernel is its attribute `kernel`"
        )
    path = str(kernel)
    found = library_workload(path, shape, dtype) if isinstance(kernel, str) else None
    if found is not None:
        made = _chosen([found.instantiate()], name, path.partition(":")[0])
        validate(Program(made, host()))
        return Named(made, found.label, found, found)
    word = path.partition(":")[0]
    if isinstance(kernel, str) and not exists(path) and _is_bare_word(word):
        hint = did_you_mean(word, (*kernel_names(), *PRESETS))
        raise UsageError(f"there is no file '{path}' and no library kernel of that name; {hint}")
    if shape is not None or dtype is not None:
        raise UsageError(f"a shape and an element type are for library kernels; '{path}' has its own")
    return _of_chunk(texts.read_file(Path(path)), name, path, has_versions=has_versions)


def _of_chunk(chunk: Chunk, name: str | None, title: str, *, has_versions: bool = False) -> Named:
    program = _module_in(chunk)
    lists = version_lists(program.module) if has_versions and name is None else []
    versions = versions_of(lists[0]) if len(lists) == 1 else None
    kernel = _checked([versions.nests[-1].kernel] if versions else _kernels(program), name, chunk.name)
    source = chunk.text if chunk.format(None) == "notation" else None
    # Undecodable bytes of a name become escapes, as titles are written into files.
    shown = title.encode(errors="backslashreplace").decode()
    title = versions.name if versions else kernel.sym_name.data
    return Named(kernel, shown or title, source=source, versions=versions)


def kernel_in(chunk: Chunk, name: str | None = None) -> KernelOp:
    """The kernel in a text; `name` selects one of several. Raises the errors of `parse`."""
    return _checked(_kernels(_module_in(chunk)), name, chunk.name)


def _module_in(chunk: Chunk) -> texts.SourceModule:
    """The module in a text, with kernels in place of functions if it has no kernel."""
    context = texts.TextContext()
    program = texts.parse(chunk, context, None)
    program.verify()
    if not _kernels(program):
        convert_functions(program, context)
    return program


def _checked(kernels: list[KernelOp], name: str | None, source: str) -> KernelOp:
    """The kernel that `_chosen` chooses. Raises InvalidKernel if it has no meaning."""
    kernel = _chosen(kernels, name, source)
    validate(Program(kernel, host()))
    return kernel


def _kernels(program: texts.SourceModule) -> list[KernelOp]:
    return [op for op in program.module.walk() if isinstance(op, KernelOp)]


def convert_functions(program: texts.SourceModule, context: Context) -> None:
    """Turn functions of tensors and of linalg operations into kernels. Raises ConversionError, with the place."""
    from pdojo.frontends.linalg.convert import ConvertLinalgToPdojoPass

    try:
        ConvertLinalgToPdojoPass().apply(context, program.module)
    except ConversionError as error:
        raise program.located(error) from None


def _is_bare_word(argument: str) -> bool:
    """Whether the argument is a word: no path, no file name with a suffix, not standard input."""
    return argument != "-" and "." not in argument and Path(argument).name == argument


def _chosen(kernels: list[KernelOp], wanted: str | None, source: str) -> KernelOp:
    if not kernels:
        raise UsageError(f"{source} has no pdojo.kernel, and no function of linalg")
    by_name = {kernel.sym_name.data: kernel for kernel in kernels}
    if wanted is not None:
        if wanted not in by_name:
            raise UsageError(f"{source} has no kernel '{wanted}'; it has {', '.join(by_name)}")
        return by_name[wanted]
    if len(kernels) > 1:
        raise UsageError(
            f"{source} has the kernels {', '.join(by_name)}; choose one: with --kernel, in Python by name=, "
            "for a library in a file of its own"
        )
    return kernels[0]


def machine_named(wanted: Machine | str) -> Machine:
    """A machine description, given as such or by its name. Raises UsageError for an unknown machine."""
    if isinstance(wanted, str):
        return machine(wanted)
    if not isinstance(wanted, Machine):
        raise UsageError(f"a machine is a Machine or its name, and this is a {type(wanted).__name__}")
    return wanted


def machine_for(kernel: KernelOp, wanted: Machine | str | None, threads: int | None = None) -> Machine:
    """The machine `wanted`, with `threads` threads. None is the machine that the kernel names, or the host.

    Raises UsageError for an unknown machine or less than one thread.
    """
    if threads is not None and threads < 1:
        raise UsageError(f"a kernel runs on at least 1 thread, not {threads}")
    described = machine_of(kernel) if wanted is None else machine_named(wanted)
    return described if threads is None else replace(described, threads=threads)
