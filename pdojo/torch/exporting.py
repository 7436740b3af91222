"""A module as one model of kernels, through `torch.export`: no call is left to PyTorch."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from inspect import signature
from typing import Any

import torch
from torch.export.graph_signature import InputKind
from torch.utils._pytree import tree_map_only

from pdojo.errors import UsageError
from pdojo.model.graph import Operand, Tensor
from pdojo.model.model import Model
from pdojo.torch.byte_layers import multiply_bytes
from pdojo.torch.decompositions import decompositions
from pdojo.torch.element_types import handle_type, values_of
from pdojo.torch.idle_views import drop_idle_views
from pdojo.torch.interpolation import ByAxes
from pdojo.torch.keys import Key, key_of
from pdojo.torch.linear_layers import keep_rows_apart
from pdojo.torch.operators.registry import RULES
from pdojo.torch.planning import plan
from pdojo.torch.plans import Plan, Region
from pdojo.torch.scalar_indices import gather_at_tensors


class _Dense(torch.nn.Module):
    """A module or a function with contiguous results."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Any) -> Any:
        """The results, contiguous."""
        return tree_map_only(torch.Tensor, lambda each: each.contiguous(), self.function(*inputs))


def exported_model(name: str, function: Callable[..., Any], inputs: Sequence[Any]) -> Model:
    """The model of a module or a function in inference, for inputs of these shapes; parameters are constants.

    Raises UsageError for one that PyTorch cannot export, and for calls without a kernel.
    """
    dense = [each.contiguous() if isinstance(each, torch.Tensor) else each for each in inputs]
    try:
        # PyTorch's own code warns of what it calls.
        with torch.no_grad(), ByAxes(), warnings.catch_warnings(action="ignore", category=FutureWarning):
            warnings.filterwarnings("ignore", "The tensor attributes .* were assigned during export", UserWarning)
            program = torch.export.export(_Dense(function), tuple(dense), strict=False)
            multiply_bytes(program.graph_module)
            program = program.run_decompositions(_decompositions())
    except Exception as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise UsageError(f"PyTorch cannot export '{name}': {reason}") from error
    facts, graph = program.graph_signature, program.graph_module
    if facts.buffers_to_mutate:
        changed = ", ".join(facts.buffers_to_mutate.values())
        raise UsageError(f"'{name}' changes its buffers ({changed}); export it in evaluation mode (module.eval())")
    if facts.user_inputs_to_mutate:
        titles = dict(zip(facts.user_inputs, _names(function, len(facts.user_inputs)), strict=True))
        changed = ", ".join(titles[each] for each in facts.user_inputs_to_mutate.values())
        raise UsageError(f"'{name}' changes its inputs ({changed}), which functions of libraries only read")
    known = {**dict(program.state_dict), **dict(program.constants)}
    static: dict[int, torch.Tensor] = {}
    given: list[int] = []
    for position, each in enumerate(facts.input_specs):
        if each.kind is InputKind.USER_INPUT:
            given.append(position)
        else:
            static[position] = known[str(each.target)].detach()
    for node in list(graph.graph.nodes):
        if node.target is torch.ops.aten._assert_tensor_metadata.default:
            graph.graph.erase_node(node)  # The types of all tensors are known.
    _copy_parts(graph)
    gather_at_tensors(graph)
    keep_rows_apart(graph)
    drop_idle_views(graph)
    planned = plan(graph, static)
    if planned.fallbacks:
        reasons = "; ".join(dict.fromkeys(f"{each.node.target}: {each.reason}" for each in planned.fallbacks))
        raise UsageError(f"'{name}' has calls without a kernel: {reasons}")
    return _Whole(name, planned, given, _names(function, len(given))).model()


def _copy_parts(module: torch.fx.GraphModule) -> None:
    """Copy results that are parts of other tensors, such as the last row of one."""
    graph = module.graph
    output = graph.output_node()
    for node in output.all_input_nodes:
        value = node.meta["val"]
        if isinstance(value, torch.Tensor) and value.untyped_storage().nbytes() > value.nbytes:
            with graph.inserting_after(node):
                copy = graph.call_function(
                    torch.ops.aten.clone.default, (node,), {"memory_format": torch.contiguous_format}
                )
            copy.meta["val"] = value.clone(memory_format=torch.contiguous_format)
            output.replace_input_with(node, copy)
    module.recompile()


