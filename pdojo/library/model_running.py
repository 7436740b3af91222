"""Calls of the models of a shared library, compared with their plain kernels, called one after the other."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pdojo.backends.calling.arrays import Parameter, parameters_of
from pdojo.backends.measure.arrays import ArraySet, poison, random_inputs
from pdojo.backends.measure.guarded import GuardedArray, GuardPlacement
from pdojo.build.numbers import storage_of
from pdojo.dialect.affine import Size
from pdojo.dialect.attributes import Intent
from pdojo.dialect.functions import byte_width, is_float
from pdojo.dialect.notation.bound import bound
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.semantics.interpreter import interpret
from pdojo.dialect.semantics.oracle.instances import count_instances
from pdojo.dialect.semantics.rounding import INTERFACE, from_interface, round_float64, to_interface
from pdojo.dialect.sizes import probes, spelled
from pdojo.dialect.view.build import nest_of
from pdojo.errors import IndexOutOfRange, UsageError
from pdojo.files import read_bytes
from pdojo.library.client.runtime import Handle, Library
from pdojo.library.expected import INTERPRETED
from pdojo.library.manifest import LARGEST, Manifest
from pdojo.library.model_plan import Call, ModelPlan, Place, bytes_at, shape_at, value_of
from pdojo.library.paths import inside
from pdojo.library.plain import plain_kernel
from pdojo.library.records import Array, range_of

Arrays = dict[str, NDArray[Any]]
Change: TypeAlias = Callable[[NDArray[Any], str], NDArray[Any]]
"""Changes the values of an array of an element type."""
PLACEMENTS = (GuardPlacement("behind", 64), GuardPlacement("before", 1, odd=True))
TOLERANCES = {"f64": 1e-9, "f32": 1e-3, "f16": 2e-2, "bf16": 6e-2}
"""Greatest error of an output relative to its largest element, by element type: layers add up their roundings."""
NOISE = {"f64": 1e-13, "f32": 1e-5, "f16": 2e-3, "bf16": 2e-2}
"""Relative changes of inputs and of results of kernels, which tell how much an output depends on roundings."""
MOST_BYTES = 1 << 28
"""Most bytes of a model's arrays, and of its block, in calls of models whose sizes calls choose."""


@dataclass(frozen=True)
class ModelCase:
    """A call of a model."""

    plan: ModelPlan
    sizes: Mapping[str, int]
    level: str
    placement: GuardPlacement
    threads: int

    @property
    def name(self) -> str:
        """The model's name."""
        return self.plan.name

    def __str__(self) -> str:
        sizes = f"{spelled(self.sizes)}, " if self.sizes else ""
        return f"{sizes}level {self.level}, {self.placement}, {self.threads} thread{'s' * (self.threads > 1)}"


def model_cases(manifest: Manifest, levels: Sequence[str]) -> list[ModelCase]:
    """All cases of the models of a library."""
    found: list[ModelCase] = []
    for plan in manifest.models:
        for sizes in _called_sizes(plan):
            found += [ModelCase(plan, sizes, *each) for each in product(levels, PLACEMENTS, (1, 2))]
    return found


