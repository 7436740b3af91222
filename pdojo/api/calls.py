"""Public functions that compile, run and play with a kernel."""

from __future__ import annotations

from typing import Literal, overload

from pdojo.api.options import checked
from pdojo.api.programs import KernelLike, kernel_of, machine_for, machine_named, named
from pdojo.backends.backend import CallableKernel
from pdojo.backends.calling.arguments import Outputs
from pdojo.backends.calling.arrays import AnyArray
from pdojo.backends.calls import call, compile_for
from pdojo.backends.llvm.executable import Executable
from pdojo.backends.versions import Version, VersionedKernel
from pdojo.dialect.machines.machine import Machine
from pdojo.transforms.game import Game


@overload
def compile(
    kernel: KernelLike,
    machine: None = None,
    *,
    threads: int | None = None,
    optimize: Literal["search", "full"] = "full",
) -> Executable: ...


@overload
def compile(
    kernel: KernelLike,
    machine: Machine | str,
    *,
    threads: int | None = None,
    optimize: Literal["search", "full"] = "full",
) -> CallableKernel: ...


@checked
def compile(
    kernel: KernelLike,
    machine: Machine | str | None = None,
    *,
    threads: int | None = None,
    optimize: Literal["search", "full"] = "full",
) -> CallableKernel:
    """Compile a kernel for this processor, in process, or for a GPU of this computer.

    `kernel` is a kernel, its text, the path of its file, or the name of a library kernel. `machine` is a description
    or its name; None is this processor. `threads` is the number of threads for parallel scopes; None is the machine's
    number, or the OpenMP default without a machine. `optimize` selects a cheap pass pipeline (`search`) or LLVM's O3
    (`full`).

    A text or file with one kernel that has versions gives a `VersionedKernel`, which runs the version for the sizes of
    each call.

    The result takes NumPy arrays, PyTorch tensors or DLPack objects of the right type and shape, without a copy, and
    returns the `out` arrays. A kernel on a GPU also takes tensors and arrays of the device, neither copying them nor
    waiting; it copies arrays of the host (`pdojo.backends.gpu.executable.GpuKernel`).

    Raises UsageError for an unknown kernel or machine, NotationError for a text that does not parse, LoweringError if
    this computer cannot call the machine's code, or the machine lacks a feature that the kernel uses.

    >>> import numpy as np
    >>> import pdojo
    >>> softmax = pdojo.compile("softmax:4x8")
    >>> softmax
    <Executable softmax(in x f32[4, 8], out y f32[4, 8]), 1 thread>
    >>> softmax(np.zeros((4, 8), np.float32))[0, 0]
    np.float32(0.125)
    """
    described = None if machine is None else machine_named(machine)
    found = named(kernel, has_versions=True)
    if found.versions is None:
        return compile_for(found.kernel, described, threads=threads, optimize=optimize)
    versions = [
        Version(compile_for(each.kernel, described, threads=threads, optimize=optimize), (*each.sizes.values(),))
        for each in found.versions.nests
    ]
    return VersionedKernel(found.versions.name, tuple(versions))


@checked
def run(kernel: KernelLike, *arrays: AnyArray, machine: Machine | str | None = None, seed: int = 0) -> Outputs:
    """Compile a kernel and call it once; for a simulated machine, run it on the simulator.

    `arrays` are in the order of the interface; `out` arrays may be left out. Without `arrays`, inputs are random,
    determined by `seed`. Returns the `out` array, a tuple if there are several, None if there is none. Other
    parameters and errors as for `pdojo.compile`.

    >>> import numpy as np
    >>> import pdojo
    >>> pdojo.run("relu:2x4", np.array([[-1, 0, 1, 2], [3, -4, 5, -6]], np.float32))
    array([[0., 0., 1., 2.],
           [3., 0., 5., 0.]], dtype=float32)
    >>> pdojo.run("relu:2x4", machine="snitch").shape
    (2, 4)
    """
    described = None if machine is None else machine_named(machine)
    return call(kernel_of(kernel), arrays, described, seed)


@checked
def game(kernel: KernelLike, machine: Machine | str | None = None) -> Game:
    """Play with a kernel: list the legal moves, make them, take them back.

    `kernel` is a kernel, its text, the path of its file, or the name of a library kernel. `machine` is a description
    or its name; None is the machine that the kernel names, or this processor.

    Raises UsageError for an unknown kernel or machine, NotationError for a text that does not parse, InvalidKernel for
    a kernel without meaning.

    >>> import pdojo
    >>> game = pdojo.game("softmax:4x8", "x86-64-avx2")
    >>> game.apply("join_scopes@m:0")
    >>> game
    <Game softmax on x86-64-avx2: 1 move made>
    >>> game.apply("reuse_dims@e:0")
    Traceback (most recent call last):
    ...
    pdojo.errors.IllegalMove: reuse_dims@e:0 is refused: 'e' would be overwritten before its last read
    ...
    """
    plain = kernel_of(kernel)
    return Game(plain, machine_for(plain, machine))
