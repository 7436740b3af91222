"""Parameters and buffers whose values programs know."""

from __future__ import annotations

from torch._guards import TracingContext
from torch.fx import GraphModule, Node

from pdojo.torch.in_place import changed_inputs
from pdojo.torch.operators.registry import RULES

_READERS = {
    f"aten.{name}": position
    for name, position in (
        ("embedding.default", (0,)),
        ("index.Tensor", (0,)),
        ("index_select.default", (0,)),
        ("take.default", (0,)),
        ("gather.default", (0,)),
        ("native_layer_norm.default", (2, 3)),
        ("native_group_norm.default", (1, 2)),
        ("_fused_rms_norm.default", (2,)),
    )
}
"""Operators that take a few elements of a tensor, or each element once per row: positions of such operands."""


def constant_positions(module: GraphModule) -> list[int]:
    """The positions of parameters and buffers that are constants, among the inputs of the graph that is being compiled.

    Those that the graph changes are none. Neither are those of which nothing is computed once, and which no product
    reads: their kernels take them from where they are, and calls need not look for changes.
    """
    context = TracingContext.try_get()
    if context is None or context.fw_metadata is None:
        return []
    changed = changed_inputs()
    given = [node for node in module.graph.nodes if node.op == "placeholder"]
    positions = [each for each in context.fw_metadata.static_input_indices if each not in changed]
    known = {given[each] for each in positions}
    for node in module.graph.nodes:
        if node.op == "get_attr" or (node.op == "call_function" and known.issuperset(node.all_input_nodes)):
            known.add(node)
    return [each for each in positions if not _is_read_in_place(given[each], known)]


def _is_read_in_place(node: Node, known: set[Node]) -> bool:
    """Whether calls read elements of a tensor that is known, or of its views, as they are, beside computed ones."""
    if node.meta["val"].numel() <= 1:
        return False
    for user in node.users:
        if getattr(user.target, "is_view", False):
            if not _is_read_in_place(user, known):
                return False
        elif user in known or not _reads(user, node):
            return False
    return True


def _reads(user: Node, node: Node) -> bool:
    """Whether a call reads each element of an operand as it is."""
    name = str(user.target)
    if name in _READERS:
        return all(k in _READERS[name] for k, each in enumerate(user.args) if each is node)
    rule = RULES.get(name)
    return rule is not None and rule.pointwise