def _called_sizes(plan: ModelPlan) -> list[dict[str, int]]:
    """The sizes of a model's calls: ends of its ranges, halved until they fit, and values between."""
    ranges = {n: range_of(s) for n, s in plan.sizes.items()}

    def room() -> int:
        values = {name: each[-1] for name, each in ranges.items()}
        return sum(bytes_at(array, values) for array in plan.arrays) + sum(
            value_of(block.bytes, values) for block in plan.blocks
        )

    while room() > MOST_BYTES and any(len(each) > 1 for each in ranges.values()):
        widest = max(ranges, key=lambda name: len(ranges[name]))
        ranges[widest] = ranges[widest][: (len(ranges[widest]) + 1) // 2]
    found = probes([Size(name, each[0], each[-1], each.step) for name, each in ranges.items()])
    calls = list(found) or [{}]
    return [values for k, values in enumerate(calls) if values not in calls[:k]]


class ModelReference:
    """The results of a model's plain kernels for random inputs at sizes."""

    def __init__(self, folder: Path, plan: ModelPlan, sizes: Mapping[str, int], seed: int) -> None:
        self.plan, self.sizes = plan, sizes
        self._folder, self._seed = folder, seed
        self._kernels = [plain_kernel(folder, entry) for entry in plan.kernels]

    def shape(self, array: Array) -> tuple[int, ...]:
        """The shape of an array at the sizes."""
        return shape_at(array, self.sizes)

    @cached_property
    def results(self) -> tuple[Arrays, Arrays]:
        """Random inputs, and the outputs. Raises UsageError if kernels refuse the indices that they compute.

        Indices among the inputs are in the ranges that kernels declare; other integers get smaller until those that
        kernels compute from them are.
        """
        for most in (None, 2, 1):
            inputs = self._inputs(most)
            try:
                return inputs, self._outputs(inputs, lambda values, _: values)
            except IndexOutOfRange as error:
                refused = error
        raise UsageError(f"model '{self.plan.name}' refuses all inputs that were tried: {refused}")

    @cached_property
    def changed(self) -> Arrays:
        """The outputs if all floats, those of inputs and those that kernels compute, change as their roundings may.

        Quantised numbers, integers from floats and truth values are others where a float is near a boundary.
        """
        random = np.random.default_rng(self._seed)

        def change(values: NDArray[Any], dtype: str) -> NDArray[Any]:
            if not is_float(dtype):
                return values
            wide = _wide(values, dtype)
            return to_interface(
                round_float64(wide * (1 + NOISE[dtype] * random.uniform(-1, 1, wide.shape)), dtype), dtype
            )

        kinds = {array.name: storage_of(array.dtype) for array in self.plan.inputs}
        inputs = {name: change(values, kinds[name]) for name, values in self.results[0].items()}
        try:
            return self._outputs(inputs, change)
        except IndexOutOfRange:
            return self.results[1]

    def _inputs(self, most: int | None) -> Arrays:
        """Random inputs; integers that are no indices are below `most`."""
        read: dict[int, Parameter] = {}
        for call in self.plan.calls:
            for parameter, place in zip(self._parameters(call), call.arguments, strict=True):
                if place.kind == "input" and parameter.indices is not None:
                    read[place.number] = parameter
        rows: list[Parameter] = []
        for number, array in enumerate(self.plan.inputs):
            indices = None if number not in read else read[number].indices
            kind = storage_of(array.dtype)
            rows.append(Parameter(array.name, kind, self.shape(array), Intent.IN, 1, indices=indices))
        found = random_inputs(rows, self._seed)
        for row in rows:
            if most is not None and row.indices is None and not is_float(row.dtype) and row.dtype != "i1":
                found[row.name] = np.abs(found[row.name]) % most
        return found

    def _parameters(self, call: Call) -> Sequence[Parameter]:
        return parameters_of(nest_of(self._bound(call)))

    def _bound(self, call: Call) -> KernelOp:
        kernel = self._kernels[call.kernel]
        values = [value_of(size, self.sizes) for size in call.sizes]
        return bound(kernel, dict(zip(kernel.known_sizes(), values, strict=True)))

    def _outputs(self, inputs: Arrays, change: Change) -> Arrays:
        plan = self.plan
        data = read_bytes(inside(self._folder, plan.weights_path), LARGEST)
        memory: dict[tuple[str, int], NDArray[np.uint8]] = {}
        for number, weight in enumerate(plan.weights):
            memory["weight", number] = np.frombuffer(data, np.uint8, weight.bytes, weight.offset)
        for number, array in enumerate(plan.inputs):
            memory["input", number] = np.ascontiguousarray(inputs[array.name]).reshape(-1).view(np.uint8)
        for number, array in enumerate(plan.outputs):
            memory["output", number] = np.zeros(bytes_at(array, self.sizes), np.uint8)
        for number, block in enumerate(plan.blocks):
            memory["block", number] = np.zeros(value_of(block.bytes, self.sizes), np.uint8)
        for call in plan.calls:
            self._run(call, memory, change)
        found: Arrays = {}
        for copy in plan.copies:
            memory["output", copy.output][:] = self._part(memory, copy.source, len(memory["output", copy.output]))
        for number, array in enumerate(plan.outputs):
            own = memory["output", number].view(INTERFACE[storage_of(array.dtype)])
            found[array.name] = own.reshape(self.shape(array))
        return found

    def _part(self, memory: Mapping[tuple[str, int], NDArray[np.uint8]], place: Place, size: int) -> NDArray[np.uint8]:
        start = value_of(place.offset, self.sizes)
        found = memory[place.kind, place.number][start : start + size]
        if len(found) != size:
            raise UsageError(f"the plan of model '{self.plan.name}' has a place without room")
        return found

    def _run(self, call: Call, memory: Mapping[tuple[str, int], NDArray[np.uint8]], change: Change) -> None:
        kernel = self._bound(call)
        parameters = parameters_of(nest_of(kernel))
        views: Arrays = {}
        for parameter, place in zip(parameters, call.arguments, strict=True):
            size = prod(parameter.shape) * byte_width(parameter.dtype)
            part = self._part(memory, place, size)
            views[parameter.name] = part.view(INTERFACE[parameter.dtype]).reshape(parameter.shape)
        inputs = {p.name: views[p.name] for p in parameters if p.intent is not Intent.OUT}
        if count_instances(nest_of(kernel)) <= INTERPRETED:
            results = interpret(kernel, inputs)
        else:
            from pdojo.backends.calls import compile_for
            from pdojo.backends.measure.session import run_compiled

            results = run_compiled(compile_for(kernel, None, threads=1), ArraySet(parameters, inputs))[0]
        for parameter in parameters:
            if parameter.written:
                views[parameter.name][...] = change(results[parameter.name], parameter.dtype)


class ModelRunner:
    """Runs cases of models; keeps the expected results of the latest sizes."""

    def __init__(self, folder: Path, library: Library) -> None:
        self._folder, self._library = folder, library
        self._latest: tuple[object, ModelReference] | None = None
        self._loaded: dict[tuple[str, str, int], Handle] = {}

    def run(self, case: ModelCase, seed: int) -> str | None:
        """A message about the first fault of a case; None if all results are right."""
        key = case.plan.name, tuple(case.sizes.values())
        if self._latest is None or self._latest[0] != key:
            self._latest = key, ModelReference(self._folder, case.plan, case.sizes, seed)
        own, plan = self._latest[1], case.plan
        pointers = [ctypes.c_void_p] * len(plan.arrays)
        function = self._library.function(
            plan.name, ctypes.c_int, ctypes.c_void_p, *[ctypes.c_int64] * len(case.sizes), *pointers
        )
        handle = self._handle(case)
        for _ in range(2):
            arrays = [self._array(each, own, case) for each in plan.arrays]
            code = function(handle.pointer, *case.sizes.values(), *(each.array.ctypes.data for each in arrays))
            if code:
                return f"the call was refused with code {code}: {self._library.message(code)}"
            for array, each in zip(plan.arrays, arrays, strict=True):
                if (damage := each.damage(array.name)) is not None:
                    return damage
                if array.direction == "out" and (wrong := _wrong(array, each.array, own)) is not None:
                    return f"wrong result: {wrong}"
        return None

    def _handle(self, case: ModelCase) -> Handle:
        """A handle to which the model is bound."""
        key = case.plan.name, case.level, case.threads
        if key not in self._loaded:
            handle = self._library.new_handle(case.threads, case.level)
            load = self._library.function(f"{case.plan.name}_load", ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)
            path = str(inside(self._folder, case.plan.weights_path)).encode() if case.plan.is_apart else None
            self._library.check(load(handle.pointer, path))
            self._loaded[key] = handle
        return self._loaded[key]

    @staticmethod
    def _array(array: Array, own: ModelReference, case: ModelCase) -> GuardedArray:
        """An array of a call: inputs are filled and read-only, outputs are poisoned."""
        kind = storage_of(array.dtype)
        found = GuardedArray(own.shape(array), INTERFACE[kind], case.placement)
        if array.direction == "out":
            poison(found.array, kind)
            return found
        found.array[...] = own.results[0][array.name]
        found.close_writing()
        return found


def _wrong(array: Array, found: NDArray[Any], own: ModelReference) -> str | None:
    """The way in which an output is wrong; None if it is right, or as near as roundings determine it."""
    wanted, measure = own.results[1][array.name], _error if is_float(array.dtype) else _share
    error, most = measure(array, found, wanted), TOLERANCES.get(array.dtype, 0.0)
    if error <= most or (error < np.inf and error <= measure(array, own.changed[array.name], wanted)):
        return None
    if not is_float(array.dtype):
        return f"{round(error * found.size)} elements of '{array.name}' differ"
    if error == np.inf:
        return f"'{array.name}' differs in infinities or NaN"
    return f"'{array.name}' is off by {error:.2g} of its largest element"


def _share(_: Array, found: NDArray[Any], wanted: NDArray[Any]) -> float:
    """The share of elements that differ."""
    return np.count_nonzero(found != wanted) / max(found.size, 1)


def _error(array: Array, found: NDArray[Any], wanted: NDArray[Any]) -> float:
    """The greatest error, relative to the largest element; infinite if infinities or NaN differ."""
    ours, right = _wide(found, array.dtype), _wide(wanted, array.dtype)
    finite = np.isfinite(right)
    if not np.array_equal(ours[~finite], right[~finite], equal_nan=True) or not np.isfinite(ours[finite]).all():
        return np.inf
    scale = np.abs(right[finite]).max(initial=0.0) or 1.0
    return float(np.abs(ours[finite] - right[finite]).max(initial=0.0) / scale)


def _wide(values: NDArray[Any], dtype: str) -> NDArray[np.float64]:
    """The values of an array in memory as f64."""
    return from_interface(values, dtype).astype(np.float64)
