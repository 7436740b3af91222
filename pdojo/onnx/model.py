"""ONNX models: specialised for shapes and static values when they run."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from threading import Lock
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto

from pdojo.backends.calling.arguments import matched
from pdojo.backends.calling.tensors import array_of, is_tensor
from pdojo.dialect.machines.machine import Machine
from pdojo.errors import UsageError
from pdojo.model.compiled import CompiledModel, described_machine
from pdojo.model.element_types import element_type, numpy_type
from pdojo.model.graph import Known
from pdojo.model.model import Model
from pdojo.model.sized_programs import SizedPrograms
from pdojo.onnx.importing import NeedsInputs, import_graph, initializers_of
from pdojo.onnx.operators.registry import UnsupportedNode
from pdojo.onnx.protos import declared_type, read_model

if TYPE_CHECKING:
    from pdojo.search.database import Database

Outputs: TypeAlias = Any
"""The array of the only output, or a tuple."""
_T = TypeVar("_T")
_MOST = 32
"""Most specialisations that are kept; the oldest goes first."""
_STATIC_BYTES = 1 << 20
"""Most bytes of all inputs together for whose values a model is specialised."""


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


class _Kept(Generic[_T]):
    """Values, keyed by key, a bounded number of them; several threads may ask at once."""

    def __init__(self) -> None:
        self._known: OrderedDict[object, _T] = OrderedDict()
        self._lock = Lock()

    def get(self, key: object, make: Callable[[], _T]) -> _T:
        """The value of a key, made if there is none."""
        with self._lock:
            if key not in self._known:
                self._known[key] = make()
                while len(self._known) > _MOST:
                    self._known.popitem(last=False)
            self._known.move_to_end(key)
            return self._known[key]


@dataclass(frozen=True)
class Specialisation:
    """A model for inputs of certain shapes, and for certain values of the static inputs."""

    key: object
    """The shapes and values that it was made for; equal for equal models."""
    model: Model
    inputs: dict[str, Known]
    """The arrays that it takes, contiguous, keyed by name."""


class OnnxModel:
    """A model of an ONNX file, made by `load`. It is specialised for the shapes of the inputs when it first sees them.

    A node that needs the value of an operand, such as the shape of a Reshape, makes the inputs that this value depends
    on *static*: the model is then specialised for their values too. A value that is computed from floating-point inputs
    makes them static with `static_floats` only, and is an error without.
    """

    def __init__(self, proto: ModelProto, *, static_floats: bool = False) -> None:
        self.proto = proto
        self._static_floats = static_floats
        self.name = proto.graph.name or "model"
        given = {each.name for each in proto.graph.initializer}
        self.inputs = tuple(_declared(each) for each in proto.graph.input if each.name not in given)
        self.outputs = tuple(each.name for each in proto.graph.output)
        self._static: dict[str, str] = {}
        self._models: _Kept[Model] = _Kept()
        self._compiled: CallableOnnxModel | None = None

    @property
    def static(self) -> Mapping[str, str]:
        """The inputs that are static so far, with the node for which each became it."""
        return dict(self._static)

    def specialise(self, /, *arrays: Any, **named: Any) -> Model:
        """The model for inputs of these shapes, and for the values of the static inputs.

        Raises UnsupportedNode for a node without kernel, UsageError for arrays that do not fit or an invalid model.
        """
        return self.prepare(*arrays, **named).model

    def prepare(self, /, *arrays: Any, **named: Any) -> Specialisation:
        """The model for these inputs, with the arrays that it takes. Raises the errors of `specialise`."""
        given = self._given(arrays, named)
        key, model = self._specialised(given)
        inputs = {t.name: np.ascontiguousarray(given[t.name]).reshape(t.shape) for t in model.inputs}
        return Specialisation(key, model, inputs)

    def run(self, /, *arrays: Any, **named: Any) -> Outputs:
        """The outputs for input arrays in the order of `inputs`, or by name; compiled with the pass at first use.

        Raises the errors of `specialise`.
        """
        if self._compiled is None:
            self._compiled = self.compile()
        return self._compiled(*arrays, **named)

    def interpret(self, /, *arrays: Any, **named: Any) -> Outputs:
        """The outputs as the reference interpreter computes them. Raises the errors of `specialise`."""
        found = self.prepare(*arrays, **named)
        return _single(found.model.interpret(**found.inputs))

    def compile(
        self,
        machine: Machine | str | None = None,
        *,
        tune: Literal["none", "pass"] = "pass",
        database: Database | None = None,
        threads: int | None = None,
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
        return CallableOnnxModel(
            self,
            lambda model: model.compile(described, tune=tune, scheduler=scheduler, threads=threads, programs=programs),
        )

    def _given(self, arrays: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Known]:
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

    def _specialised(self, given: Mapping[str, Known]) -> tuple[object, Model]:
        """The model for these inputs, with its key."""
        while True:
            static = frozenset(self._static)
            key = tuple(
                (array.dtype.str, array.shape, array.tobytes() if name in static else b"")
                for name, array in given.items()
            )
            try:
                return key, self._models.get(key, partial(self._model, given, static))
            except NeedsInputs as needed:
                self._make_static(needed, given, static)

    def _make_static(self, needed: NeedsInputs, given: Mapping[str, Known], known: frozenset[str]) -> None:
        """Make the inputs static that a specialisation for the values of `known` needs; another thread may have."""
        floats = [name for name in needed.names - known if given[name].dtype.kind not in "biu"]
        if needed.computed and floats and not self._static_floats:
            raise UnsupportedNode(
                f"{needed.node}: it needs a value that is computed from {_listed(floats)} when the model runs, and no "
                "kernel takes one; with load(..., static_floats=True) the model is made anew for every input"
            ) from None
        size = sum(given[name].nbytes for name in needed.names | known)
        if needed.names <= known or size > _STATIC_BYTES:
            raise UnsupportedNode(
                f"{needed.node}: it needs the values of {_listed(needed.names)} before the model runs, "
                f"which are {size} bytes; models are specialised for up to {_STATIC_BYTES}"
            ) from None
        for name in needed.names:
            self._static.setdefault(name, needed.node)

    def _model(self, given: Mapping[str, Known], static: frozenset[str]) -> Model:
        inputs = {
            name: array.copy() if name in static else (_element(name, array), array.shape)
            for name, array in given.items()
        }
        return Model.of(import_graph(self.proto, inputs, self._initializers))

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
        self._compiled: _Kept[CompiledModel] = _Kept()

    def __call__(self, /, *arrays: Any, **named: Any) -> Outputs:
        """The outputs for input arrays in the order of the model's inputs, or by name."""
        compiled, inputs = self.prepare(*arrays, **named)
        return compiled(**inputs)

    def prepare(self, /, *arrays: Any, **named: Any) -> tuple[CompiledModel, dict[str, NDArray[Any]]]:
        """The compiled model for inputs of these shapes, and the arrays that it takes, keyed by name."""
        found = self.model.prepare(*arrays, **named)
        return self._compiled.get(found.key, lambda: self._compile(found.model)), found.inputs


