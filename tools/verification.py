"""`--verify`: the steps of the command line together preserve the meaning of every kernel, shown by execution."""

from __future__ import annotations

import sys
from math import prod

from xdsl.dialects.builtin import ModuleOp

from pdojo.backends.arrays import parameters_of
from pdojo.backends.measure.arrays import random_inputs
from pdojo.backends.measure.check import Rounding, compare
from pdojo.dialect.attributes import Intent
from pdojo.dialect.interpreter import interpret
from pdojo.dialect.nest import Nest, nest_of
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.oracle import equivalent
from pdojo.dialect.oracle.instances import INSTANCE_LIMIT
from pdojo.errors import InvalidKernel, UsageError


def verify_meaning(before: ModuleOp, after: ModuleOp) -> None:
    """Compare every kernel of `before` with that of `after`, and say on standard error how.

    The reference interpreter runs both on random inputs. Kernels small enough also run in exact arithmetic under
    adversarial schedules. Raises InvalidKernel with the first element that differs, UsageError where a kernel is gone.
    """
    kernels = {op.sym_name.data: op for op in after.walk() if isinstance(op, KernelOp)}
    for kernel in before.walk():
        if not isinstance(kernel, KernelOp):
            continue
        name = kernel.sym_name.data
        if name not in kernels:
            raise UsageError(f"--verify compares kernels, and the passes left no pdojo.kernel '{name}'; lower it later")
        how = _verify(nest_of(kernel), nest_of(kernels[name]))
        sys.stderr.write(f"verified: kernel '{name}' keeps its meaning ({how})\n")


def _verify(before: Nest, after: Nest) -> str:
    """Raise InvalidKernel where the programs differ; returns how they were compared."""
    instances = max(sum(prod(leaf.extents) for leaf in nest.leaves) for nest in (before, after))
    if instances <= INSTANCE_LIMIT:
        difference = equivalent(before, after)
        if difference is not None:
            raise InvalidKernel(f"--verify: the meaning changed: {difference}")
    parameters = parameters_of(before)
    inputs = random_inputs(parameters, seed=0)
    expected = interpret(before, inputs)
    results = interpret(after, inputs, seed=0, storage="cells")
    rounding = Rounding.of(before)
    for parameter in parameters:
        if parameter.intent is not Intent.IN:
            _, wrong = compare(parameter, results[parameter.name], expected[parameter.name], rounding)
            if wrong is not None:
                raise InvalidKernel(f"--verify: the meaning changed: {wrong}")
    if instances <= INSTANCE_LIMIT:
        return "exact arithmetic under adversarial schedules, and random inputs"
    return f"random inputs only: exact arithmetic takes at most {INSTANCE_LIMIT} statement instances, not {instances}"
