"""From a graph of ONNX to a graph of operations: each node is lowered, replaced by its function, or unrolled."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

import numpy as np
from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, TypeProto, defs, helper

from pdojo import build
from pdojo.errors import UsageError
from pdojo.model.element_types import numpy_type
from pdojo.model.graph import Graph, GraphBuilder, Known, Lower, Lowered, Operand, Operation, Tensor, Value, dtype_of
from pdojo.model.model import folded
from pdojo.onnx.control_flow import STRUCTURES
from pdojo.onnx.definitions import defect, definition, type_of
from pdojo.onnx.operators.registry import (
    InvalidNode,
    Lowering,
    NeedsParts,
    NeedsValue,
    Node,
    UnsupportedNode,
    check_room,
    lowering_of,
)
from pdojo.onnx.protos import array_of, attributes_of, declared_type, named, names_used, python_value, refuse, title_of

Item: TypeAlias = "Operand | list[Operand] | None"
"""A value of ONNX: a tensor, a sequence of tensors, or an absent optional value."""
_DEEPEST, _MOST = 24, 50_000
"""Most nested functions and subgraphs; most nodes after unrolling and inlining."""
_MALFORMED = (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError)
"""Errors of lowerings for attributes and shapes that no valid node has."""
_CONTRADICTORY = "there is no kernel for its attributes with operands of these types, shapes and values"


class NeedsInputs(Exception):
    """A node needs a value that depends on these inputs of the model.

    `computed` says whether the value is computed of them, and is none of them itself.
    """

    def __init__(self, names: frozenset[str], node: str, *, computed: bool) -> None:
        super().__init__(names, node)
        self.names, self.node, self.computed = names, node, computed


@dataclass
class Scope:
    """The values that nodes of a graph see, keyed by name."""

    opsets: Mapping[str, int]
    values: dict[str, Item] = field(default_factory=dict[str, Item])
    parent: Scope | None = None
    attributes: Mapping[str, AttributeProto] = field(default_factory=dict[str, AttributeProto])
    """Attributes with which the nodes' function is called."""
    depth: int = 0

    def find(self, name: str) -> Item:
        """The value of a name; None for an absent one. Raises UsageError for a name without value."""
        if not name:
            return None
        scope: Scope | None = self
        while scope is not None:
            if name in scope.values:
                return scope.values[name]
            scope = scope.parent
        raise UsageError(f"value '{name}' is used before it is computed")

    def inner(self, values: dict[str, Item]) -> Scope:
        """The scope of a subgraph."""
        return Scope(self.opsets, values, self, self.attributes, self.depth + 1)


def import_graph(model: ModelProto, inputs: Mapping[str, tuple[str, tuple[int, ...]] | Known]) -> Graph:
    """The operations of a model for inputs of these element types and shapes, or of these values.

    Raises UnsupportedNode for a node without kernel, NeedsInputs if a node needs the value of an input, UsageError for
    an invalid model.
    """
    importer = Importer(model)
    scope = Scope({each.domain: each.version for each in model.opset_import})
    scope.values |= {each.name: array_of(each) for each in model.graph.initializer}
    if model.graph.sparse_initializer:
        raise UsageError("the model has sparse initialisers, which no kernel takes")
    for name, given in inputs.items():
        scope.values[name] = given if isinstance(given, np.ndarray) else importer.builder.input(name, *given)
    importer.walk(model.graph.node, [output.name for output in model.graph.output], scope)
    outputs: list[tuple[str, Operand]] = []
    for output in model.graph.output:
        value = scope.find(output.name)
        if value is None or isinstance(value, list):
            raise UsageError(f"output '{output.name}' is a sequence or an optional value, which no kernel computes")
        _check_declared(output.name, output.type, value)
        taken = any(output.name == tensor.name for tensor in importer.builder.inputs)
        outputs.append((f"{output.name} (output)" if taken else output.name, value))
    return importer.builder.finish(model.graph.name or "model", outputs)


def _check_declared(name: str, declared: TypeProto, value: Operand) -> None:
    """Raise UsageError for an output of another type than the model says."""
    if not declared.HasField("tensor_type") or not declared.tensor_type.elem_type:
        return
    wanted = declared_type(declared.tensor_type.elem_type, f"output '{name}'")
    found = numpy_type(dtype_of(value))
    if found != wanted:
        raise UsageError(f"output '{name}' is declared as {wanted} and computed as {found}")


