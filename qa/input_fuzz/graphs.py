"""Random ONNX graphs with one node from the definitions of all operators, between nodes that pdojo supports.

Operators, versions of their sets, element types, attributes and shapes are random; few of the nodes are valid. A graph
that pdojo refuses must give one error that names the node, its operator and the reason.
"""

from __future__ import annotations

import re
from functools import cache
from random import Random
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from onnx import (
    AttributeProto,
    ModelProto,
    NodeProto,
    TensorProto,
    TypeProto,
    ValueInfoProto,
    defs,
    helper,
    numpy_helper,
    shape_inference,
)
from onnx.checker import ValidationError

from pdojo.errors import PdojoError, UsageError
from pdojo.onnx.operators import UnsupportedNode

NAME = "odd"
"""The name of the node."""
_LONGEST = 600
"""Most characters of an error."""
_OTHER_DOMAINS = ("com.example", "com.microsoft")
_NEWEST: dict[str, int] = {"": defs.onnx_opset_version(), "ai.onnx.ml": 5, "ai.onnx.preview.training": 1}
_COMMON = ("tensor(float)", "tensor(float)", "tensor(int64)", "tensor(int32)", "tensor(bool)", "tensor(double)")
_INTS = (0, 1, 1, -1, 2, 2, 3, -2, 5, 17, 2**40, -(2**63))
_FLOATS = (0.0, 1.0, -1.0, 0.5, 2.0, float("nan"), float("inf"), -1e30)
_STRINGS = (
    *"constant edge reflect wrap nearest linear cubic bilinear bicubic zeros border NOTSET VALID SAME_UPPER".split(),
    *"half_pixel asymmetric tf_crop_and_resize floor ceil none add mul DCR CRD forward bidirectional Relu Tanh".split(),
    *("", "avg", "max", "nonsense", "ij,jk->ik", "...i->i", "é", "mean", "sum"),
)
_EXCEPTION = re.compile(r"\b(?!UnsupportedNode)[A-Z]\w*(?:Error|Exception)\b|\bTraceback\b|object at 0x")


@cache
def _schemas() -> dict[str, list[Any]]:
    """The definitions of all versions of all operators, by domain and name."""
    found: dict[str, list[Any]] = {}
    for schema in cast("list[Any]", defs.get_all_schemas_with_history()):
        found.setdefault(f"{schema.domain}:{schema.name}", []).append(schema)
    return dict(sorted((key, sorted(each, key=lambda s: s.since_version)) for key, each in found.items()))


def odd_model(random: Random) -> bytes:
    """A model with a random node."""
    rows = _schemas()
    schema = random.choice(rows[random.choice(list(rows))])
    return _Graph(random, schema).model().SerializeToString()


