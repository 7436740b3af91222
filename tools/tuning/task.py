"""The tuning task of a command line."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from pdojo_tools.programs import load_named, machine_for

from pdojo.api.programs import Named
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.notation import print_notation
from pdojo.dialect.ops import KernelOp
from pdojo.errors import UsageError
from pdojo.passes.scheduled_kernel import assume_alignment, make_moves
from pdojo.passes.task import TuningTask
from pdojo.passes.versions import advised_versions
from pdojo.transforms.trace import Trace


def tasks_of(title: str, given: argparse.Namespace, host: Machine | None = None) -> list[TuningTask]:
    """The tasks that a word of the command line names: one for a kernel, several for its versions or those of a model.

    Raises PdojoError for a bad kernel, model or trace. `host` replaces the machine of that name.
    """
    if not given.torch and not is_model(title):
        return _kernel_tasks(title, given, host)
    for option in ("kernel", "dtype", "trace", *(["shape"] if given.torch else [])):
        if getattr(given, option):
            raise UsageError(f"--{option} is for kernels; '{title}' is a model")
    tasks: list[TuningTask] = []
    for name, kernel in _kernels_of(title, given):
        machine = machine_for(kernel, given.machine, given.threads, host, trust=given.trust_machine)
        begun = make_moves(assume_alignment(kernel, given.align), machine, None)
        tasks.append(TuningTask(name, None, begun, print_notation(kernel), given.expert))
    return tasks


def _kernels_of(title: str, given: argparse.Namespace) -> Sequence[tuple[str, KernelOp]]:
    """The different kernels of a model with their titles. Raises PdojoError."""
    if given.torch:
        from pdojo_tools.torch_models import torch_model

        return torch_model(title).kernels
    from pdojo_tools.onnx_models import kernels_of

    return kernels_of(title, given.shape)


def is_model(program: str) -> bool:
    """Whether a word of the command line names an ONNX file."""
    return program.endswith(".onnx")


def task_of(title: str, given: argparse.Namespace) -> TuningTask:
    """The one task that a word of the command line names. Raises PdojoError for a bad kernel or trace."""
    found = load_named(title, given.kernel, shape=given.shape, dtype=given.dtype)
    machine = machine_for(found.kernel, given.machine, given.threads, trust=given.trust_machine)
    return _task(found, machine, given)


def _task(found: Named, machine: Machine, given: argparse.Namespace) -> TuningTask:
    trace = None if given.trace is None else Trace.load(given.trace)
    begun = make_moves(assume_alignment(found.kernel, given.align, trace), machine, None, trace)
    return TuningTask(found.title, found.workload, begun, found.source, given.expert, trace)


def _kernel_tasks(title: str, given: argparse.Namespace, host: Machine | None) -> list[TuningTask]:
    """The task of a kernel, or one for each version: the file's, or those that the expert pass advises."""
    is_whole = given.trace is not None or given.expert == "none"
    found = load_named(title, given.kernel, shape=given.shape, dtype=given.dtype, has_versions=not is_whole)
    machine = machine_for(found.kernel, given.machine, given.threads, host, trust=given.trust_machine)
    versions = None if is_whole else found.versions or advised_versions(found.kernel, machine)
    if versions is None:
        return [_task(found, machine, given)]
    tasks: list[TuningTask] = []
    for nest in versions.nests:
        begun = make_moves(assume_alignment(nest.kernel, given.align), machine, None)
        ranges = ", ".join(f"{s.name} {s.low}..{s.high}" for s in nest.sizes.values())
        tasks.append(TuningTask(f"{nest.name} ({ranges})", None, begun, None, given.expert, family=versions.name))
    return tasks
