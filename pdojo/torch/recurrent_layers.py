"""Recurrent layers as whole operators in graphs of inference; PyTorch would decompose them into single steps.

The operators `pdojo::lstm`, `gru`, `rnn_tanh` and `rnn_relu` take the place of PyTorch's in the graph that Dynamo
captures (with `torch._dynamo.config.allow_rnn`). PyTorch's functions run them where no kernel is made.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch.fx import GraphModule, Node

_LAYERS: dict[Callable[..., Any], str] = {
    torch.lstm: "lstm",
    torch.gru: "gru",
    torch.rnn_tanh: "rnn_tanh",
    torch.rnn_relu: "rnn_relu",
}
"""The operators by PyTorch's functions."""
_LIBRARY = torch.library.Library("pdojo", "DEF")


def keep_recurrent_layers(module: GraphModule, inputs: Sequence[Any]) -> AbstractContextManager[None]:
    """Make recurrent layers whole operators, if no gradients are computed; the context in which PyTorch decomposes.

    For gradients, PyTorch decomposes layers into steps. It would take oneDNN's operator, which has no gradients, for
    LSTMs of which only the weights need gradients.
    """
    tensors = [each for each in (*inputs, *module.parameters()) if isinstance(each, torch.Tensor)]
    layers = [node for node in module.graph.nodes if node.op == "call_function" and node.target in _LAYERS]
    if torch.is_grad_enabled() and any(each.requires_grad for each in tensors):
        return _without_onednn() if layers else nullcontext()
    for node in layers:
        arguments = _arguments(node)
        if arguments is not None:
            with module.graph.inserting_before(node):
                kept = module.graph.call_function(getattr(torch.ops.pdojo, _LAYERS[node.target]).default, arguments)
            kept.meta = dict(node.meta)
            node.replace_all_uses_with(kept)
            module.graph.erase_node(node)
    module.recompile()
    return nullcontext()


@contextmanager
def _without_onednn() -> Generator[None]:
    enabled = torch.backends.mkldnn.set_flags(False)[0]
    try:
        yield
    finally:
        torch.backends.mkldnn.set_flags(enabled)


def _arguments(node: Node) -> tuple[Any, ...] | None:
    """The arguments of the operator; None for packed sequences, and for dropout between layers."""
    if len(node.args) != 9:
        return None
    x, states, weights, biases, layers, dropout, training, both, batch_first = node.args
    if not isinstance(biases, bool) or not isinstance(layers, int) or (training and dropout != 0):
        return None
    return x, states if isinstance(states, tuple | list) else [states], weights, biases, layers, both, batch_first


def _define(function: Callable[..., Any], name: str) -> None:
    results = ", ".join(["Tensor"] * (3 if name == "lstm" else 2))
    _LIBRARY.define(
        f"{name}(Tensor x, Tensor[] states, Tensor[] weights, bool biases, int layers, bool both, bool batch_first)"
        f" -> ({results})"
    )

    def run(x: torch.Tensor, states: Sequence[torch.Tensor], *arguments: Any) -> tuple[torch.Tensor, ...]:
        weights, biases, layers, both, batch_first = arguments
        given = states if name == "lstm" else states[0]
        found = function(x, given, weights, biases, layers, 0.0, False, both, batch_first)
        return _by_step(found[0], batch_first), *(each.contiguous() for each in found[1:])

    def fake(x: torch.Tensor, states: Sequence[torch.Tensor], *arguments: Any) -> tuple[torch.Tensor, ...]:
        *_, both, batch_first = arguments
        shape = (*x.shape[:2], states[0].shape[2] * (2 if both else 1))
        return _by_step(x.new_empty(shape), batch_first), *(x.new_empty(each.shape) for each in states)

    _LIBRARY.impl(name, run, "CompositeExplicitAutograd")
    torch.library.register_fake(f"pdojo::{name}", fake, lib=_LIBRARY)


def _by_step(outputs: torch.Tensor, batch_first: bool) -> torch.Tensor:
    """Outputs with the steps side by side, which is the layout that PyTorch gives them."""
    return outputs.transpose(0, 1).contiguous().transpose(0, 1) if batch_first else outputs.contiguous()


for _function, _name in _LAYERS.items():
    _define(_function, _name)
