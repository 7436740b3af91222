"""Graphs of nodes as programs: imported in stages, as the shapes of values become known."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import InitVar, dataclass, field
from functools import cached_property
from math import prod
from typing import Protocol

import numpy as np
from onnx import GraphProto, NodeProto, TypeProto

from pdojo.errors import UsageError
from pdojo.model.graph import GraphBuilder, Operand, Operation, Tensor
from pdojo.model.kept import Kept
from pdojo.onnx.kinds import Late, array_type, kind_of, kind_of_operand
from pdojo.onnx.labels import ML, is_ensemble, with_unused
from pdojo.onnx.operators.registry import UnsupportedNode
from pdojo.onnx.protos import array_of, declared_type, names_used, refuse
from pdojo.onnx.regions import Engine, Part, Step, Values, parts_of, value_of
from pdojo.onnx.scope import Item, Scope, Staged

LARGEST = 1 << 20
"""Most bytes of values for which a model is made anew."""
MANY = 256
"""Most shapes, or values, for which later nodes and bodies are kept: numbers of boxes, lengths of a text."""


class Stage(Protocol):
    """The import of nodes whose operands are known by type and shape."""

    builder: GraphBuilder

    def node(self, proto: NodeProto, scope: Scope) -> None:
        """Compute the results of a node in its scope. Raises Staged if that has to wait."""
        ...

    def settle(self, names: Iterable[str], scope: Scope) -> None:
        """Let operations compute the values of these names that have none yet."""
        ...

    @property
    def nodes(self) -> Sequence[Operation | Step]:
        """The operations and steps so far."""
        ...


def live_nodes(nodes: Sequence[NodeProto], outputs: Sequence[str]) -> list[NodeProto]:
    """The nodes that some outputs need."""
    wanted, live = set(outputs), list[NodeProto]()
    for node in reversed(nodes):
        if wanted.intersection(node.output):
            live.append(with_unused(node, wanted) if node.domain == ML else node)
            wanted |= names_used(node)
    return live[::-1]


def trees_first(nodes: Sequence[NodeProto]) -> list[NodeProto]:
    """The nodes in an order in which ensembles of trees come before what needs one that comes as early: they are
    walked together."""
    ranks: dict[str, int] = {}
    keys: list[tuple[int, bool]] = []
    for node in nodes:
        rank, is_tree = max([ranks.get(name, 0) for name in names_used(node)], default=0), is_ensemble(node)
        keys.append((rank, is_tree))
        ranks.update(dict.fromkeys(node.output, rank + is_tree))
    return [nodes[place] for place in sorted(range(len(nodes)), key=keys.__getitem__)]


@dataclass(eq=False)
class Program:
    """A stage of a graph: the parts that run, then the results or the next stage."""

    title: str
    stage: Stage
    wanted: Sequence[Tensor]
    """The tensors that results and later stages need."""
    outputs: tuple[Item, ...]
    """The results of the graph, if it has no further stage."""
    rest: Rest | None = None

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """The kernels and steps that compute the tensors."""
        return parts_of(self.title, self.stage.nodes, self.wanted)

    @property
    def obstacle(self) -> tuple[str, str]:
        """The first step, or the first node that waits, with the reason."""
        for each in self.stage.nodes:
            if isinstance(each, Step):
                return each.title, each.reason
        assert self.rest is not None
        return next((each.node, each.reason) for each in self.rest.asked.values())


@dataclass(eq=False)
class Frame:
    """Nodes that compute some values of a scope."""

    title: str
    new: Callable[[], Stage]
    """A function that begins a stage."""
    live: Sequence[NodeProto]
    outputs: Sequence[str]
    scope: Scope
    check: Callable[[str, Item], None] = lambda name, value: None
    """A function that raises UsageError for a result of a wrong type."""
    begun: InitVar[Stage | None] = None
    """The stage that begins; None for a new one."""
    first: Program = field(init=False)

    def __post_init__(self, begun: Stage | None) -> None:
        self.first = self.program(self.live, self.scope, begun or self.new())

    def run(self, values: Values, engine: Engine) -> tuple[Item, ...]:
        """The results, which are known or have arrays among the values; outer tensors must be there already."""
        program = self.first
        while True:
            for part in program.parts:
                engine.run(part, values)
            if program.rest is None:
                return program.outputs
            program = engine.stage(program.rest, values)

    def program(self, nodes: Sequence[NodeProto], scope: Scope, stage: Stage) -> Program:
        """The stage of all nodes that can be imported now; the others are held back."""
        held: list[NodeProto] = []
        blocked: set[str] = set()
        asked: dict[str, Staged] = {}
        for node in nodes:
            if blocked.isdisjoint(names_used(node)):
                try:
                    stage.node(node, scope)
                except Staged as staged:
                    asked[_name(node, scope, staged)] = staged
                else:
                    blocked.update(name for name in node.output if isinstance(scope.values.get(name), Late))
                    continue
            held.append(node)
            blocked.update(name for name in node.output if name)
        read = dict.fromkeys([*self.outputs, *(name for node in held for name in sorted(names_used(node)))])
        stage.settle(read, scope)
        if not held:
            found = tuple(scope.find(name) for name in self.outputs)
            for name, value in zip(self.outputs, found, strict=True):
                self.check(name, value)
            ends = [tensor for _, tensor in scope.tensors(self.outputs)]
            return Program(self.title, stage, ends, found)
        seen = list(scope.tensors(read))
        late = {name: tensor for name, tensor in seen if isinstance(tensor, Late)}
        rest = Rest(self, held, scope, late, asked)
        return Program(self.title, stage, [tensor for _, tensor in seen], (), rest)


@dataclass(eq=False)
class Rest:
    """The nodes of a graph that wait for the shapes or values of others."""

    frame: Frame
    nodes: Sequence[NodeProto]
    scope: Scope
    late: dict[str, Late]
    """The values whose shapes they wait for, keyed by name."""
    asked: dict[str, Staged]
    """The values that nodes need, keyed by name."""
    programs: Kept[tuple[Program, list[tuple[Late, Tensor]]]] = field(default_factory=lambda: Kept(MANY))

    @property
    def reason(self) -> str:
        """The shapes and values that the nodes wait for."""
        shapes = [f"the shape of '{name}'" for name in self.late]
        found = [f"the value of '{name}', for {each.node}" for name, each in self.asked.items()]
        return " and ".join([*shapes, *found])

    def next(self, values: Values) -> Program:
        """The next stage for the arrays that are there. Raises UnsupportedNode if it would be made for long values."""
        shapes = [(array.dtype.str, array.shape) for array in (values[each] for each in self.late.values())]
        known = [(array.dtype.str, array.shape, array.tobytes()) for _, array in self._known(values)]
        program, arrays = self.programs.get((tuple(shapes), tuple(known)), lambda: self._program(values))
        for late, tensor in arrays:
            values[tensor] = values[late]
        return program

    def _known(self, values: Values) -> Iterator[tuple[str, np.ndarray]]:
        for name, staged in self.asked.items():
            operand = self.scope.find(name)
            assert operand is not None
            assert not isinstance(operand, list)
            array = value_of(operand, values)
            if array.nbytes > LARGEST:
                raise UnsupportedNode(
                    f"{staged.node}: it needs the value of '{name}', which is {array.nbytes} bytes; models are made "
                    f"anew for values of up to {LARGEST}"
                )
            yield name, array

    def _program(self, values: Values) -> tuple[Program, list[tuple[Late, Tensor]]]:
        scope, arrays = self.scope.copy(), list[tuple[Late, Tensor]]()
        for name, late in self.late.items():
            found = operand_like(name, kind_of(values[late].dtype), values[late].shape)
            scope.values[name] = found
            if isinstance(found, Tensor):
                arrays.append((late, found))
        scope.values.update((name, array.copy()) for name, array in self._known(values))
        return self.frame.program(self.nodes, scope, self.frame.new()), arrays


def _name(node: NodeProto, scope: Scope, staged: Staged) -> str:
    """The name of the operand whose value a node needs."""
    found = next((name for name, tensor in scope.tensors(node.input) if tensor is staged.value), None)
    if found is None:
        refuse(node, "it needs a value that is computed when the model runs")
    return found


def operand_like(name: str, dtype: str, shape: Sequence[int]) -> Operand:
    """A tensor; a known value if it has no elements."""
    if not prod(shape):
        return np.empty(tuple(shape), array_type(dtype))
    return Tensor(name, dtype, tuple(shape), frozenset())


def result_of(name: str, declared: TypeProto | None) -> Operand:
    """A result of a type that onnx inferred; late if its shape is not known. Raises UsageError for sequences."""
    if declared is None or not declared.HasField("tensor_type"):
        raise UsageError(f"there is neither a kernel nor a known type for its result '{name}'")
    tensor = declared.tensor_type
    dtype = kind_of(declared_type(tensor.elem_type, f"result '{name}'"))
    if not tensor.HasField("shape") or not all(each.HasField("dim_value") for each in tensor.shape.dim):
        return Late(name)
    return operand_like(name, dtype, [each.dim_value for each in tensor.shape.dim])


def common(name: str, alternatives: Sequence[Item]) -> Operand | Late:
    """The result that is one of some values: late if they differ in type or shape. Raises UsageError for sequences."""
    if any(each is None or isinstance(each, list) for each in alternatives):
        raise UsageError(f"result '{name}' is a sequence or an absent value, which no step computes")
    operands = [each for each in alternatives if isinstance(each, Tensor | np.ndarray)]
    kinds = {None if isinstance(each, Late) else (kind_of_operand(each), each.shape) for each in operands}
    if len(kinds) > 1 or None in kinds:
        return Late(name)
    ((dtype, shape),) = (kind for kind in kinds if kind is not None)
    return operand_like(name, dtype, shape)


@dataclass(eq=False)
class Body:
    """A graph with parameters, imported for the types and shapes of arguments."""

    title: str
    new: Callable[[], Stage]
    graph: GraphProto
    scope: Scope
    frames: Kept[tuple[list[Operand], Frame]] = field(default_factory=lambda: Kept(MANY))

    def at(self, arguments: Sequence[Operand]) -> tuple[list[Operand], Frame]:
        """The parameters and the graph for arguments of these types and shapes."""
        key = tuple((kind_of_operand(each), each.shape) for each in arguments)
        return self.frames.get(key, lambda: self._frame(key))

    def _frame(self, key: Sequence[tuple[str, tuple[int, ...]]]) -> tuple[list[Operand], Frame]:
        rows = zip(self.graph.input, key, strict=False)
        parameters = [operand_like(each.name, *kind) for each, kind in rows]
        return parameters, frame_of(self.title, self.new, self.graph, inner_scope(self.graph, self.scope, parameters))


def inner_scope(graph: GraphProto, scope: Scope, arguments: Sequence[Item]) -> Scope:
    """The scope of a subgraph with arguments, which sees the values around it."""
    if len(graph.input) != len(arguments):
        raise UsageError(f"its subgraph takes {len(graph.input)} values, not {len(arguments)}")
    values: dict[str, Item] = {each.name: array_of(each) for each in graph.initializer}
    values |= {each.name: value for each, value in zip(graph.input, arguments, strict=True)}
    return scope.inner(values)


def frame_of(title: str, new: Callable[[], Stage], graph: GraphProto, scope: Scope) -> Frame:
    """The frame of a subgraph, whose scope has its parameters and initialisers."""
    outputs = [output.name for output in graph.output]
    return Frame(title, new, live_nodes(graph.node, outputs), outputs, scope)