class _Graph:
    """A graph around one node of an operator."""

    def __init__(self, random: Random, schema: Any) -> None:
        self.random, self.schema = random, schema
        self.nodes: list[NodeProto] = []
        self.inputs: list[ValueInfoProto] = []
        self.constants: list[TensorProto] = []
        self.types: dict[str, str] = {}
        rank = random.choice((0, 1, 2, 3, 4, 4, 5))
        self.shape = [random.randrange(1, 5) for _ in range(rank)]

    def model(self) -> ModelProto:
        """The graph as a model."""
        random, schema = self.random, self.schema
        domain = schema.domain if random.random() < 0.95 else random.choice(_OTHER_DOMAINS)
        operands = self._operands()
        results = [f"r{n}" for n in range(self._count(schema.min_output, schema.max_output, len(schema.outputs)))]
        node = NodeProto(op_type=schema.name, domain=domain, name=NAME, input=operands, output=results)
        for name, attribute in sorted(schema.attributes.items()):
            if attribute.required or random.random() < 0.4:
                node.attribute.append(self._attribute(name, attribute))
        version = self._version(schema)
        opsets = {"": _NEWEST[""], domain: version} if domain else {"": version}
        graph = helper.make_graph([*self.nodes, node], "odd", self.inputs, [], self.constants)
        imports = [helper.make_opsetid(name, number) for name, number in opsets.items()]
        model = helper.make_model(graph, opset_imports=imports, ir_version=10)
        inferred = _inferred(model)
        for n, name in enumerate(results):
            kind = inferred.get(name, TypeProto()).tensor_type
            # A result of unknown type is seen by its size.
            operator = "Identity" if kind.elem_type and kind.HasField("shape") else "Size"
            model.graph.node.append(helper.make_node(operator, [name], [f"y{n}"]))
            output = helper.make_tensor_value_info(f"y{n}", TensorProto.INT64, [])
            if operator == "Identity":
                output.type.tensor_type.CopyFrom(kind)
            model.graph.output.append(output)
        return model

    def _version(self, schema: Any) -> int:
        """A version of the operator set in which this definition holds."""
        versions = [each.since_version for each in _schemas()[f"{schema.domain}:{schema.name}"]]
        later = [each - 1 for each in versions if each > schema.since_version]
        return self.random.choice((schema.since_version, min(later, default=_NEWEST.get(schema.domain, 1))))

    def _count(self, least: int, most: int, formal: int) -> int:
        return self.random.randint(max(least, 1), max(least, 1, min(most, formal, 4)))

    def _operands(self) -> list[str]:
        schema, random = self.schema, self.random
        if not schema.inputs:
            return []
        count = random.randint(
            schema.min_input, max(schema.min_input, min(schema.max_input, len(schema.inputs) + 1, 9))
        )
        formal = list(schema.inputs)
        formal += [formal[-1]] * (count - len(formal))
        return [
            "" if each.option == defs.OpSchema.FormalParameterOption.Optional and random.random() < 0.2
            else self._operand(f"x{n}", each)
            for n, each in enumerate(formal[:count])
        ]  # fmt: skip

    def _operand(self, name: str, formal: Any) -> str:
        """A value of a type that the operator takes."""
        allowed = sorted(cast("set[str]", formal.types))
        common = [each for each in _COMMON if each in allowed]
        given = self.types.get(formal.type_str)
        if given is None:
            given = self.random.choice(common if common and self.random.random() < 0.6 else allowed)
        self.types[formal.type_str] = given
        return self._value(name, given)

    def _value(self, name: str, kind: str) -> str:
        """A value: an input of the model, the result of supported nodes, or a constant."""
        random = self.random
        outer, _, inner = kind.rstrip(")").partition("(")
        if outer in ("seq", "optional"):
            parts = [self._value(f"{name}_{n}", inner) for n in range(random.randrange(1, 3))]
            operator = "SequenceConstruct" if outer == "seq" else "Optional"
            self.nodes.append(helper.make_node(operator, parts if outer == "seq" else parts[:1], [name]))
            return name
        number = _number(inner if outer == "tensor" else "float")
        shape = self._shape()
        if random.random() < 0.3 and number != TensorProto.STRING:
            self.constants.append(_constant(name, number, shape, random))
            return name
        if number != TensorProto.FLOAT or random.random() < 0.3:
            self.inputs.append(helper.make_tensor_value_info(name, number, shape))
            return name
        self.inputs.append(helper.make_tensor_value_info(f"{name}_in", number, shape))
        self.nodes.append(helper.make_node("Abs", [f"{name}_in"], [f"{name}_abs"]))
        self.nodes.append(helper.make_node("Add", [f"{name}_abs", f"{name}_in"], [name]))
        return name

    def _shape(self) -> list[int]:
        random = self.random
        if random.random() < 0.6:
            return self.shape
        return [random.randrange(5 if random.random() < 0.1 else 1, 6) for _ in range(random.randrange(0, 5))]

    def _attribute(self, name: str, attribute: Any) -> AttributeProto:
        random, kinds = self.random, AttributeProto
        default = attribute.default_value
        if default.type and random.random() < 0.3:
            return default
        match int(attribute.type):
            case kinds.INT:
                value: Any = random.choice(_INTS)
            case kinds.FLOAT:
                value = random.choice(_FLOATS)
            case kinds.STRING:
                value = random.choice(_STRINGS)
            case kinds.INTS:
                value = [random.choice(_INTS) for _ in range(random.randrange(1, 5))]
            case kinds.FLOATS:
                value = [random.choice(_FLOATS) for _ in range(random.randrange(1, 5))]
            case kinds.STRINGS:
                value = [random.choice(_STRINGS) for _ in range(random.randrange(1, 4))]
            case kinds.TENSOR:
                value = _constant("", random.choice((1, 6, 7, 11, 17)), self._shape(), random)
            case kinds.GRAPH:
                value = self._body()
            case _:
                value = helper.make_tensor_type_proto(random.choice((1, 7)), self._shape())
        return helper.make_attribute(name, value)

    def _body(self) -> Any:
        """A subgraph of random numbers of operands and results."""
        random = self.random
        operands = [helper.make_tensor_value_info(f"b{n}", 0, None) for n in range(random.randrange(0, 4))]
        names = [each.name for each in operands]
        constant = helper.make_tensor("c", TensorProto.FLOAT, [2], [1.0, 2.0])
        nodes = [helper.make_node("Constant", [], ["c"], value=constant)]
        results: list[ValueInfoProto] = []
        for n in range(random.randrange(1, 4)):
            nodes.append(helper.make_node("Identity", [random.choice([*names, "c"])], [f"d{n}"]))
            results.append(helper.make_tensor_value_info(f"d{n}", 0, None))
        return helper.make_graph(nodes, "body", operands, results)


