"""From a graph of ONNX to a graph of operations: each node is lowered, replaced by its function, or unrolled."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any, TypeVar, cast

import numpy as np
from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, TypeProto, defs, helper

from pdojo.build.sizes import OpenExtent
from pdojo.errors import UsageError
from pdojo.model.extents import is_extents
from pdojo.model.graph import Graph, GraphBuilder, Known, Lower, Lowered, Operand, Operation, Tensor
from pdojo.model.model import folded
from pdojo.onnx.bytes import Dequantised, dequantised, of_bytes
from pdojo.onnx.control_flow import STRUCTURES
from pdojo.onnx.definitions import defect, definition, inferred, type_of
from pdojo.onnx.kinds import Late, array_type, in_bytes, is_foreign, kind_of_operand
from pdojo.onnx.labels import LABELS_SINCE, ML, STRINGS, label_node
from pdojo.onnx.leaves import Leaves
from pdojo.onnx.lowering import CONTRADICTORY, MALFORMED, NeedsOperation, lower_by
from pdojo.onnx.operators.extents import extents_result
from pdojo.onnx.operators.quantisation import requantize
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
from pdojo.onnx.protos import (
    array_of,
    attributes_of,
    declared_type,
    named,
    names_used,
    python_value,
    refuse,
    title_of,
)
from pdojo.onnx.regions import Step
from pdojo.onnx.scope import Item, NeedsInputs, Scope, Staged, captured
from pdojo.onnx.stages import Frame, inner_scope, live_nodes, result_of, trees_first
from pdojo.onnx.steps import AT_RUN_TIME, RANDOM, FrameStep, NumpyStep, operands_of

_T = TypeVar("_T")
_DEEPEST, _MOST = 24, 50_000
"""Most nested functions and subgraphs; most nodes after unrolling and inlining."""


def initializers_of(model: ModelProto) -> dict[str, Known]:
    """The arrays of a model's graph. Raises UsageError for an invalid one."""
    return {each.name: array_of(each) for each in model.graph.initializer}


def import_graph(
    model: ModelProto, inputs: Mapping[str, tuple[str, tuple[int, ...]] | Known], initializers: Mapping[str, Known]
) -> Frame:
    """The graph of a model for inputs of these element types and shapes, or of these values.

    Raises UnsupportedNode for a node without kernel, NeedsInputs if a node needs the value of an input, UsageError for
    an invalid model.
    """
    scope = Scope({each.domain: each.version for each in model.opset_import})
    scope.values |= initializers
    if model.graph.sparse_initializer:
        raise UsageError("the model has sparse initialisers, which no kernel takes")
    importer = Importer(model)
    for name, given in inputs.items():
        if isinstance(given, np.ndarray) or not prod(given[1]):
            scope.values[name] = given if isinstance(given, np.ndarray) else np.empty(given[1], array_type(given[0]))
        else:
            scope.values[name] = importer.builder.input(name, *given)
    types = {output.name: output.type for output in model.graph.output}
    names = [output.name for output in model.graph.output]
    live, title = trees_first(live_nodes(model.graph.node, names)), model.graph.name or "model"
    importer.leaves = Leaves(importer.apply, live)
    return Frame(
        title, importer.new, live, names, scope, lambda name, value: _check(name, types[name], value), importer
    )


def whole_graph(frame: Frame) -> Graph | None:
    """The operations of a model without steps; None if it has some."""
    program, stage = frame.first, frame.first.stage
    if program.rest is not None or any(isinstance(each, Step) for each in stage.nodes):
        return None
    taken = {tensor.name for tensor in stage.builder.inputs}
    outputs = [(f"{n} (output)" if n in taken else n, v) for n, v in zip(frame.outputs, program.outputs, strict=True)]
    return stage.builder.finish(frame.title, cast("list[tuple[str, Operand]]", outputs))


def _check(name: str, declared: TypeProto, value: Item) -> None:
    """Raise UsageError for an output that is no tensor, or of another type than the model says."""
    if value is None or isinstance(value, list):
        raise UsageError(f"output '{name}' is a sequence or an optional value, which no kernel computes")
    if is_extents(value):
        raise OpenExtent(f"output '{name}' is a shape that depends on sizes")
    if isinstance(value, Late) or not declared.HasField("tensor_type") or not declared.tensor_type.elem_type:
        return
    wanted = declared_type(declared.tensor_type.elem_type, f"output '{name}'")
    found = array_type(kind_of_operand(value))
    if found != wanted:
        raise UsageError(f"output '{name}' is declared as {wanted} and computed as {found}")


