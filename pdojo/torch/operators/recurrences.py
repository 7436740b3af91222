"""Recurrent layers: several layers in one or two directions, each from the outputs of the one before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pdojo import build
from pdojo.build import Array
from pdojo.build.array import wide
from pdojo.build.recurrent import recurrent_layer
from pdojo.torch.operators.registry import Call, aten


def _register(name: str, **facts: Any) -> None:
    def rule(
        call: Call,
        x: Array,
        states: Sequence[Array],
        weights: Sequence[Array],
        biases: bool,
        layers: int,
        both: bool,
        batch_first: bool,
    ) -> list[Array]:
        directions, each = 2 if both else 1, 4 if biases else 2
        if len(weights) != layers * directions * each:
            call.refuse("kernels of recurrent layers have no projections")
        # Rounded once, after the last layer.
        inputs = wide(build.transpose(x, (1, 0, 2)) if batch_first else x)
        last: list[list[Array]] = []
        for layer in range(layers):
            outputs: list[Array] = []
            for direction in range(directions):
                number = layer * directions + direction
                w, r, *bias = map(wide, weights[number * each : (number + 1) * each])
                first = [wide(state[number]) for state in states]
                found, *after = recurrent_layer(inputs, w, r, bias or None, first, backwards=direction == 1, **facts)
                outputs.append(found)
                last.append(after)
            inputs = build.concatenate(outputs, 2)
        whole = build.transpose(inputs, (1, 0, 2)) if batch_first else inputs
        return [whole, *(build.stack([after[k] for after in last], 0) for k in range(len(states)))]

    aten(f"pdojo.{name}.default")(rule)


_register("lstm", kind="lstm", gates="ifco")
_register("gru", kind="gru", gates="rzh", linear_before_reset=True)
_register("rnn_tanh", kind="rnn")
_register("rnn_relu", kind="rnn", functions=(build.relu,))