def _inferred(model: ModelProto) -> dict[str, TypeProto]:
    """The types of values that onnx finds; none if it finds contradictions."""
    try:
        return {each.name: each.type for each in shape_inference.infer_shapes(model).graph.value_info}
    except Exception:  # noqa: BLE001  # onnx raises errors of its C++ part as various exceptions
        return {}


def _number(name: str) -> int:
    """The number of an element type as definitions spell it."""
    spelt = {"float": "FLOAT", "double": "DOUBLE"}.get(name, name.upper())
    return TensorProto.DataType.Value(spelt)


def _constant(name: str, number: int, shape: list[int], random: Random) -> TensorProto:
    generator = np.random.default_rng(random.randrange(2**32))
    kind = helper.tensor_dtype_to_np_dtype(number)
    return numpy_helper.from_array(values(generator, shape, kind), name)


def values(generator: np.random.Generator, shape: list[int], kind: np.dtype[Any]) -> NDArray[Any]:
    """Small numbers of a type: whole from 0 to 3, or between -1 and 1."""
    if kind == np.dtype(object):
        return np.array(["a"] * int(np.prod(shape)), object).reshape(shape)
    if np.issubdtype(kind, np.floating):
        return generator.uniform(-1, 1, shape).astype(kind)
    return generator.integers(0, 4, shape).astype(kind)


def read_odd(data: bytes) -> None:
    """Load and specialise a model of `odd_model`.

    Raises PdojoError if it is refused, AssertionError if the error is not clear.
    """
    from pdojo import onnx as models

    proto = ModelProto.FromString(data)
    try:
        model = models.load(data)
        generator = np.random.default_rng(0)
        arrays = [values(generator, cast("list[int]", list(each.shape or ())), each.dtype) for each in model.inputs]
        model.specialised(model.given(arrays, {}))
    except PdojoError as error:
        problem = unclear(error, proto)
        if problem is not None:
            raise AssertionError(f"{problem}: {error}") from error
        raise


ONNX_ERRORS = (ValidationError, shape_inference.InferenceError)


def unclear(error: PdojoError, model: ModelProto) -> str | None:
    """The fault of an error about a model; None if it names a node with its operator, or an input, and says why."""
    text = str(error)
    if not isinstance(error, UsageError):
        return "another kind of error"
    if "\n" in text or len(text) > _LONGEST:
        return "not one short line"
    if found := _EXCEPTION.search(text):
        return f"'{found[0]}' is nothing that users know"
    if error.__cause__ is not None and not isinstance(error.__cause__, ONNX_ERRORS):
        return f"a lowering failed ({error.__cause__!r})"
    for node in model.graph.node:
        title = node.name or node.output[0]
        if text.startswith(f"node '{title}' ({node.op_type}): ") and len(text) > len(title) + len(node.op_type) + 14:
            return None
    if any(text.startswith(f"input '{each.name}' ") for each in model.graph.input):
        return None
    return "it names no node" if isinstance(error, UnsupportedNode) else "it names neither a node nor an input"