@dataclass
class Importer:
    """The import of one model."""

    model: ModelProto
    builder: GraphBuilder = field(default_factory=lambda: GraphBuilder(_folded))
    count: int = 0

    def walk(self, nodes: Sequence[NodeProto], outputs: Iterable[str], scope: Scope) -> None:
        """Compute in `scope` what the outputs need."""
        if scope.depth > _DEEPEST:
            raise UsageError(f"functions and subgraphs are nested more than {_DEEPEST} deep")
        wanted = set(outputs)
        live: list[NodeProto] = []
        for node in reversed(nodes):
            if wanted.intersection(node.output):
                wanted |= names_used(node)
                live.append(node)
        for node in reversed(live):
            self.count += 1
            if self.count > _MOST:
                raise UsageError(f"the model has more than {_MOST} nodes after unrolling its loops")
            self.node(node, scope)

    def node(self, proto: NodeProto, scope: Scope) -> None:
        """Compute the results of a node."""
        domain = "" if proto.domain == "ai.onnx" else proto.domain
        try:
            if domain == "" and proto.op_type in STRUCTURES:
                results = self._structure(proto, scope)
            else:
                results = self._results(proto, domain, scope)
        except UnsupportedNode:
            raise
        except MemoryError as error:
            raise InvalidNode(f"{named(proto)}: there is no memory for its result: {error}") from None
        except UsageError as error:
            refuse(proto, str(error))
        if any(proto.output[len(results) :]):
            refuse(proto, f"only the first {len(results)} of its results are computed")
        for name, value in zip(proto.output, results, strict=False):
            if name:
                scope.values[name] = value

    def _structure(self, proto: NodeProto, scope: Scope) -> Sequence[Item]:
        try:
            return STRUCTURES[proto.op_type](self, proto, scope)
        except _MALFORMED as error:
            raise UnsupportedNode(f"{named(proto)}: {_CONTRADICTORY}") from error

    def _results(self, proto: NodeProto, domain: str, scope: Scope) -> Sequence[Item]:
        if (own := self._own_function(proto, domain)) is not None:
            return self.call(proto, own, scope)
        opset = scope.opsets.get(domain, scope.opsets.get("ai.onnx", 1) if not domain else 1)
        lowering = lowering_of(proto.op_type, domain, opset)
        if lowering is None:
            function = self._function(proto, domain, opset, scope)
            if function is None:
                refuse(proto, "no kernel is known for this operator" + (f" of domain '{domain}'" if domain else ""))
            return self.call(proto, function, scope)
        count = len(self.builder.operations)
        try:
            return self._lowered(proto, domain, opset, lowering, scope)
        except InvalidNode:
            raise
        except UnsupportedNode:
            del self.builder.operations[count:]
            function = self._function(proto, domain, opset, scope)
            if function is None:
                raise
            try:
                return self.call(proto, function, scope)
            except UsageError:
                del self.builder.operations[count:]
        return self._lowered(proto, domain, opset, lowering, scope)

    def _lowered(
        self, proto: NodeProto, domain: str, opset: int, lowering: Lowering, scope: Scope
    ) -> tuple[Operand, ...]:
        operands: list[Operand | None] = []
        for name in proto.input:
            value = scope.find(name)
            if isinstance(value, list):
                refuse(proto, f"operand '{name}' is a sequence")
            operands.append(value)
        schema, called = definition(proto.op_type, opset, domain), _called(proto, scope)
        wrong = None if schema is None else defect(called, schema, operands)
        try:
            if wrong is None or not wrong.certain:
                values = {each.name: python_value(each) for each in called.attribute}
                node = Node(proto.op_type, domain, title_of(proto), opset, (), tuple(proto.output), values)
                return self.apply(proto, _lower(node, lowering), operands)
        except UsageError:
            if wrong is None:
                raise
        raise InvalidNode(f"{named(proto)}: {wrong.reason}")

    def apply(self, proto: NodeProto, lower: Lower, operands: Sequence[Operand | None]) -> tuple[Operand, ...]:
        """The results of an operation for a node. Raises NeedsInputs, UnsupportedNode."""
        try:
            return self.builder.apply(proto.op_type, lower, operands, list(proto.output))
        except NeedsParts as needed:
            place, split = needed.operand, needed.split
            parts = self.builder.apply("part", lambda given, _: Lowered(tuple(split(given[0]))),
                                       [operands[place]])  # fmt: skip
            return self.apply(proto, lower, [*operands[:place], *parts, *operands[place + 1 :]])
        except NeedsValue as needed:
            self.need(operands[needed.operand], proto)
            raise

    def need(self, value: Item, proto: NodeProto) -> Known:
        """A value that must be known. Raises NeedsInputs if it is not."""
        if isinstance(value, Tensor):
            raise NeedsInputs(value.sources, named(proto), computed=value.memory not in self.builder.inputs)
        if value is None or isinstance(value, list):
            refuse(proto, "an operand is absent, or a sequence")
        return value

    def call(self, proto: NodeProto, function: FunctionProto, scope: Scope) -> list[Item]:
        """The results of a function, computed by its nodes."""
        values: dict[str, Item] = dict.fromkeys(function.input)
        values |= {name: scope.find(given) for name, given in zip(function.input, proto.input, strict=False)}
        opsets = {each.domain: each.version for each in function.opset_import} or scope.opsets
        defaults = {each.name: each for each in function.attribute_proto}
        attributes = {**defaults, **attributes_of(proto, scope.attributes)}
        inner = Scope(opsets, values, None, attributes, scope.depth + 1)
        wanted = [name for name, given in zip(function.output, proto.output, strict=False) if given]
        try:
            self.walk(function.node, wanted, inner)
        except UnsupportedNode as error:
            refuse(proto, f"its function is not supported: {error}")
        return [inner.find(name) if name in wanted else None for name in function.output]

    def subgraph(self, graph: GraphProto, scope: Scope, arguments: Sequence[Item]) -> list[Item]:
        """The results of a subgraph, which sees the values around it."""
        if len(graph.input) != len(arguments):
            raise UsageError(f"its subgraph takes {len(graph.input)} values, not {len(arguments)}")
        values: dict[str, Item] = {each.name: array_of(each) for each in graph.initializer}
        values |= {each.name: value for each, value in zip(graph.input, arguments, strict=True)}
        inner = scope.inner(values)
        names = [output.name for output in graph.output]
        self.walk(graph.node, names, inner)
        return [inner.find(name) for name in names]

    def _own_function(self, proto: NodeProto, domain: str) -> FunctionProto | None:
        """The function of the model that a node calls; it goes before operators of the same name."""
        for function in self.model.functions:
            domains = (domain, proto.domain)
            if (function.name, function.overload) == (proto.op_type, proto.overload) and function.domain in domains:
                return function
        return None

    def _function(self, proto: NodeProto, domain: str, opset: int, scope: Scope) -> FunctionProto | None:
        """The function of an operator's definition; None if there is none."""
        schema = definition(proto.op_type, opset, domain)
        if schema is None:
            return None
        if schema.has_function:
            version = _newest(schema.function_opset_versions, opset)
            return _parsed(schema.get_function_with_opset_version(version), schema)
        if schema.has_context_dependent_function:
            version = _newest(schema.context_dependent_function_opset_versions, opset)
            items, called = [scope.find(name) for name in proto.input], _called(proto, scope)
            # onnx makes functions of valid nodes only.
            if (wrong := defect(called, schema, items)) is not None:
                refuse(proto, wrong.reason)
            types = [TypeProto() if each is None else type_of(each) for each in items]
            given = [each.SerializeToString() for each in types]
            body = schema.get_context_dependent_function_with_opset_version(version, called.SerializeToString(), given)
            return _parsed(body, schema)
        return None


