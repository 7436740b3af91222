"""`--verify`: the steps of the command line together preserve the meaning of every kernel, shown by execution."""

from __future__ import annotations

import sys

from xdsl.dialects.builtin import ModuleOp

from pdojo.dialect.ops import KernelOp
from pdojo.dialect.oracle import equivalent
from pdojo.errors import InvalidKernel, UsageError


def verify_meaning(before: ModuleOp, after: ModuleOp) -> None:
    """Compare every kernel of `before` with that of `after`, in exact arithmetic and under adversarial schedules.

    Raises InvalidKernel with the first element that differs, UsageError where a kernel is gone.
    """
    kernels = {op.sym_name.data: op for op in after.walk() if isinstance(op, KernelOp)}
    for kernel in before.walk():
        if not isinstance(kernel, KernelOp):
            continue
        name = kernel.sym_name.data
        if name not in kernels:
            raise UsageError(f"--verify compares kernels, and the passes left no pdojo.kernel '{name}'; lower it later")
        difference = equivalent(kernel, kernels[name])
        if difference is not None:
            raise InvalidKernel(f"--verify: the meaning changed: {difference}")
        sys.stderr.write(f"verified: kernel '{name}' keeps its meaning\n")
