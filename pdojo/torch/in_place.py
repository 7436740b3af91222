"""Inputs that a function changes in place, such as caches: PyTorch writes the new elements into them.

Graphs are functional: an update makes a new tensor, whose elements PyTorch copies back. A kernel would copy a cache to
write a row of it. An update of a large input that nothing else reads is done in its memory instead, by PyTorch; copying
a tensor to itself is nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch._guards import TracingContext
from torch.fx import GraphModule, Node

from pdojo.torch.lowering import nodes_in
from pdojo.torch.scalar_indices import memory_of

LEAST_BYTES = 1 << 17
"""Size of an input from which on two copies take longer than a call of PyTorch between two regions."""
_ATEN: Any = torch.ops.aten
_WRITES: Mapping[Any, Any] = {
    _ATEN.index_copy.default: _ATEN.index_copy_.default,
    _ATEN.index_put.default: _ATEN.index_put_.default,
    _ATEN.scatter.src: _ATEN.scatter_.src,
    _ATEN.scatter.value: _ATEN.scatter_.value,
}
"""Operators that replace elements, so that a second call changes nothing, with those that do so in place."""


def write_in_place(module: GraphModule) -> None:
    """Let updates of inputs that PyTorch would copy back write into these, in a graph of ATen for inference."""
    placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
    outputs: Any = module.graph.output_node().args[0]
    changed = changed_inputs()
    found = [_update(placeholders[i], made, outputs) for i, made in zip(changed, outputs, strict=False)]
    for node in found:
        if node is not None:
            node.target = _WRITES[node.target]
    if any(found):
        module.recompile()


def changed_inputs() -> Sequence[int]:
    """The positions of inputs whose new elements are the first results of the graph that is being compiled."""
    context = TracingContext.try_get()
    metadata = None if context is None else context.fw_metadata
    return () if metadata is None or metadata.tokens else metadata.mutated_inp_runtime_indices


def _update(given: Node, made: Any, outputs: Sequence[Any]) -> Node | None:
    """The call that makes the new elements of an input, if it can write into it; None if not.

    Nothing else may read the old elements, and no other result may be in the memory of the new ones.
    """
    if not isinstance(made, Node) or made.target not in _WRITES or made.args[0] is not given:
        return None
    if made.target is _ATEN.index_put.default and made.args[3:] not in ((), (False,)):
        return None
    old, new = given.meta["val"], made.meta["val"]
    if old._has_symbolic_sizes_strides or old.numel() * old.element_size() < LEAST_BYTES:
        return None
    is_read = [*given.users] != [made] or given in nodes_in(made.args[1:])
    is_same = (old.shape, old.stride(), old.dtype) == (new.shape, new.stride(), new.dtype)
    is_shared = sum(memory_of(each) == memory_of(made) for each in outputs) > 1
    return made if is_same and not is_read and not is_shared else None
