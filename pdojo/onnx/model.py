"""ONNX models: specialised for shapes and static values when they run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto

from pdojo.backends.calling.arguments import matched
from pdojo.backends.calling.tensors import array_of, is_tensor
from pdojo.build.sizes import OpenExtent
from pdojo.dialect.affine import Size
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.ops import KernelOp
from pdojo.errors import UsageError
from pdojo.model.compiled import CompiledModel, described_machine
from pdojo.model.element_types import numpy_type
from pdojo.model.graph import Known, Operand, Tensor
from pdojo.model.kept import Kept
from pdojo.model.model import Model
from pdojo.model.quick import QuickModel, in_order
from pdojo.model.sized_programs import SizedPrograms
from pdojo.onnx.explaining import Explanation, PartReport, Watched
from pdojo.onnx.importing import import_graph, initializers_of, whole_graph
from pdojo.onnx.kinds import kind_of
from pdojo.onnx.labels import maps_left_out
from pdojo.onnx.operators.registry import UnsupportedNode
from pdojo.onnx.protos import declared_type, read_model
from pdojo.onnx.ranges import Place, Ranges, Shapes, with_sizes
from pdojo.onnx.regions import Compiler, Engine, Interpreter, placed, value_of
from pdojo.onnx.scope import NeedsInputs
from pdojo.onnx.stages import LARGEST, Frame

if TYPE_CHECKING:
    from pdojo.search.database import Database

_T = TypeVar("_T")
_MOST_QUICK = 64
"""Most shapes whose short ways are kept."""
Outputs: TypeAlias = Any
"""The array of the only output, or a tuple."""


@dataclass(frozen=True)
class Input:
    """An input of a model as the file declares it."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int | str | None, ...] | None
    """Extents: numbers, names of unknown ones, None without name; None for any number of dimensions."""

    @property
    def declared(self) -> str:
        """The shape in messages: `batchx3x?`."""
        return "x".join("?" if extent is None else str(extent) for extent in self.shape or ()) or "()"

    def check(self, array: Known, sizes: dict[str, int]) -> None:
        """Raise UsageError for an array of another type or shape; `sizes` are the values of names, and grow."""
        if array.dtype != self.dtype:
            raise UsageError(f"input '{self.name}' has elements of type {array.dtype}, the model takes {self.dtype}")
        if self.shape is None:
            return
        fits = len(array.shape) == len(self.shape)
        for wanted, found in zip(self.shape, array.shape, strict=False):
            expected = sizes.setdefault(wanted, found) if isinstance(wanted, str) else wanted
            fits &= expected in (None, found)
        if not fits:
            raise UsageError(f"input '{self.name}' has shape {array.shape}, the model takes {self.declared}")


@dataclass(frozen=True, eq=False)
class Specialisation:
    """A model for inputs of certain shapes, and for certain values of the static inputs."""

    frame: Frame
    inputs: Mapping[str, Tensor]
    """The tensors of the inputs that have elements and are not static, keyed by name."""
    model: Model | None
    """The kernels of a model without steps; None for others."""

    def only_kernels(self) -> Model:
        """The kernels of a model without steps. Raises UnsupportedNode for others."""
        if self.model is not None:
            return self.model
        title, reason = self.frame.first.obstacle
        raise UnsupportedNode(
            f"{title}: {reason}, and so the model is no single graph of kernels; `explain` tells more"
        )

    def arrays(self, given: Mapping[str, Known]) -> dict[str, Known]:
        """The input arrays that are not static, contiguous, keyed by name."""
        return {name: np.ascontiguousarray(given[name]).reshape(given[name].shape) for name in self.inputs}

    def run(self, given: Mapping[str, Known], engine: Engine) -> Outputs:
        """The outputs for input arrays, keyed by name, as an engine computes them."""
        values = {self.inputs[name]: placed(array) for name, array in self.arrays(given).items()}
        others, outputs = list(values.values()), list[Known]()
        for item in self.frame.run(values, engine):
            array = value_of(cast("Operand", item), values)
            is_shared = not isinstance(item, Tensor) or any(np.may_share_memory(array, other) for other in others)
            outputs.append(array.copy() if is_shared else array)
            others.append(array)
        return _single(outputs)


