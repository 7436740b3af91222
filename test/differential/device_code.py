"""Kernels as device code, run by the fibers of a CPU."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from differential.compiled import Arrays
from differential.library import close
from pdojo.backends.c.names import Identifiers
from pdojo.backends.calling.arrays import parameters_of
from pdojo.backends.gpu.emulation import emulate_compiled
from pdojo.backends.gpu.fibers import WAYS, FiberError, Fibers, Order, compile_fibers
from pdojo.backends.gpu.spelling import FiberSpelling
from pdojo.backends.gpu.targets import KernelText, device_text
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.view.build import nest_of

MACHINES = {32: "nvidia-sm90", 64: "amd-gfx942"}
"""A machine for each size of warps."""
_IF = re.compile(r" *if \((.*)\)( {)?")


def run_fibers(
    kernel: KernelOp,
    inputs: Arrays,
    *,
    described: Machine,
    sizes: Mapping[str, int] | None = None,
    ways: Sequence[tuple[bool, Order]] = WAYS,
) -> list[Arrays]:
    """The arrays that the device code of a kernel writes, for each way to run it; outputs are poisoned before.

    Machines with warps of 64 get pdojo's elementary functions, as HIP does.
    """
    warp = described.gpu.warp_size
    made = device_text(kernel, spelling=FiberSpelling(library=warp == 32), machine=described)
    scratch = made.kernels[0].workspace.size_bytes
    return run_text(made.text, kernel, inputs, warp=warp, scratch=scratch, sizes=sizes, ways=ways)


def run_text(
    text: str,
    kernel: KernelOp,
    inputs: Arrays,
    *,
    warp: int,
    scratch: int,
    sizes: Mapping[str, int] | None = None,
    ways: Sequence[tuple[bool, Order]] = WAYS,
) -> list[Arrays]:
    """The arrays that a text for fibers writes, which has the interface of a kernel's."""
    symbol, compiled = Identifiers().fresh(nest_of(kernel).name), compile_fibers(text, warp=warp)
    return run_compiled(compiled, symbol, kernel, inputs, scratch=scratch, sizes=sizes, ways=ways)


def run_compiled(
    compiled: Fibers,
    symbol: str,
    kernel: KernelOp,
    inputs: Arrays,
    *,
    scratch: int,
    sizes: Mapping[str, int] | None = None,
    ways: Sequence[tuple[bool, Order]] = WAYS,
) -> list[Arrays]:
    """The arrays that a function of a compiled text writes, which has the interface of a kernel's."""
    parameters = parameters_of(nest_of(kernel))
    run = emulate_compiled(compiled, symbol, parameters, inputs, sizes=sizes or {}, workspace=scratch, ways=ways)
    return [found for _, found in run]


@dataclass(frozen=True)
class CompiledKernels:
    """Kernels of one compiled text for fibers."""

    code: Fibers
    texts: Mapping[str, KernelText]
    """By the names of the kernels."""

    def run(
        self,
        kernel: KernelOp,
        inputs: Arrays,
        *,
        sizes: Mapping[str, int] | None = None,
        ways: Sequence[tuple[bool, Order]] = WAYS,
    ) -> list[Arrays]:
        """The arrays that one of the kernels writes, for each way to run it."""
        text = self.texts[nest_of(kernel).name]
        scratch = text.workspace.size_bytes
        return run_compiled(self.code, text.nest.symbol, kernel, inputs, scratch=scratch, sizes=sizes, ways=ways)


def compile_kernels(kernels: Iterable[KernelOp], *, described: Machine) -> CompiledKernels:
    """Kernels of different names, compiled at once, for a fraction of the time that each takes on its own."""
    warp = described.gpu.warp_size
    made = device_text(*kernels, spelling=FiberSpelling(library=warp == 32), machine=described)
    return CompiledKernels(compile_fibers(made.text, warp=warp), {text.nest.name: text for text in made.kernels})


def is_noticed(
    text: str, program: KernelOp, final: KernelOp, inputs: Arrays, wanted: Arrays, *, warp: int, scratch: int
) -> bool:
    """Whether a text for fibers is an error, or gives other results than wanted, in one of the ways to run it."""
    symbol = Identifiers().fresh(nest_of(final).name)
    return _differs(compile_fibers(text, warp=warp), symbol, program, final, inputs, wanted, scratch)


def _differs(
    compiled: Fibers, symbol: str, program: KernelOp, final: KernelOp, inputs: Arrays, wanted: Arrays, scratch: int
) -> bool:
    try:
        for way in WAYS:
            (found,) = run_compiled(compiled, symbol, final, inputs, scratch=scratch, ways=[way])
            close(found, wanted, program)
    except (FiberError, AssertionError):
        return True
    return False


def unnoticed(
    text: str,
    defects: Mapping[str, Mapping[int, str]],
    program: KernelOp,
    final: KernelOp,
    inputs: Arrays,
    wanted: Arrays,
    *,
    warp: int,
    scratch: int,
) -> list[str]:
    """The defects, each the lines that it changes in a text for fibers, that `is_noticed` would not notice.

    One compiled text has all of them; a function for each turns it on. Raises AssertionError if the text is wrong
    without any.
    """
    lines = text.split("\n")
    for number in {number for changed in defects.values() for number in changed}:
        broken = {k: changed[number] for k, changed in enumerate(defects.values(), 1) if number in changed}
        lines[number] = _switched(lines[number], broken)
    lines.insert(first_line(text), "static int broken_by;")
    symbol = Identifiers().fresh(nest_of(final).name)
    names = [f"p{k}" for k in range(len(parameters_of(nest_of(final))) + 1)]
    for k in range(1, len(defects) + 1):
        lines += [f'extern "C" void {symbol}_{k}({", ".join(f"void *{name}" for name in names)}) {{']
        lines += [f"  broken_by = {k}; ((void (*)({', '.join(['void *'] * len(names))})){symbol})({', '.join(names)});"]
        lines += ["}"]
    compiled = compile_fibers("\n".join([*lines, ""]), warp=warp)
    given = program, final, inputs, wanted, scratch
    assert not _differs(compiled, symbol, *given)
    return [what for k, what in enumerate(defects, 1) if not _differs(compiled, f"{symbol}_{k}", *given)]


def first_line(text: str) -> int:
    """The number of the line with which the kernels begin in a text for fibers."""
    return next(k for k, line in enumerate(text.split("\n")) if line.startswith("// kernel"))


def _switched(line: str, broken: Mapping[int, str]) -> str:
    """A statement, or the head of an `if`, that is as in `broken` while the defect of that number is on."""
    head = _IF.fullmatch(line)
    if head is None:
        return "".join(f"if (broken_by == {k}) {{ {other} }} else " for k, other in broken.items()) + f"{{ {line} }}"
    conditions = {k: found[1] for k, other in broken.items() if (found := _IF.fullmatch(other)) is not None}
    assert conditions.keys() == broken.keys()
    chosen = "".join(f"broken_by == {k} ? ({condition}) : " for k, condition in conditions.items())
    return f"if ({chosen}({head[1]})){head[2] or ''}"
