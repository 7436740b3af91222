"""Recurrent layers: several layers in one or two directions, each from the outputs of the one before."""

from __future__ import annotations

from collections.abc import Sequence

from pdojo import build
from pdojo.build import Array
from pdojo.build.array import wide
from pdojo.build.recurrent import Function, Network, RecurrentCell, gru_network, lstm_network, rnn_network
from pdojo.torch.operators.registry import Call, aten


def _register(name: str, network: Network, gates: str, functions: Sequence[Function]) -> None:
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
        inputs = wide(build.transpose(x, (1, 0, 2)) if batch_first else x)
        first = [wide(state) for state in states]
        last: list[list[Array]] = []
        for layer in range(layers):
            outputs: list[Array] = []
            for direction in range(directions):
                number = layer * directions + direction
                w, r, *bias = map(wide, weights[number * each : (number + 1) * each])
                cell = RecurrentCell(inputs, w, r, bias or None, functions, gates, backwards=direction == 1)
                found, after = network(cell, [state[number] for state in first], None)
                outputs.append(found)
                last.append(after)
            inputs = build.concatenate(outputs, 2)
        whole = build.transpose(inputs, (1, 0, 2)) if batch_first else inputs
        return [whole, *(build.stack([after[k] for after in last], 0) for k in range(len(states)))]

    aten(f"pdojo.{name}.default")(rule)


_register("lstm", lstm_network(coupled=False), "ifco", (build.sigmoid, build.tanh, build.tanh))
_register("gru", gru_network(linear_before_reset=True), "rzh", (build.sigmoid, build.tanh))
_register("rnn_tanh", rnn_network, "h", (build.tanh,))
_register("rnn_relu", rnn_network, "h", (build.relu,))
