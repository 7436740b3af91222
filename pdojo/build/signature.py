"""Signatures of handles: equal ones give equal kernels, so that a kernel is made once for repeated layers."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from pdojo.build.array import Array
from pdojo.build.graph import Computed, Definition, Loop, Operand, Read, Write, reads
from pdojo.build.plan import needed
from pdojo.dialect.view.nest import Constant


def signature(name: str, inputs: Sequence[Array], outputs: Mapping[str, Array]) -> Hashable:
    """A value that is equal for arguments of `build.kernel` with which it makes the same kernel.

    >>> from pdojo import build
    >>> x, y = build.input("x", "f32", (4,)), build.input("x", "f32", (4,))
    >>> signature("double", [x], {"y": x * 2}) == signature("double", [y], {"y": y * 2})
    True
    """
    made = needed(read.definition for array in (*inputs, *outputs.values()) for read in reads(array.operand))
    numbers = {definition: number for number, definition in enumerate(made)}
    loops: dict[Loop, int] = {}

    def operand(value: Operand) -> Hashable:
        match value:
            case Read(definition, index):
                return numbers[definition], index
            case Computed(function, operands, dtype):
                return function, tuple(map(operand, operands)), dtype
            case Constant():
                return repr(value)  # 0.0 and -0.0 are equal, as are 1 and 1.0.
            case _:
                return value

    def write(nest: Write) -> Hashable:
        reduction = nest.reduction
        loop = None if nest.loop is None else loops.setdefault(nest.loop, len(loops))
        return nest.extents, nest.target, operand(nest.value), nest.guard, repr(reduction), loop, nest.joins

    def definition(each: Definition) -> Hashable:
        # A nest without iterations does nothing, and what it reads is not needed.
        nests = [nest for nest in each.writes if 0 not in nest.extents]
        return each.dtype, each.shape, each.name, each.constant, each.strides, tuple(map(write, nests))

    arrays = [(array.dtype, array.shape, operand(array.operand)) for array in (*inputs, *outputs.values())]
    return name, tuple(outputs), tuple(arrays), tuple(map(definition, made))