class OnnxModel:
    """A model of an ONNX file, made by `load`. It is specialised for the shapes of the inputs when it first sees them.

    A node that needs the value of an input, such as the scales of a Resize, makes this input *static*: the model is
    then specialised for its value too. What else is computed when the model runs, such as conditions and indices,
    makes nodes steps between kernels.
    """

    def __init__(self, proto: ModelProto) -> None:
        self.proto = proto
        self.name = proto.graph.name or "model"
        given = {each.name for each in proto.graph.initializer}
        self.inputs = tuple(_declared(each) for each in proto.graph.input if each.name not in given)
        self.outputs = tuple(each.name for each in proto.graph.output)
        self._static: dict[str, str] = {}
        self._models: Kept[Specialisation] = Kept()
        self._ranges: Kept[Ranges[Specialisation]] = Kept()
        self._compiled: CallableOnnxModel | None = None

    @property
    def static(self) -> Mapping[str, str]:
        """The inputs that are static so far, with the node for which each became it."""
        return dict(self._static)

    def specialise(self, /, *arrays: Any, **named: Any) -> Model:
        """The model for inputs of these shapes, and for the values of the static inputs.

        Raises UnsupportedNode for a node without kernel, UsageError for arrays that do not fit or an invalid model.
        """
        return self.specialised(self.given(arrays, named)).only_kernels()

    def run(self, /, *arrays: Any, **named: Any) -> Outputs:
        """The outputs for input arrays in the order of `inputs`, or by name; compiled with the pass at first use.

        Raises UnsupportedNode for a node that is neither kernel nor step, UsageError as `specialise`.
        """
        return self._callable()(*arrays, **named)

    def explain(self, /, *arrays: Any, **named: Any) -> Explanation:
        """The parts of a call for these inputs: kernels, and steps with reasons. Raises the errors of `run`."""
        return self._callable().explain(*arrays, **named)

    def kernels(self, /, *arrays: Any, **named: Any) -> tuple[KernelOp, ...]:
        """The different kernels of the model, before any moves, and those that ran if it has steps."""
        given = self.given(arrays, named)
        found = self.specialised(given)
        return found.model.kernels if found.model is not None else self.compile(tune="none").explain(**given).kernels

    def _callable(self) -> CallableOnnxModel:
        if self._compiled is None:
            self._compiled = self.compile()
        return self._compiled

    def interpret(self, /, *arrays: Any, **named: Any) -> Outputs:
        """The outputs as the reference interpreter computes them. Raises the errors of `run`."""
        given = self.given(arrays, named)
        found = self.specialised(given)
        if found.model is not None:
            return _single(found.model.interpret(**found.arrays(given)))
        return found.run(given, Interpreter())

    def compile(
        self,
        machine: Machine | str | None = None,
        *,
        tune: Literal["none", "pass"] = "pass",
        database: Database | None = None,
        threads: int | None = None,
        cached: bool = True,
    ) -> CallableOnnxModel:
        """The model as a callable for this processor; the parameters and errors are those of `Model.compile`.

        `database` gives the best known program of a kernel where it has one.
        """
        described = described_machine(machine, tune, threads)
        scheduler = None
        if database is not None:
            from pdojo.search.tuning.known import best_known

            scheduler = best_known(database)
        programs = SizedPrograms()
        options: Any = {"scheduler": scheduler, "threads": threads, "programs": programs, "cached": cached}
        return CallableOnnxModel(self, lambda model: model.compile(described, tune=tune, **options))

    def given(self, arrays: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Known]:
        """The input arrays, keyed by name, checked."""
        found = matched(self.name, [each.name for each in self.inputs], arrays, named)
        missing = [each.name for each in self.inputs if each.name not in found]
        if missing:
            raise UsageError(f"model '{self.name}' needs {', '.join(missing)}")
        sizes: dict[str, int] = {}
        given = {each.name: _array(each.name, found[each.name]) for each in self.inputs}
        for each in self.inputs:
            each.check(given[each.name], sizes)
        return given

    def specialised(self, given: Mapping[str, Known]) -> Specialisation:
        """The model for checked input arrays, keyed by name. Raises the errors of `specialise`."""

        def made(static: frozenset[str]) -> Specialisation:
            key = tuple(
                (array.dtype.str, array.shape, array.tobytes() if name in static else b"")
                for name, array in given.items()
            )
            return self._models.get(key, partial(self._model, given, static))

        return self._with_static(given, made)

    def opened(self, given: Mapping[str, Known], shapes: Mapping[str, Sequence[int | range]]) -> Model:
        """The kernels for all shapes of inputs in these ranges; an extent with a name has one size.

        `given` are arrays of such shapes, of which the static inputs matter. Raises UsageError if the kernels are not
        the same for all, and UnsupportedNode.
        """
        arrays = self.given((), given)

        def made(static: frozenset[str]) -> Model:
            own = {name: shapes[name] for name in arrays if name not in static}
            for name in static:
                if any(isinstance(each, range) for each in shapes[name]):
                    raise UsageError(
                        f"{self._static[name]} needs the value of input '{name}', whose extents are numbers"
                    )
            names = self._extent_names(own)
            return self._open_model(arrays, static, with_sizes([*own.values()], names, names)).only_kernels()

        try:
            return self._with_static(arrays, made)
        except OpenExtent as error:
            raise UsageError(f"{error}; choose narrower ranges, or numbers") from None

    def planned(self, given: Mapping[str, Known]) -> tuple[Specialisation, Mapping[Size, int]]:
        """The model for checked input arrays: one for a range of shapes and the values of its sizes, or `specialised`.

        Raises the errors of `specialise`.
        """
        while True:
            static = frozenset(self._static)
            ranges, shapes = self._seen(given, static)
            known = ranges.known(shapes)
            try:
                if known is None:
                    known = ranges.found(shapes, partial(self._open_model, given, static))
            except NeedsInputs as needed:
                self._make_static(needed, given, static)
                continue
            if known is not None:
                return known
            found = self.specialised(given)
            if len(self._static) > len(static):
                ranges, shapes = self._seen(given, frozenset(self._static))
            ranges.note(shapes)
            return found, {}

    def why_not_open(self, given: Mapping[str, Known]) -> str:
        """Why shapes like those of checked arrays have no common plan; empty if they have one, or may have."""
        ranges, _ = self._seen(given, frozenset(self._static))
        return next(iter(ranges.refused.values()), "")

    def _seen(self, given: Mapping[str, Known], static: frozenset[str]) -> tuple[Ranges[Specialisation], Shapes]:
        """The shapes of calls that differ in the shapes of inputs only, and those of this one."""
        own = {name: array for name, array in given.items() if name not in static}
        fixed = [(name, array.shape, array.tobytes()) for name, array in given.items() if name in static]
        key = tuple(fixed), tuple([(array.dtype, array.ndim) for array in own.values()])
        shapes = tuple([array.shape for array in own.values()])
        return self._ranges.get(key, lambda: Ranges(self._extent_names(own))), shapes

    def _extent_names(self, names: Iterable[str]) -> dict[Place, str]:
        """The names that the file gives the extents of some inputs."""
        shapes = {each.name: each.shape or () for each in self.inputs}
        rows = [(n, axis, extent) for n, name in enumerate(names) for axis, extent in enumerate(shapes[name])]
        return {(n, axis): extent for n, axis, extent in rows if isinstance(extent, str)}

    def _open_model(self, given: Mapping[str, Known], static: frozenset[str], shapes: Shapes) -> Specialisation:
        """The model for shapes that depend on sizes. Raises UsageError if it is not the same for all of them."""
        found = self._model(given, static, shapes)
        if found.model is None:
            title, reason = found.frame.first.obstacle
            raise OpenExtent(f"{title}: {reason}; only models without steps have a plan for many shapes")
        return found

    def _with_static(self, given: Mapping[str, Known], make: Callable[[frozenset[str]], _T]) -> _T:
        """The result of a function of the static inputs, of which there are more until no node needs another one."""
        while True:
            static = frozenset(self._static)
            try:
                return make(static)
            except NeedsInputs as needed:
                self._make_static(needed, given, static)

    def _make_static(self, needed: NeedsInputs, given: Mapping[str, Known], known: frozenset[str]) -> None:
        """Make the input static that a specialisation for the values of `known` needs; another thread may have."""
        size = sum(given[name].nbytes for name in {needed.name, *known})
        if size > LARGEST:
            raise UnsupportedNode(
                f"{needed.node}: it needs the value of '{needed.name}' before the model runs, which with those of "
                f"other nodes is {size} bytes; models are specialised for up to {LARGEST}"
            ) from None
        self._static.setdefault(needed.name, needed.node)

    def _model(
        self, given: Mapping[str, Known], static: frozenset[str], shapes: Shapes | None = None
    ) -> Specialisation:
        """The model for given arrays, or for others of these shapes."""
        own = [name for name in given if name not in static]
        known = dict(zip(own, shapes or [given[name].shape for name in own], strict=True))
        inputs = {
            name: (kind_of(array.dtype), known[name]) if name in known else array.copy()
            for name, array in given.items()
        }
        frame = import_graph(self.proto, inputs, self._initializers)
        graph = whole_graph(frame)
        tensors = {tensor.name: tensor for tensor in frame.first.stage.builder.inputs}
        return Specialisation(frame, tensors, None if graph is None else Model.of(graph))

    @cached_property
    def _initializers(self) -> dict[str, Known]:
        """The weights, the same arrays at all shapes."""
        return initializers_of(self.proto)

    def __repr__(self) -> str:
        return f"<OnnxModel {self.name}, {len(self.proto.graph.node)} nodes>"


