"""Recurrent networks: the products with the inputs of all steps first, then the steps in order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from pdojo.build.activations import sigmoid
from pdojo.build.array import Array, constant, iota
from pdojo.build.contractions import contract, matmul
from pdojo.build.elementwise import clip, exp, tanh, where
from pdojo.build.pieces import concatenate, split
from pdojo.build.policy import of_one_type, rounded_once
from pdojo.build.scans import scan
from pdojo.build.shapes import expand_dims, flip, reshape, transpose

Function: TypeAlias = Callable[[Array], Array]


@dataclass
class RecurrentCell:
    """One direction of a recurrent layer, in the type of its computations."""

    x: Array
    """The inputs [steps, batch, inputs] in the order of time."""
    w: Array
    """The weights of inputs [gates * size, inputs]."""
    r: Array
    """The weights of states [gates * size, size]."""
    biases: Sequence[Array] | None
    """The biases [gates * size] of the products with inputs and of those with states."""
    functions: Sequence[Function]
    """The activations: of gates, of candidates and of outputs, as many as the network has."""
    gates: str
    """The order of the gates in weights: of `zrh` for `gru_network`, of `iofc` for `lstm_network`."""
    lengths: Array | None = None
    """The number of steps of each row of the batch."""
    backwards: bool = False
    clip: float | None = None
    of_inputs: Function | None = None
    """The product of inputs with their weights, if it is no plain one."""
    of_states: Function | None = None
    """The product of states with their weights, if it is no plain one."""
    forgets: bool = False
    """Whether `of_states` takes 0 for the states of rows that ended before the last step."""

    @property
    def size(self) -> int:
        """The number of elements of a state."""
        return self.r.shape[-1]

    def inputs(self) -> Array:
        """The products of all inputs with the weights: [steps, batch, gates * size]."""
        return contract("tni,gi->tng", self.x, self.w) if self.of_inputs is None else self.of_inputs(self.x)

    def with_biases(self, products: Array) -> Array:
        """The products with both biases of all gates."""
        return products if self.biases is None else products + (self.biases[0] + self.biases[1])

    def clipped(self, x: Array) -> Array:
        """The argument of an activation within the limits of `clip`."""
        return x if self.clip is None else clip(x, -self.clip, self.clip)

    def by_gate(self, x: Array) -> dict[str, Array]:
        """The parts [batch, size] of an array for some of the gates, by the letters of the gates."""
        count = x.shape[1] // self.size
        return dict(zip(self.gates[:count], split(x, count, 1), strict=True))

    def run(
        self, step: Callable[[Sequence[Array], Array], Sequence[Array]], states: Sequence[Array], products: Array
    ) -> tuple[Array, list[Array]]:
        """The outputs of all steps in the order of time, and the last states; `step` takes states and products."""
        count = products.shape[0]
        numbers = iota((count,), "i32")
        sequences = [flip(products, 0), flip(numbers, 0)] if self.backwards else [products, numbers]

        def masked(old: Sequence[Array], elements: Sequence[Array]) -> list[Array]:
            if self.lengths is None:
                return list(step(old, elements[0]))
            seen = where(expand_dims(self.lengths >= elements[1], 1), old[0], 0) if self.forgets else old[0]
            new = list(step([seen, *old[1:]], elements[0]))
            going = expand_dims(self.lengths > elements[1], 1)
            kept = [where(going, after, before) for after, before in zip(new, old, strict=True)]
            return [*kept, where(going, new[0], 0)]

        found = scan(masked, states, sequences)
        outputs = found[0] if self.lengths is None else found[-1]
        last = [each[count - 1] for each in found[: len(states)]]
        return flip(outputs, 0) if self.backwards else outputs, last


Network: TypeAlias = Callable[[RecurrentCell, Sequence[Array], "Array | None"], "tuple[Array, list[Array]]"]
"""From a cell, its first states [batch, size] and peepholes to its outputs [steps, batch, size] and last states."""


def rnn_network(cell: RecurrentCell, states: Sequence[Array], _: Array | None = None) -> tuple[Array, list[Array]]:
    """A network of one gate."""
    (function,) = cell.functions
    turned = transpose(cell.r)

    def step(old: Sequence[Array], product: Array) -> list[Array]:
        return [function(cell.clipped(product + matmul(old[0], turned)))]

    return cell.run(step, states, cell.with_biases(cell.inputs()))


def gru_network(linear_before_reset: bool) -> Network:
    """A network of gated recurrent units; the gate `h` of candidates is the last.

    `linear_before_reset`: whether the reset gate multiplies the product with the state, not the state.
    """

    def network(cell: RecurrentCell, states: Sequence[Array], _: Array | None = None) -> tuple[Array, list[Array]]:
        gate, hidden = cell.functions
        size = cell.size
        turned = transpose(cell.r)
        update_reset, candidate = turned[:, : 2 * size], turned[:, 2 * size :]
        inside = None  # the bias of the product with the state that the reset gate multiplies
        if cell.biases is not None and linear_before_reset:
            of_inputs, of_states = cell.biases
            inside = of_states[2 * size :]
            joint = of_inputs[: 2 * size] + of_states[: 2 * size]
            products = cell.inputs() + concatenate([joint, of_inputs[2 * size :]])
        else:
            products = cell.with_biases(cell.inputs())

        def step(old: Sequence[Array], product: Array) -> list[Array]:
            (h,) = old
            gates = gate(cell.clipped(product[:, : 2 * size] + matmul(h, update_reset)))
            parts = cell.by_gate(gates)
            z, reset = parts["z"], parts["r"]
            if linear_before_reset:
                inner = matmul(h, candidate)
                recurrent = reset * (inner if inside is None else inner + inside)
            else:
                recurrent = matmul(reset * h, candidate)
            new = hidden(cell.clipped(product[:, 2 * size :] + recurrent))
            return [(1 - z) * new + z * h]

        return cell.run(step, states, products)

    return network


def _product(weights: Array, states: Array) -> Array:
    return matmul(states, weights)


def lstm_network(coupled: bool) -> Network:
    """A network of long short-term memory, whose states are h and c; `c` is the gate of candidates.

    `coupled`: whether the forget gate is one minus the input gate. Peepholes [3 * size] belong to i, o and f.
    """

    def network(
        cell: RecurrentCell, states: Sequence[Array], peephole: Array | None = None
    ) -> tuple[Array, list[Array]]:
        gate, inner, outer = cell.functions
        product_with_states = cell.of_states or partial(_product, transpose(cell.r))
        through = [None, None, None] if peephole is None else split(peephole, 3)

        def peeped(x: Array, state: Array, weights: Array | None) -> Array:
            return gate(cell.clipped(x if weights is None else x + state * weights))

        def step(old: Sequence[Array], product: Array) -> list[Array]:
            h, c = old
            parts = cell.by_gate(product + product_with_states(h))
            entering = peeped(parts["i"], c, through[0])
            kept = 1 - entering if coupled else peeped(parts["f"], c, through[2])
            new = kept * c + entering * inner(cell.clipped(parts["c"]))
            return [peeped(parts["o"], new, through[1]) * outer(new), new]

        return cell.run(step, states, cell.with_biases(cell.inputs()))

    return network


_KINDS: Mapping[str, tuple[str, tuple[Function, ...], int]] = {
    "rnn": ("h", (tanh,), 1),
    "gru": ("zrh", (sigmoid, tanh), 1),
    "lstm": ("iofc", (sigmoid, tanh, tanh), 2),
}
"""The gates, the activations, and the number of states."""


@rounded_once
@of_one_type
def recurrent_layer(
    x: Array,
    w: Array,
    r: Array,
    biases: Sequence[Array] | None = None,
    states: Sequence[Array] | None = None,
    *,
    kind: str,
    gates: str = "",
    functions: Sequence[Function] = (),
    peephole: Array | None = None,
    lengths: Array | None = None,
    backwards: bool = False,
    clip: float | None = None,
    coupled: bool = False,
    linear_before_reset: bool = False,
) -> list[Array]:
    """One direction of a layer: the outputs [steps, batch, size], and the last states [batch, size].

    `kind` is `rnn`, `gru` or `lstm`; states, of which an lstm has two, are 0 if they are not given. The other
    arguments are those of `RecurrentCell`, `gru_network` and `lstm_network`.
    """
    order, usual, count = _KINDS[kind]
    cell = RecurrentCell(x, w, r, biases, functions or usual, gates or order, lengths, backwards, clip)
    networks = {"rnn": rnn_network, "gru": gru_network(linear_before_reset), "lstm": lstm_network(coupled)}
    first = states or [constant(0, x.dtype, (x.shape[1], cell.size))] * count
    outputs, last = networks[kind](cell, first, peephole)
    return [outputs, *last]


@rounded_once
@of_one_type
def linear_attention_network(
    queries: Array,
    keys: Array,
    values: Array,
    state: Array,
    *,
    decays: Array | None = None,
    factors: Array | None = None,
    scale: float = 1.0,
) -> list[Array]:
    """Attention by a state [batch, heads, keys, values]: the outputs of all steps, and the last state.

    Each step multiplies the state by exp(decay), adds the product of key and value, and multiplies it by the scaled
    query. With `factors`, it adds the key times the factor times (value minus the state's value for the key).

    Shapes: `queries` [steps, batch, query heads, keys], `keys` and `decays` [steps, batch, heads, keys], `values` and
    `factors` [steps, batch, heads, values]; extents of 1 broadcast. Query heads share heads in groups.
    """
    given = [queries, keys, values, None if decays is None else exp(decays), factors]
    sequences = [each for each in given if each is not None]
    heads = keys.shape[2]

    def step(old: Sequence[Array], elements: Sequence[Array]) -> list[Array]:
        (held,), (query, key, value, *rest) = old, elements
        if decays is not None:
            held = held * expand_dims(rest[0], -1)
        if factors is not None:
            value = rest[-1] * (value - contract("bhdm,bhd->bhm", held, key))
        held = held + expand_dims(key, -1) * expand_dims(value, -2)
        grouped = reshape(query, (query.shape[0], heads, query.shape[1] // heads, query.shape[2]))
        read = contract("bhgd,bhdm->bhgm", grouped, held)
        return [held, reshape(read, (*query.shape[:2], value.shape[2])) * scale]

    states, outputs = scan(step, [state], sequences)
    return [outputs, states[outputs.shape[0] - 1]]
