"""Indices that are numbers of tensors: `x[i.item()]`, `select` and `narrow` at a tensor.

PyTorch reads such a number when the function runs, and makes a view. Kernels take the tensor as an index: reads become
gathers if no result of the graph shares memory with the view, and if axes are in the order of memory, so that what is
computed of a copy has the strides of what is computed of the view. Dynamo captures these numbers if
`torch._dynamo.config.capture_scalar_outputs` is set; `x[i]` with a tensor is compiled for each value.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import GraphModule, Node
from torch.fx.experimental.symbolic_shapes import is_concrete_int

_ATEN: Any = torch.ops.aten


def gather_at_tensors(module: GraphModule) -> None:
    """Replace reads at numbers of tensors in a graph of ATen without side effects."""
    graph = module.graph
    numbers = [node for node in graph.nodes if node.target is _ATEN._local_scalar_dense.default]
    results = {memory_of(each) for each in graph.output_node().all_input_nodes}
    for number in numbers:
        if _value(number.args[0]).dtype not in (torch.int64, torch.int32):
            continue
        for user in tuple(number.users):
            if user.target in (_ATEN.select.int, _ATEN.slice.Tensor) and memory_of(user) not in results:
                _replace(user, number)
    if numbers:
        graph.eliminate_dead_code()
        module.recompile()


def _value(node: Any) -> Any:
    """The example of a node."""
    return node.meta["val"] if isinstance(node, Node) else node


def memory_of(node: Any) -> object:
    """The memory of a tensor."""
    value = _value(node)
    if not isinstance(value, torch.Tensor) or value.layout is not torch.strided:
        return None
    return value.untyped_storage()._cdata


def _is_in_order(node: Any) -> bool:
    """Whether the axes of a tensor are in the order of memory."""
    return bool(torch.empty_like(_value(node)).is_contiguous())


def _replace(user: Node, number: Node) -> None:
    """Put a gather into the place of a read at a number, if it has as many elements for all values."""
    index: Any = number.args[0]

    def make(target: Any, *arguments: Any) -> Node:
        made = user.graph.call_function(target, arguments)
        made.meta["val"] = target(*torch.fx.node.map_arg(arguments, _value))
        return made

    x, dim, start = user.args[:3]
    shape = _value(user).shape
    if start is not number or not all(map(is_concrete_int, shape)) or not (_is_in_order(user) and _is_in_order(x)):
        return
    with user.graph.inserting_before(user):
        if user.target is _ATEN.select.int:
            axis: Any = dim
            found = make(_ATEN.index.Tensor, x, [*[None] * (axis % _value(x).dim()), index])
        elif len(user.args) == 4:
            behind = make(_ATEN.add.Tensor, index, _value(x).shape[dim])
            first = make(_ATEN.where.self, make(_ATEN.lt.Scalar, index, 0), behind, index)
            places = make(_ATEN.add.Tensor, make(_ATEN.arange.default, int(shape[dim])), first)
            found = make(_ATEN.index_select.default, x, dim, places)
        else:
            return
    user.replace_all_uses_with(found)
