"""Steps between kernels: nodes that NumPy computes, branches, loops, and graphs that are imported in stages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from onnx import NodeProto, ValueInfoProto, helper

from pdojo.errors import UsageError
from pdojo.model.graph import Known, Operand, Tensor
from pdojo.onnx.definitions import reason_of
from pdojo.onnx.kinds import Late, array_type, kind_of_operand
from pdojo.onnx.reference import reference
from pdojo.onnx.regions import Engine, Step, Values, placed, value_of
from pdojo.onnx.scope import Item
from pdojo.onnx.stages import Body, Frame

AT_RUN_TIME = frozenset("Compress Range RoiAlign Slice".split())
"""Operators that NumPy computes if an operand that their lowering must know is computed.

For all others, such as Reshape, the nodes behind it are made for its value. A lowering that takes the operand as a
handle makes the node a kernel.
"""
RANDOM = frozenset(
    ("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike")
)
"""Operators without kernel that NumPy does not compute either: no two calls have the same results."""


def operands_of(operands: Sequence[Item]) -> list[Tensor]:
    """The operands that are not known."""
    return [each for each in operands if isinstance(each, Tensor)]


@dataclass(eq=False)
class NumpyStep(Step):
    """A node that ONNX's reference evaluator computes."""

    operands: Mapping[str, Operand]
    """The operands, keyed by name."""
    evaluator: Any

    @staticmethod
    def evaluator_of(node: NodeProto, opset: int) -> Any:
        """The evaluator of a node. Raises UsageError if ONNX has none."""
        given = [ValueInfoProto(name=name) for name in dict.fromkeys(node.input) if name]
        made = [ValueInfoProto(name=name) for name in node.output if name]
        graph = helper.make_graph([node], "node", given, made)
        try:
            return reference(helper.make_model(graph, opset_imports=[helper.make_opsetid(node.domain, opset)]))
        except Exception as error:
            raise UsageError("no kernel is known for this operator, nor a function of ONNX's evaluator") from error

    def run(self, values: Values, engine: Engine) -> None:
        """Compute the results."""
        given = {name: value_of(operand, values) for name, operand in self.operands.items()}
        found = iter(self.compute(given))
        arrays = [None if result is None else next(found) for result in self.results]
        self.store([None if array is None else placed(array, *given.values()) for array in arrays], values)

    def compute(self, given: Mapping[str, Known]) -> list[Known]:
        """The results that are wanted. Raises UsageError if the operands do not fit."""
        try:
            with np.errstate(all="ignore"):
                found = [np.asarray(each) for each in self.evaluator.run(None, dict(given))]
        except Exception as error:
            raise UsageError(f"{self.title}: NumPy cannot compute it: {reason_of(error)}") from error
        return [each.astype(object) if each.dtype.kind in "US" else each for each in found]


@dataclass(eq=False)
class FrameStep(Step):
    """A function or a branch that is imported in stages, since it finds out shapes while it runs."""

    frame: Frame

    def run(self, values: Values, engine: Engine) -> None:
        """Run the graph."""
        _store(self, self.frame.run(values, engine), values)


@dataclass(frozen=True)
class RefusedFrame:
    """A branch that is refused."""

    error: UsageError

    def run(self, values: Values, engine: Engine) -> NoReturn:
        """Raise the error."""
        raise self.error


@dataclass(eq=False)
class BranchStep(Step):
    """A condition that chooses one of two graphs."""

    condition: Tensor
    frames: tuple[Frame | RefusedFrame, Frame | RefusedFrame]
    """The graphs if it holds, and if not."""

    def run(self, values: Values, engine: Engine) -> None:
        """Run the chosen graph."""
        chosen = self.frames[not one(value_of(self.condition, values), self.title)]
        _store(self, chosen.run(values, engine), values)


def _store(step: Step, found: Sequence[Item], values: Values) -> None:
    """Add the results of an inner graph as those of a step. Those that are known become arrays of their own."""
    rows = zip(step.results, found, strict=True)
    step.store([None if result is None else _array(each, values, step.title) for result, each in rows], values)