def _folded(operation: Operation) -> tuple[Known, ...]:
    """The results of an operation whose operands are known. Raises MemoryError if they are too large."""
    check_room(sum(tensor.bytes for tensor in operation.made))
    return folded(operation)


def _called(proto: NodeProto, scope: Scope) -> NodeProto:
    """The node with the values of attributes that it takes from the function call around it."""
    if not scope.attributes:
        return proto
    found = NodeProto()
    found.CopyFrom(proto)
    del found.attribute[:]
    found.attribute.extend(attributes_of(proto, scope.attributes).values())
    return found


def _newest(versions: Sequence[int], opset: int) -> int:
    return max((version for version in versions if version <= opset), default=min(versions))


def _parsed(body: object, schema: Any) -> FunctionProto:
    """A function of a definition, with the defaults of its attributes and a version of all operators that it calls.

    onnx leaves both out; functions of other domains are written for the newest version of the default domain.
    """
    function = FunctionProto()
    function.ParseFromString(body.SerializeToString() if isinstance(body, FunctionProto) else cast("bytes", body))
    defaults = [each.default_value for each in schema.attributes.values()]
    function.attribute_proto.extend(each for each in defaults if each.name)
    if not any(each.domain == "" for each in function.opset_import):
        function.opset_import.append(helper.make_opsetid("", defs.onnx_opset_version()))
    return function


def _lower(node: Node, lowering: Callable[[Node], Value | Sequence[Value]]) -> Lower:
    """The lowering of a node as a function of its operands."""

    def lower(inputs: tuple[Value | None, ...], prefix: str) -> Lowered:
        given = Node(
            node.op_type, node.domain, node.name, node.opset, inputs, node.outputs, node.attributes, prefix=prefix
        )
        try:
            made: Any = lowering(given)
        except (NeedsParts, NeedsValue, UnsupportedNode):
            raise
        except UsageError as error:
            given.contradicts(str(error))
        except _MALFORMED as error:
            raise UnsupportedNode(f"node '{node.name}' ({node.op_type}): {_CONTRADICTORY}") from error
        is_one = isinstance(made, build.Array | np.ndarray | np.generic)
        results = cast("tuple[Value, ...]", (made,) if is_one else tuple(made))
        if len(results) < max((n for n, name in enumerate(node.outputs, 1) if name), default=0):
            given.refuse(f"only the first {len(results)} of its results are computed")
        constants = [(handle, cast("Known", given.inputs[n])) for n, handle in given.constants.items()]
        return Lowered(results, tuple(constants))

    return lower