@dataclass
class Importer:
    """The import of one model."""

    model: ModelProto
    builder: GraphBuilder = field(default_factory=lambda: GraphBuilder(_folded))
    steps: list[tuple[int, Step]] = field(default_factory=list[tuple[int, Step]])
    """The steps, each with the number of operations before it."""
    count: int = 0
    dequantised: dict[int, Dequantised] = field(default_factory=dict[int, Dequantised])
    rounded: set[Tensor] = field(default_factory=set[Tensor])
    """The tensors that are computed from dequantised integers."""
    """The results of DequantizeLinear so far, by identity."""
    leaves: Leaves = field(init=False)

    def __post_init__(self) -> None:
        self.leaves = Leaves(self.apply)

    @property
    def nodes(self) -> Sequence[Operation | Step]:
        """The operations and steps so far, in an order of execution."""
        found: list[Operation | Step] = list(self.builder.operations)
        for before, step in reversed(self.steps):
            found.insert(before, step)
        return found

    def new(self) -> Importer:
        """The import of a graph inside, or of a later stage."""
        return Importer(self.model, count=self.count)

    def add(self, step: Step) -> None:
        """Let a step run after the operations so far."""
        self.steps.append((len(self.builder.operations), step))

    def attempt(self, action: Callable[[], _T]) -> _T | Staged:
        """The result of an action; if it has to wait, the reason, and its operations and steps are gone."""
        count = len(self.builder.operations), len(self.steps)
        try:
            return action()
        except Staged as staged:
            self._forget(*count)
            return staged

    def walk(self, nodes: Sequence[NodeProto], outputs: Sequence[str], scope: Scope) -> list[Item]:
        """The outputs, computed in `scope`. Raises Staged if a node has to wait for the shapes of others."""
        for node in live_nodes(nodes, outputs):
            self.node(node, scope)
            if any(isinstance(scope.values.get(name), Late) for name in node.output):
                raise Staged(named(node), "the shape of its result is known only when the model runs")
        self.settle(outputs, scope)
        return [scope.find(name) for name in outputs]

    def settle(self, names: Iterable[str], scope: Scope) -> None:
        """Let operations compute the values of these names that have none yet."""
        self.leaves.settle(names, scope)

    def inline(self, proto: NodeProto, nodes: Sequence[NodeProto], names: Sequence[str], scope: Scope) -> list[Item]:
        """The results of a graph as operations; as a step of its own if it finds out shapes while it runs."""
        outer = scope.copy()
        found = self.attempt(lambda: self.walk(nodes, names, scope))
        if not isinstance(found, Staged):
            return found
        title = named(proto)
        frame = Frame(title, self.new, live_nodes(nodes, names), names, outer)
        step = FrameStep(
            title,
            f"its graph waits for {found.node}: {found.reason}",
            captured(nodes, names, outer),
            [Late(name) for name in names],
            frame,
        )
        self.add(step)
        return list(step.results)

    def node(self, proto: NodeProto, scope: Scope) -> None:
        """Compute the results of a node. Raises Staged if that has to wait until the model runs, NeedsInputs."""
        self.count += 1
        if self.count > _MOST:
            raise UsageError(f"the model has more than {_MOST} nodes after unrolling its loops")
        if scope.depth > _DEEPEST:
            raise UsageError(f"functions and subgraphs are nested more than {_DEEPEST} deep")
        try:
            results = self._computed(proto, scope)
        except (UnsupportedNode, OpenNode):
            raise
        except MemoryError as error:
            raise InvalidNode(f"{named(proto)}: there is no memory for its result: {error}") from None
        except UsageError as error:
            refuse(proto, str(error))
        self.leaves.note(proto, results)
        if any(proto.output[len(results) :]):
            refuse(proto, f"only the first {len(results)} of its results are computed")
        for name, value in zip(proto.output, results, strict=False):
            if name:
                scope.values[name] = value

    def _computed(self, proto: NodeProto, scope: Scope) -> Sequence[Item]:
        """The results of a node. Raises OpenNode if they are not the same for all values of sizes."""
        domain = "" if proto.domain == "ai.onnx" else proto.domain
        try:
            if self._own_function(proto, domain) is None and (known := self.leaves.results(proto, scope)) is not None:
                return known
            if proto.op_type not in ("Shape", "Size"):
                self.settle(names_used(proto), scope)
            if domain == "" and proto.op_type in STRUCTURES:
                return self._structure(proto, scope)
            found = self._results(proto, domain, scope)
            return self._labelled(_called(proto, scope), found) if domain == ML else found
        except OpenNode:
            raise
        except OpenExtent as error:
            raise OpenNode(f"{named(proto)}: {error}", narrower=error.narrower) from None

    def _labelled(self, proto: NodeProto, found: Sequence[Item]) -> Sequence[Item]:
        """The results of a node, with strings in the place of the numbers of labels."""
        if (encoder := label_node(proto)) is None:
            return found
        schema = definition(encoder.op_type, LABELS_SINCE, ML)
        return [*self._in_numpy(encoder, schema, LABELS_SINCE, [cast("Operand", found[0])], STRINGS), *found[1:]]

    def _structure(self, proto: NodeProto, scope: Scope) -> Sequence[Item]:
        try:
            return STRUCTURES[proto.op_type](self, proto, scope)
        except MALFORMED as error:
            raise UnsupportedNode(f"{named(proto)}: {CONTRADICTORY}") from error

    def _results(self, proto: NodeProto, domain: str, scope: Scope) -> Sequence[Item]:
        if (own := self._own_function(proto, domain)) is not None:
            return self.call(proto, own, scope)
        opset = scope.opsets.get(domain, scope.opsets.get("ai.onnx", 1) if not domain else 1)
        lowering = lowering_of(proto.op_type, domain, opset)
        if lowering is None:
            function = self._function(proto, domain, opset, scope)
            if function is None:
                return self._without_kernel(proto, domain, opset, scope)
            return self.call(proto, function, scope)
        if any(map(is_foreign, self._operands(proto, scope))):
            return self._without_kernel(proto, domain, opset, scope)
        count = len(self.builder.operations), len(self.steps)
        try:
            return self._lowered(proto, domain, opset, lowering, scope)
        except InvalidNode:
            raise
        except UnsupportedNode:
            self._forget(*count)
            function = self._function(proto, domain, opset, scope)
            if function is None and self._is_foreign(proto, domain, opset, scope):
                return self._without_kernel(proto, domain, opset, scope)
            if function is None:
                raise
            try:
                return self.call(proto, function, scope)
            except UsageError:
                self._forget(*count)
        return self._lowered(proto, domain, opset, lowering, scope)

    def _forget(self, operations: int, steps: int) -> None:
        """Drop all operations and steps after the first ones."""
        del self.builder.operations[operations:], self.steps[steps:]

    def _operands(self, proto: NodeProto, scope: Scope) -> list[Operand | None]:
        operands: list[Operand | None] = []
        for name in proto.input:
            value = scope.find(name)
            if isinstance(value, list):
                refuse(proto, f"operand '{name}' is a sequence")
            operands.append(in_bytes(value) if proto.op_type == "DequantizeLinear" else value)
        return operands

    def _lowered(
        self, proto: NodeProto, domain: str, opset: int, lowering: Lowering, scope: Scope
    ) -> Sequence[Operand | None]:
        operands = self._operands(proto, scope)
        schema, called = definition(proto.op_type, opset, domain), _called(proto, scope)
        wrong = None if schema is None else defect(called, schema, operands)
        try:
            if wrong is None or not wrong.certain:
                values = {each.name: python_value(each) for each in called.attribute}
                node = Node(proto.op_type, domain, title_of(proto), opset, (), tuple(proto.output), values)
                if (known := _extents(node, operands)) is not None:
                    return known
                given = operands
                if (quick := of_bytes(proto.op_type, values, operands, self.dequantised)) is not None:
                    lowering, given = quick
                elif proto.op_type == "QuantizeLinear" and _is_among(operands[0], self.rounded):
                    lowering = requantize
                found = self.apply(proto, lower_by(node, lowering), given)
                self._remember(proto, values, operands, found)
                return found
        except NeedsValue as needed:
            if schema is None or domain or proto.op_type not in AT_RUN_TIME:
                self.need(operands[needed.operand], proto)
                raise
            reason = (
                f"no kernel takes its operand '{proto.input[needed.operand]}', which is computed when the model runs"
            )
            return self._in_numpy(called, schema, opset, operands, reason)
        except OpenExtent:
            raise
        except UsageError:
            if wrong is None:
                raise
        raise InvalidNode(f"{named(proto)}: {wrong.reason}")

    def _remember(
        self,
        proto: NodeProto,
        attributes: Mapping[str, Any],
        operands: Sequence[Operand | None],
        found: Sequence[Operand],
    ) -> None:
        """Keep what dequantised bytes were computed from, and which values are computed from such."""
        if proto.op_type == "DequantizeLinear" or any(_is_among(each, self.rounded) for each in operands):
            self.rounded.update(each for each in found if isinstance(each, Tensor))
        if proto.op_type == "DequantizeLinear" and (record := dequantised(attributes, operands, found[0])) is not None:
            self.dequantised[id(found[0])] = record

    def _without_kernel(self, proto: NodeProto, domain: str, opset: int, scope: Scope) -> Sequence[Operand | None]:
        """The results of a node without lowering and function, or of types that kernels do not have."""
        reason = "no kernel is known for this operator" + (f" of domain '{domain}'" if domain else "")
        schema, called = definition(proto.op_type, opset, domain), _called(proto, scope)
        if lowering_of(proto.op_type, domain, opset) is not None:
            reason = "no kernel takes or makes elements of its types"
        if schema is None or proto.op_type in RANDOM:
            refuse(proto, reason)
        return self._in_numpy(called, schema, opset, self._operands(proto, scope), reason)

    def _is_foreign(self, proto: NodeProto, domain: str, opset: int, scope: Scope) -> bool:
        """Whether the results of a valid node are of types that kernels do not have."""
        schema, called = definition(proto.op_type, opset, domain), _called(proto, scope)
        operands = self._operands(proto, scope)
        if schema is None or defect(called, schema, operands) is not None:
            return False
        types = inferred(called, schema, operands)
        return any(is_foreign(result_of(name, types.get(name))) for name in proto.output if name)

    def _in_numpy(
        self, proto: NodeProto, schema: Any, opset: int, operands: Sequence[Operand | None], reason: str
    ) -> Sequence[Operand | None]:
        """The results of a node that NumPy computes: when the model runs, or now if all operands are known."""
        if (wrong := defect(proto, schema, operands)) is not None:
            raise InvalidNode(f"{named(proto)}: {wrong.reason}")
        given = {name: each for name, each in zip(proto.input, operands, strict=True) if each is not None}
        types = inferred(proto, schema, operands)
        results = [result_of(name, types.get(name)) if name else None for name in proto.output]
        step = NumpyStep(
            named(proto), reason, operands_of(operands), results, given, NumpyStep.evaluator_of(proto, opset)
        )
        if step.tensors:
            self.add(step)
            return results
        found = iter(step.compute({name: np.asarray(each) for name, each in given.items()}))
        return [next(found) if name else None for name in proto.output]

    def apply(
        self, proto: NodeProto, lower: Lower, operands: Sequence[Operand | None], *, is_copy: bool = False
    ) -> tuple[Operand, ...]:
        """The results of an operation for a node, after those that it needs. Raises NeedsValue, UnsupportedNode."""
        while True:
            try:
                return self.builder.apply(proto.op_type, lower, operands, list(proto.output), is_copy=is_copy)
            except NeedsParts as needed:
                place, split = needed.operand, needed.split
                parts = self.builder.apply(
                    "part", lambda given, _, by=split: Lowered(tuple(by(given[0]))), [operands[place]]
                )
                operands = [*operands[:place], *parts, *operands[place + 1 :]]
            except NeedsOperation as needed:
                made = self.apply(proto, needed.make, operands, is_copy=needed.is_copy)
                lower, operands = needed.then, [*(operands[place] for place in needed.kept), *made]

    def need(self, value: Item, proto: NodeProto) -> Known:
        """A value that must be known. Raises NeedsInputs if it is an input, Staged if it is computed."""
        if isinstance(value, Tensor):
            if value.memory in self.builder.inputs:
                raise NeedsInputs(value.memory.name, named(proto))
            raise Staged(named(proto), "it needs a value that is computed when the model runs", value)
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
            found = dict(zip(wanted, self.inline(proto, function.node, wanted, inner), strict=True))
        except UnsupportedNode as error:
            refuse(proto, f"its function is not supported: {error}")
        return [found.get(name) for name in function.output]

    def subgraph(self, graph: GraphProto, scope: Scope, arguments: Sequence[Item]) -> list[Item]:
        """The results of a subgraph, which sees the values around it. Raises Staged."""
        inner = inner_scope(graph, scope, arguments)
        return self.walk(graph.node, [output.name for output in graph.output], inner)

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


class OpenNode(OpenExtent):
    """A question of a node about an extent with different answers for the values of sizes; the message names it."""


def _is_among(operand: Operand | None, tensors: set[Tensor]) -> bool:
    return isinstance(operand, Tensor) and operand in tensors


def _extents(node: Node, operands: Sequence[Operand | None]) -> Sequence[Known] | None:
    """The results of a node of which an operand is a shape that depends on sizes, if it computes others; else None."""
    known = tuple([each for each in operands if not isinstance(each, Tensor)])
    if len(known) < len(operands) or not any(map(is_extents, known)):
        return None
    return extents_result(replace(node, inputs=known))


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