def _array(value: Item, values: Values, title: str) -> Known:
    if value is None or isinstance(value, list):
        raise UsageError(f"{title}: a result is a sequence or an absent value, which no step computes")
    return value_of(value, values) if isinstance(value, Tensor) else placed(value, value)


def one(array: Known, title: str) -> Any:
    """The only element of a condition or a number of iterations. Raises UsageError if there are others."""
    if array.size != 1:
        raise UsageError(f"{title}: an operand has {array.size} elements, not one")
    return array.reshape(())[()]


@dataclass(frozen=True)
class Scanned:
    """An operand of which each iteration gets one slice."""

    operand: Operand
    axis: int
    backward: bool

    def slice(self, number: int, values: Values) -> Known:
        """The slice of an iteration."""
        array = value_of(self.operand, values)
        return np.take(array, array.shape[self.axis] - 1 - number if self.backward else number, self.axis)


@dataclass(frozen=True)
class Stacked:
    """How the values of all iterations become one result."""

    axis: int = 0
    backward: bool = False

    def array(self, rows: Sequence[Known], title: str) -> Known:
        """The values along a new axis. Raises UsageError for values of different shapes."""
        if len({each.shape for each in rows}) > 1:
            shapes = ", ".join(str(list(each.shape)) for each in rows[:4])
            raise UsageError(f"{title}: arrays of shapes {shapes} are not joined")
        return placed(np.stack(rows[::-1] if self.backward else rows, self.axis))


@dataclass(eq=False)
class LoopStep(Step):
    """A loop or a scan: a body is called with the values that the iteration before it computed."""

    body: Body
    count: Operand | None
    """The number of iterations; None for no limit."""
    condition: Operand | None
    """Whether the first iteration runs; None if all do. A loop's body takes the number of the iteration and the
    condition first, and computes the next condition first."""
    carried: Sequence[Operand]
    scanned: Sequence[Scanned]
    stacked: Sequence[Stacked]
    is_scan: bool

    def run(self, values: Values, engine: Engine) -> None:
        """Run all iterations."""
        count = None if self.count is None else int(one(value_of(self.count, values), self.title))
        goes_on = self.condition is None or bool(one(value_of(self.condition, values), self.title))
        given = [_array(each, values, self.title) for each in self.carried]
        rows: list[list[Known]] = [[] for _ in self.stacked]
        number = 0
        while goes_on and (count is None or number < count):
            slices = [each.slice(number, values) for each in self.scanned]
            found = self._iterate([*self._start(number), *given, *slices], values, engine)
            if not self.is_scan:
                goes_on = bool(one(found.pop(0), self.title))
            given = found[: len(given)]
            for row, array in zip(rows, found[len(given) :], strict=True):
                row.append(array)
            number += 1
        rows = rows if number else self._none(given)
        stacks = [each.array(row, self.title) for each, row in zip(self.stacked, rows, strict=True)]
        self.store([*given, *(stacks if number else [each[:0] for each in stacks])], values)

    def _start(self, number: int) -> list[Known]:
        """The first arguments of an iteration: its number, and the condition; a scan's has none."""
        return [] if self.is_scan else [np.array(number, np.int64), np.array(True)]

    def _iterate(self, arguments: Sequence[Known], values: Values, engine: Engine) -> list[Known]:
        parameters, frame = self.body.at(arguments)
        for parameter, array in zip(parameters, arguments, strict=True):
            if isinstance(parameter, Tensor):
                values[parameter] = placed(array)
        return [_array(each, values, self.title) for each in frame.run(values, engine)]

    def _none(self, given: Sequence[Known]) -> list[list[Known]]:
        """Values of an iteration that does not run, which have types and shapes only."""
        found = self.body.at([*self._start(0), *given])[1].first.outputs[1 + len(given) :]
        if len(found) < len(self.stacked) or any(isinstance(each, Late) for each in found):
            raise UsageError(f"{self.title}: it has no iterations, so that the shape of a result is unknown")
        return [
            [np.empty(each.shape, array_type(kind_of_operand(each)))]
            for each in found
            if isinstance(each, Tensor | np.ndarray)
        ]
