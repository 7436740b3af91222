"""Kernels as callables: their machine's backend compiles them in this process, or a simulator runs them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pdojo.backends.backend import Arrays, CallableKernel, Compiles
from pdojo.backends.calling.arguments import CallArguments, Outputs
from pdojo.backends.calling.arrays import AnyArray, parameters_of
from pdojo.backends.llvm.executable import compile as compile_here
from pdojo.backends.measure.arrays import random_arguments, random_inputs
from pdojo.backends.registry import backend_of
from pdojo.dialect.attributes import Intent
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.view.build import nest_of
from pdojo.errors import LoweringError


def compile_for(
    kernel: KernelOp,
    machine: Machine | None,
    *,
    threads: int | None = None,
    optimize: Literal["search", "full"] = "full",
) -> CallableKernel:
    """Compile a kernel for a machine; None is this processor.

    Raises LoweringError if the machine's code cannot be called in this process, or the machine lacks what the kernel
    uses; UsageError for less than one thread.
    """
    if machine is None:
        return compile_here(kernel, threads=threads, optimize=optimize)
    backend = backend_of(machine)
    if isinstance(backend, Compiles):
        return backend.compile(kernel, machine, threads, optimize)
    backend.check_runs_here(machine)
    raise LoweringError(f"code for {machine.name} runs on a simulator and cannot be called; pdojo.run runs it")


def call(kernel: KernelOp, arrays: Sequence[AnyArray], machine: Machine | None, seed: int = 0) -> Outputs:
    """Run a kernel once and return its `out` arrays. Without `arrays`, inputs are random.

    Raises LoweringError if this computer cannot run the kernel, UsageError for arrays that do not fit.
    """
    nest = nest_of(kernel)
    parameters = parameters_of(nest)
    if machine is None or isinstance(backend_of(machine), Compiles):
        executable = compile_for(kernel, machine)
        return executable(*arrays) if arrays else executable(**executable.random_inputs(seed))
    backend = backend_of(machine)
    backend.check_runs_here(machine)
    inputs = {} if arrays else random_arguments(parameters, seed)
    arguments = CallArguments.of(kernel.sym_name.data, parameters, arrays, inputs, (*nest.sizes.values(),))
    rows = list(zip(parameters, arguments.views, strict=True))
    results = backend.call(kernel, machine, {p.name: array for p, array in rows if p.intent is not Intent.OUT})
    for parameter, array in rows:
        if parameter.written:
            array[...] = results[parameter.name]
    return arguments.outputs


def run_on_random(kernel: KernelOp, machine: Machine, seed: int) -> Arrays:
    """All interface arrays after a call on random inputs; `NAME_before` is the initial content of an `inout` array."""
    parameters = parameters_of(nest_of(kernel))
    inputs = random_inputs(parameters, seed)
    outputs = backend_of(machine).call(kernel, machine, inputs)
    before = {f"{p.name}_before": inputs[p.name] for p in parameters if p.written and p.name in inputs}
    return {**before, **{p.name: outputs[p.name] if p.written else inputs[p.name] for p in parameters}}