def _names(function: Callable[..., Any], count: int) -> list[str]:
    """Names of the inputs: those of the function's parameters, if each is one input."""
    called = getattr(function, "forward", function)
    found = [each.name for each in signature(called).parameters.values() if each.kind is each.POSITIONAL_OR_KEYWORD]
    return found[:count] if len(found) >= count else [f"x{number}" for number in range(count)]


def _decompositions() -> dict[Any, Callable[..., Any]]:
    """The decompositions of compiled modules, and those of composite operators, which exported programs keep."""
    table = torch.export.default_decompositions()
    key = "CompositeImplicitAutograd"
    composite = {
        operator: function
        for operator, function in table.items()
        if str(operator) not in RULES and torch._C._dispatch_has_kernel_for_dispatch_key(operator.name(), key)
    }
    return {**composite, **decompositions()}


class _Whole:
    """A plan of one region as a model whose inputs and outputs are those of the exported program."""

    def __init__(self, name: str, planned: Plan, given: Sequence[int], names: Sequence[str]) -> None:
        nodes = [node for node in planned.module.graph.nodes if node.op == "placeholder"]
        self.name, self.plan, self.names = name, planned, names
        self.given: list[Key] = [(nodes[position], 0) for position in given]
        self.region = planned.regions.get(0, Region(0))
        self.exported = planned.exported.get(0, [])

    def model(self) -> Model:
        """The model. Raises UsageError for results that are no tensors, or parts of an input."""
        found = Model.of(self.region.graph(self.exported))
        by_name = {tensor.name: tensor for tensor in found.inputs}
        tensors: dict[Key, Tensor] = {}
        for number, key in enumerate(self.region.inputs):
            if f"x{number}" in by_name:
                tensors[self._dense(key)] = by_name[f"x{number}"]
        titles = zip(self.given, self.names, strict=True)
        inputs = [tensors.get(key) or self._unread(key, title) for key, title in titles]
        by_key = dict(zip(self.given, inputs, strict=True))
        made = {key: value for key, (_, value) in zip(self.exported, found.outputs, strict=True)}
        outputs: list[tuple[str, Operand]] = []
        for number, each in enumerate(self.plan.outputs):
            if not isinstance(each, torch.fx.Node) or each in self.plan.numbers:
                raise UsageError(f"result {number} of '{self.name}' is no tensor")
            outputs.append((self._title(number), self._result(each, made, by_key)))
        for tensor, title in zip(inputs, self.names, strict=True):
            tensor.name = title
        return replace(found, name=self.name, inputs=tuple(inputs), outputs=tuple(outputs))

    def _title(self, number: int) -> str:
        """The name of an output."""
        name = f"y{number}" if len(self.plan.outputs) > 1 else "y"
        while name in self.names:
            name = f"{name}_out"
        return name

    def _result(self, node: torch.fx.Node, made: dict[Key, Operand], by_key: dict[Key, Tensor]) -> Operand:
        key = key_of(node)
        if key in self.plan.static:
            return values_of(self.plan.static[key].contiguous())
        base = self._dense(key)
        found = made.get(base, by_key.get(base))
        if found is None and base in self.plan.static:
            found = values_of(self.plan.static[base].contiguous())
        if found is None:
            raise UsageError(f"result '{node.name}' of '{self.name}' is no result of a kernel")
        shape = tuple(node.meta["val"].shape)
        if not isinstance(found, Tensor):
            return found.reshape(shape)
        return found if found.shape == shape else replace(found, shape=shape, base=found)

    def _dense(self, key: Key) -> Key:
        """The tensor whose memory a tensor is, in another shape. Raises UsageError for a part or another order."""
        while key[0] in self.plan.views:
            base = self.plan.views[key[0]]
            if not _is_whole(key) or not _is_whole(base) or _count(key) != _count(base):
                raise UsageError(f"'{key[0].name}' of '{self.name}' is a part of another tensor, or in another order")
            key = base
        return key

    def _unread(self, key: Key, title: str) -> Tensor:
        value = key[0].meta["val"]
        if not isinstance(value, torch.Tensor):
            raise UsageError(f"input '{title}' of '{self.name}' is no tensor")
        return Tensor(key[0].name, handle_type(value.dtype), tuple(value.shape), frozenset())


def _tensor(key: Key) -> torch.Tensor:
    value = key[0].meta["val"]
    return value[key[1]] if isinstance(value, tuple | list) else value


def _is_whole(key: Key) -> bool:
    return _tensor(key).is_contiguous()


def _count(key: Key) -> int:
    return _tensor(key).numel()