class CallableOnnxModel:
    """A compiled ONNX model; it compiles again for inputs of other shapes. Several threads may call it at once."""

    def __init__(self, model: OnnxModel, compile_: Callable[[Model], CompiledModel]) -> None:
        self.model = model
        self._compile = compile_
        self._compiled: Kept[CompiledModel] = Kept()
        self._steps = Compiler(compile_)
        self._names = [each.name for each in model.inputs]
        self._quick: dict[object, QuickModel] = {}
        """The short way of calls with NumPy arrays of the same types and shapes, of models without static inputs."""

    def __call__(self, /, *arrays: Any, **named: Any) -> Outputs:
        """The outputs for input arrays in the order of the model's inputs, or by name."""
        ordered = in_order(self._names, arrays, named)
        key = None if ordered is None else _forms(ordered)
        if key in self._quick and (outputs := self._quick[key](ordered)) is not None:
            return outputs
        given = self.model.given(arrays, named)
        found, sizes = self.model.planned(given)
        if found.model is None:
            return found.run(given, self._steps)
        compiled = self._of(found, sizes)
        if key is not None and compiled.quick is not None and compiled.quick.names == self._names:
            if len(self._quick) >= _MOST_QUICK:
                self._quick = {}
            self._quick[key] = compiled.quick
        return compiled(**found.arrays(given))

    def prepare(self, /, *arrays: Any, **named: Any) -> tuple[CompiledModel, dict[str, NDArray[Any]]]:
        """The compiled model for inputs of these shapes, and the arrays that it takes, keyed by name.

        Raises UnsupportedNode for a model with steps.
        """
        given = self.model.given(arrays, named)
        found, sizes = self.model.planned(given)
        found.only_kernels()
        return self._of(found, sizes), found.arrays(given)

    def _of(self, found: Specialisation, sizes: Mapping[Size, int]) -> CompiledModel:
        model = found.only_kernels()
        compiled = self._compiled.get(found, lambda: self._compile(model))
        return compiled.at([sizes[size] for size in model.sizes.values()])

    def check_memory(self) -> None:
        """Run all kernels that are compiled as `CompiledModel.check_memory` does, and raise its errors."""
        for each in [*self._compiled.values, *self._steps.values]:
            each.check_memory()

    def explain(self, /, *arrays: Any, **named: Any) -> Explanation:
        """The parts of a call for these inputs, after one that compiles. Raises the errors of a call."""
        given = self.model.given(arrays, named)
        self(**given)
        found, sizes = self.model.planned(given)
        left_out = maps_left_out(self.model.proto.graph.node)
        if found.model is None:
            watched = Watched(self._steps)
            found.run(given, watched)
            parts, obstacle = tuple(watched.reports.values()), self.model.why_not_open(given)
            return Explanation(parts, self.model.static, obstacle, left_out=left_out)
        compiled, inputs = self._of(found, sizes), found.arrays(given)
        seconds = sum(compiled.profile(**inputs))
        report = replace(PartReport.of_model(found.model), runs=1, seconds=seconds)
        return Explanation((report,), self.model.static, self.model.why_not_open(given), tuple(sizes), left_out)


