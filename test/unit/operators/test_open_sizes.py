"""Samples of all operators with one of their extents open: right at both ends of its range and between, or refused."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from inspect import signature
from math import prod
from typing import Any

import numpy as np
import pytest

from pdojo import build
from pdojo.api.calls import compile
from pdojo.build.arguments import listed, replaced
from pdojo.build.array import Array
from pdojo.build.graph import Definition, Read
from pdojo.build.kernel import kernel_with_repeats, repeated_inputs
from pdojo.build.operator import Input, Sample
from pdojo.build.records import OPERATORS
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.semantics.interpreter import interpret
from pdojo.errors import UsageError
from pdojo.model.element_types import memory_of, numpy_type
from qa.operators.peers import Operand, operands_of, wanted
from unit.operators.absences import Case
from unit.operators.engines import Values, interpreted
from unit.operators.test_operator_table import cases, complaint

REFUSED = {
    **dict.fromkeys(("decayed_rate", "corrected_rate"), "its samples have no axes"),
    **dict.fromkeys(("affine_grid", "broadcast_to", "reshape"), "the shape of the result is constant in its samples"),
    "max_pool_gradient": "places in the image are numbers that its extents determine",
}
"""The operators that take no open extent in any sample, with the reasons."""
UNLIKE = {("squeeze", 3): "an axis of an open extent stays, also at 1"}
"""Samples whose result is another one, by operator and extent."""


@dataclass(frozen=True)
class Opened:
    """A kernel for a sample with one extent open."""

    case: Case
    extent: int
    low: int
    kernel: KernelOp
    results: dict[str, Array]
    inputs: list[Definition]
    repeats: list[Definition]
    constants: list[Values]

    @property
    def values(self) -> list[int]:
        """Both ends of the range, and the extent of the sample."""
        return sorted({self.low, 2 * self.extent, self.extent})

    def memory(self, sample: Sample) -> list[Values]:
        """The arrays of a call, in the order of the arguments."""
        arguments, keywords = operands_of(sample, self.case.dtype)
        given: list[Operand] = []
        replaced([arguments, keywords], Operand, given.append)
        arrays = [each.values.astype(numpy_type(each.dtype)) for each in given if each.values.size]
        known = dict(zip(self.inputs, [*arrays, *self.constants], strict=True))
        return [memory_of(known[each]) for each in (*self.inputs, *self.repeats)]


def with_extent(sample: Sample, extent: int, value: int) -> Sample:
    """The sample with another extent; given elements are repeated."""

    def changed(given: Input) -> Input:
        shape = tuple(value if each == extent else each for each in given.shape)
        known = None if given.given is None else np.resize(np.array(given.given, object), prod(shape)).tolist()
        return replace(given, shape=shape, given=None if known is None else tuple(known))

    arguments, keywords = sample.filled(changed)
    return replace(sample, arguments=tuple(arguments), keywords=keywords)


def opened(case: Case, extent: int, low: int) -> Opened:
    """The kernel of a case for a range of one of its extents. Raises UsageError."""
    size = build.size("N", low, 2 * extent)
    inputs: list[Array] = []
    constants: list[Values] = []

    def made(dtype: str, shape: Sequence[int], *, const: bool = False) -> Array:
        inputs.append(build.input(f"x{len(inputs)}", dtype, shape, const=const))
        return inputs[-1]

    def handle(operand: Operand) -> Array:
        shape = tuple(size if each == extent else each for each in operand.values.shape)
        return made(operand.dtype, shape) if operand.values.size else build.constant(0, operand.dtype, shape)

    def constant(values: Values, dtype: str) -> Array:
        constants.append(values.astype(numpy_type(dtype)))
        return made(dtype, values.shape, const=True)

    arguments, keywords = replaced([*case.operands()], Operand, handle)
    if "constants" in signature(case.record.build).parameters:
        keywords["constants"] = constant
    results = {f"y{k}": each for k, each in enumerate(listed(case.record.build(*arguments, **keywords)))}
    results = {title: each for title, each in results.items() if isinstance(each, Array) and each.size}
    kernel = kernel_with_repeats("made", inputs, results)
    given = [definition_of(each) for each in inputs]
    return Opened(case, extent, low, kernel, results, given, repeated_inputs([*results.values()]), constants)


def definition_of(x: Array) -> Definition:
    """The array that a handle is."""
    assert isinstance(x.operand, Read)
    return x.operand.definition


def attempts(name: str) -> Iterator[tuple[Case, int]]:
    """The samples of an operator, with each of their extents."""
    for case in cases(name, 1):
        for extent in sorted({extent for given in case.inputs() for extent in given.shape if extent > 1}):
            yield case, extent


def faults_of(found: Opened, engine: str) -> Iterator[str]:
    """The faults of the results at both ends of the range and between."""
    names = [name.data for name in found.kernel.arg_names]
    call: Any = compile(found.kernel, threads=1) if engine == "compiled" else None
    for value in found.values:
        sample = with_extent(found.case.sample, found.extent, value)
        title = f"{found.case.sample} {found.case.dtype}, {found.extent} as {value}"
        try:
            right = wanted(found.case.record, *operands_of(sample, found.case.dtype))
        except (IndexError, ValueError):
            # A sample may have indices or numbers that other extents do not fit.
            assert value != found.extent
            continue
        memory = found.memory(sample)
        if call is None:
            results = interpret(found.kernel, dict(zip(names, memory, strict=False)), sizes={"N": value})
        else:
            results = dict(zip(names[len(memory) :], listed(call(*memory, N=value)), strict=True))
        for name, handle in found.results.items():
            mine = results[name].view(numpy_type(handle.dtype))
            if fault := complaint(found.case, mine, right[int(name[1:])], engine):
                constant = interpreted(replace(found.case, sample=sample))[int(name[1:])]
                if not np.array_equal(mine, constant, equal_nan=True):
                    yield f"{title}, {name}: {fault}"


@pytest.mark.parametrize("name", OPERATORS)
def test_open_extents(name: str, request: pytest.FixtureRequest) -> None:
    most = 999 if request.config.getoption("--slow") else 1
    faults: list[str] = []
    refusals: list[str] = []
    taken: list[Opened] = []
    for case, extent in attempts(name):
        if len(taken) == most or (name, extent) in UNLIKE:
            continue
        for low in (1, extent):
            try:
                found = opened(case, extent, low)
            except UsageError as error:
                refusals += [f"{case.sample}, {extent}: {error}"] if low > 1 else []
                continue
            for engine in ("interpreter",) if taken else ("interpreter", "compiled"):
                faults += faults_of(found, engine)
            taken.append(found)
            break
    assert not faults, "\n".join(faults)
    assert (not taken) == (name in REFUSED), "\n".join(refusals)
