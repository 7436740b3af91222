"""pdojo as a backend of ONNX (`onnx.backend.base.Backend`), for programs and test suites that take backends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, cast

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, ValueInfoProto, helper
from onnx.backend.base import Backend, BackendRep, namedtupledict

from pdojo.errors import UsageError
from pdojo.onnx.model import OnnxModel, load

Engine = Literal["pass", "none", "interpreter"]
"""The code that runs: compiled with the pass, compiled as it is, or the reference interpreter."""


class PdojoBackendRep(BackendRep):
    """A model that is ready to run."""

    def __init__(self, model: OnnxModel, engine: Engine) -> None:
        self.model = model
        self._call = model.interpret if engine == "interpreter" else model.compile(tune=engine)

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """The outputs for a list of arrays, arrays by name, or one array."""
        if isinstance(inputs, Mapping):
            found: Any = self._call(**inputs)
        elif isinstance(inputs, Sequence):
            found = self._call(*inputs)
        else:
            found = self._call(inputs)
        rows = cast("tuple[Any, ...]", found) if isinstance(found, tuple) else (found,)
        return namedtupledict("Outputs", list(self.model.outputs))(*rows)


class PdojoBackend(Backend):
    """Runs models on this processor.

    Raises UsageError for invalid models, and its subclass UnsupportedNode for nodes without kernel.
    """

    engine: ClassVar[Engine] = "pass"

    @classmethod
    def prepare(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> PdojoBackendRep:
        """A model that is ready to run; it is compiled when it first runs."""
        if not cls.supports_device(device):
            raise UsageError(f"pdojo's backend runs on the CPU, not on '{device}'")
        return PdojoBackendRep(load(model), cls.engine)

    @classmethod
    def run_node(
        cls,
        node: NodeProto,
        inputs: Any,
        device: str = "CPU",
        outputs_info: Sequence[tuple[Any, tuple[int, ...]]] | None = None,
        **kwargs: Any,
    ) -> tuple[Any, ...]:
        """The outputs of one node for a list of arrays; `opset_version` is the version of its operator set."""
        rows = cast("Sequence[Any]", inputs if isinstance(inputs, Sequence) else [inputs])
        arrays: list[NDArray[Any]] = [np.asarray(each) for each in rows]
        names = [name for name in node.input if name]
        given = [helper.make_tensor_value_info(n, _number(a), a.shape) for n, a in zip(names, arrays, strict=True)]
        made = [ValueInfoProto(name=name) for name in node.output if name]
        version = kwargs.get("opset_version")
        opsets = None if version is None else [helper.make_opsetid(node.domain, version)]
        graph = helper.make_graph([node], "node", given, made)
        model = helper.make_model(graph, **({} if opsets is None else {"opset_imports": opsets}))
        try:
            super().run_node(node, inputs, device, outputs_info, **kwargs)
        except Exception as error:  # of onnx's C++ part
            raise UsageError(f"node '{node.name}' ({node.op_type}) is invalid: {error}") from error
        return PdojoBackendRep(load(model), cls.engine).run(arrays)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether the device is the CPU."""
        return device.partition(":")[0] == "CPU"


def _number(array: NDArray[Any]) -> int:
    return helper.np_dtype_to_tensor_dtype(array.dtype)


prepare = PdojoBackend.prepare
run_model = PdojoBackend.run_model
run_node = PdojoBackend.run_node
supports_device = PdojoBackend.supports_device