def load(source: str | os.PathLike[str] | bytes | ModelProto, *, static_floats: bool = False) -> OnnxModel:
    """The model of an ONNX file, of the bytes of one, or of a message.

    Nothing in the file is executed; external data is read from the folder of the file only. Raises UsageError for a
    missing or invalid file. Nodes without kernel are found when the model is specialised.

    `static_floats` permits branches, indices and shapes that are computed from floating-point inputs: the model is then
    specialised for the values of these inputs, and made anew for other values, which takes much longer than a call.
    """
    return OnnxModel(read_model(source), static_floats=static_floats)


def _listed(names: Iterable[str]) -> str:
    """Inputs in a message."""
    return ", ".join(f"'{name}'" for name in sorted(names))


def _array(name: str, value: Any) -> Known:
    """An input as an array: of NumPy, a tensor on the CPU, numbers. Raises UsageError for other values."""
    if is_tensor(value):
        array = array_of(value, name)
        return array.view(numpy_type("bf16")) if str(value.dtype) == "torch.bfloat16" else array
    try:
        return np.asarray(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise UsageError(f"input '{name}' is no array: {error}") from None


def _element(name: str, array: Known) -> str:
    try:
        return element_type(array.dtype)
    except UsageError as error:
        raise UsageError(f"input '{name}' is not supported: {error}") from None


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
    # PaddlePaddle writes -1 for an unknown extent, and ONNX Runtime takes any negative one for it.
    extents = [
        (d.dim_value if d.dim_value >= 0 else None) if d.HasField("dim_value") else d.dim_param or None
        for d in tensor.shape.dim
    ]
    return Input(value.name, dtype, tuple(extents))