def load(source: str | os.PathLike[str] | bytes | ModelProto) -> OnnxModel:
    """The model of an ONNX file, of the bytes of one, or of a message.

    Nothing in the file is executed; external data is read from the folder of the file only. Raises UsageError for a
    missing or invalid file. Nodes without kernel are found when the model is specialised.
    """
    return OnnxModel(read_model(source))


def _array(name: str, value: Any) -> Known:
    """An input as an array: of NumPy, a tensor on the CPU, numbers. Raises UsageError for other values."""
    if is_tensor(value):
        array = array_of(value, name)
        return array.view(numpy_type("bf16")) if str(value.dtype) == "torch.bfloat16" else array
    try:
        array = np.asarray(value)
        return array.astype(object) if array.dtype.kind in "US" else array
    except (TypeError, ValueError, RuntimeError) as error:
        raise UsageError(f"input '{name}' is no array: {error}") from None


def _forms(arrays: Sequence[object]) -> object:
    """The types and shapes of NumPy arrays, None for each other one."""
    return tuple([(each.dtype, each.shape) if type(each) is np.ndarray else None for each in arrays])


def _single(outputs: Sequence[Known]) -> Outputs:
    return outputs[0] if len(outputs) == 1 else tuple(outputs)


def _declared(value: Any) -> Input:
    """An input as the file declares it. Raises UsageError if it is no tensor of numbers."""
    if not value.type.HasField("tensor_type"):
        raise UsageError(f"input '{value.name}' is no tensor")
    tensor = value.type.tensor_type
    dtype = declared_type(tensor.elem_type, f"input '{value.name}'")
    if not tensor.HasField("shape"):
        return Input(value.name, dtype, None)
    # PaddlePaddle writes -1 or '?' for an unknown extent, and ONNX Runtime takes any negative one for it.
    extents = [
        (d.dim_value if d.dim_value >= 0 else None) if d.HasField("dim_value") else d.dim_param.strip("?") or None
        for d in tensor.shape.dim
    ]
    return Input(value.name, dtype, tuple(extents))
