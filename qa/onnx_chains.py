"""Random ONNX models against ONNX's reference evaluator (`python -m qa.onnx_chains --models 200`).

A model is a chain of operators that takes earlier values again: views of views, parts and joined parts, products, sums.
At the end all results are joined, and need each other's memory no more than the plan allows. Outputs are also
intermediate values, inputs, constants, and views of one another. All numbers are small integers, so
results are exact in any order of sums. Compiled models run twice, the second time on memory full of NaN.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from pdojo_tools.command import Arguments

from pdojo import onnx as models

Values = NDArray[Any]
_LARGEST, _MOST = 1 << 16, 1 << 12
"""The greatest size of a number, so that products and sums stay exact in f32; most elements of a value."""


@dataclass
class Chain:
    """A model while it is drawn."""

    random: Random
    values: dict[str, Values] = field(default_factory=dict[str, Values])
    """All values by name, for one set of inputs."""
    inputs: list[str] = field(default_factory=list[str])
    constants: list[str] = field(default_factory=list[str])
    nodes: list[NodeProto] = field(default_factory=list[NodeProto])

    def name(self) -> str:
        """A new name."""
        return f"v{len(self.values)}"

    def new(self, shape: Sequence[int], place: list[str]) -> str:
        """A new input or constant of small integers."""
        numbers = np.random.default_rng(self.random.randrange(1 << 32))
        return self.known(numbers.integers(-4, 5, tuple(shape)).astype(np.float32), place)

    def known(self, value: Any, place: list[str] | None = None) -> str:
        """A new value of `place`, by default a constant."""
        name = self.name()
        self.values[name] = np.asarray(value)
        (self.constants if place is None else place).append(name)
        return name

    def operand(self, least: int = 1) -> str:
        """A value of at least so many dimensions, mostly a late one; a new input if there is none."""
        found = [n for n, v in self.values.items() if v.dtype == np.float32 and v.ndim >= least and v.size]
        found = [n for n in found if n not in self.constants]
        if not found:
            return self.new([self.random.choice((1, 3, 4, 6)) for _ in range(least)], self.inputs)
        return self.random.choice(found[-3:] if self.random.random() < 0.5 else found)

    def beside(self, name: str) -> str:
        """A value that broadcasts with another one: itself, an earlier one, an input, or a constant."""
        shape = self.values[name].shape
        alike = [n for n, v in self.values.items() if v.dtype == np.float32 and _broadcast(v.shape, shape)]
        kind = self.random.random()
        if kind < 0.6:
            return self.random.choice([name, *alike])
        part = [extent if self.random.random() < 0.6 else 1 for extent in shape][self.random.randrange(2) :]
        return self.new(part, self.inputs if kind < 0.8 else self.constants)

    def add(self, operator: str, operands: Sequence[str], results: int = 1, **attributes: Any) -> None:
        """Add a node, unless its results are no small integers."""
        names = [f"{self.name()}_{k}" for k in range(results)]
        node = helper.make_node(operator, operands, names, **attributes)
        evaluator: Any = ReferenceEvaluator(self.model([node], names, {}))
        found: list[Values] = evaluator.run(None, {})
        if all(0 < v.size <= _MOST and v.ndim < 6 and abs(v).max() < _LARGEST for v in found):
            self.nodes.append(node)
            self.values |= dict(zip(names, found, strict=True))

    def model(self, nodes: Sequence[NodeProto], outputs: Sequence[str], given: dict[str, Values]) -> ModelProto:
        """The model of nodes whose operands are inputs if they are `given`, else constants."""
        made = {name for node in nodes for name in node.output}
        used = dict.fromkeys([name for node in nodes for name in node.input if name] + list(outputs))
        constants = [numpy_helper.from_array(self.values[n], n) for n in used if n not in given and n not in made]
        graph = helper.make_graph(
            nodes, "chain", [self.info(n) for n in given], [self.info(n) for n in outputs], constants
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)

    def info(self, name: str) -> Any:
        """The declaration of a value; that of a node which is tried has no shape."""
        value = self.values.get(name)
        if value is None:
            return helper.make_empty_tensor_value_info(name)
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)

    def close(self) -> None:
        """Join the results that no node takes, so that the last result needs all nodes."""
        used = {name for node in self.nodes for name in node.input}
        free = [name for node in self.nodes for name in node.output if name not in used]
        flat = self.known(np.array([-1]))
        count = len(self.nodes)
        for name in free:
            self.add("Reshape", [name, flat])
        self.add("Concat", [node.output[0] for node in self.nodes[count:]], axis=0)

    def axis(self, name: str) -> int:
        """An axis of a value, from either end."""
        rank = self.values[name].ndim
        return self.random.randrange(-rank, rank)


def _broadcast(left: Sequence[int], right: Sequence[int]) -> bool:
    return all(a == b or 1 in (a, b) for a, b in zip(reversed(left), reversed(right), strict=False))


def _elementwise(chain: Chain) -> None:
    x = chain.operand()
    if chain.random.random() < 0.4:
        chain.add(chain.random.choice(("Relu", "Neg", "Abs", "Identity")), [x])
    else:
        pair = [x, chain.beside(x)]
        chain.random.shuffle(pair)
        chain.add(chain.random.choice(("Add", "Sub", "Mul", "Max", "Min")), pair)


def _reshape(chain: Chain) -> None:
    x = chain.operand()
    shape, rest = list[int](), chain.values[x].size
    while rest > 1 and len(shape) < 3:
        shape.append(chain.random.choice([d for d in range(1, rest + 1) if rest % d == 0]))
        rest //= shape[-1]
    chain.add("Reshape", [x, chain.known(np.array([*shape, -1]))])


def _transpose(chain: Chain) -> None:
    x = chain.operand(2)
    order = list(range(chain.values[x].ndim))
    chain.random.shuffle(order)
    chain.add("Transpose", [x], perm=order)


def _parts(chain: Chain) -> None:
    x = chain.operand()
    axis = chain.axis(x)
    extent = chain.values[x].shape[axis]
    if extent > 1 and chain.random.random() < 0.5:
        first = chain.random.randrange(1, extent)
        chain.add("Split", [x, chain.known(np.array([first, extent - first]))], 2, axis=axis)
    else:
        step = chain.random.choice((1, 2, -1))
        ends = (0, 1 << 40) if step > 0 else (-1, -(1 << 40))
        chain.add("Slice", [x, *[chain.known(np.array([each])) for each in (*ends, axis, step)]])


def _joined(chain: Chain) -> None:
    x = chain.operand()
    axis, shape = chain.axis(x), list(chain.values[x].shape)
    shape[axis] = chain.random.randrange(1, 4)
    others = [n for n, v in chain.values.items() if v.dtype == np.float32 and v.shape == chain.values[x].shape]
    chain.add("Concat", [x, chain.random.choice(others), chain.new(shape, chain.constants)], axis=axis)


def _gather(chain: Chain) -> None:
    x = chain.operand()
    axis = chain.axis(x)
    extent = chain.values[x].shape[axis]
    places = [chain.random.randrange(-extent, extent) for _ in range(chain.random.randrange(1, 6))]
    chain.add("Gather", [x, chain.known(np.array(places))], axis=axis)


def _pad(chain: Chain) -> None:
    x = chain.operand()
    widths = [chain.random.randrange(2) for _ in range(2 * chain.values[x].ndim)]
    chain.add("Pad", [x, chain.known(np.array(widths))], mode=chain.random.choice(("constant", "edge")))


def _reduce(chain: Chain) -> None:
    x = chain.operand()
    axes = chain.known(np.array([chain.axis(x)]))
    chain.add(chain.random.choice(("ReduceSum", "ReduceMax")), [x, axes], keepdims=chain.random.randrange(2))


def _product(chain: Chain) -> None:
    x = chain.operand(2)
    place = chain.random.choice([chain.inputs, chain.constants])
    chain.add("MatMul", [x, chain.new([chain.values[x].shape[-1], chain.random.choice((1, 3, 8))], place)])


_DRAWS: Sequence[Callable[[Chain], None]] = [
    *[_elementwise] * 4, *[_reshape] * 2, _transpose, *[_parts] * 2, _joined, _gather, _pad, _reduce, _product,
]  # fmt: skip


def chain_of(seed: int) -> Chain:
    """A random chain of 3 to 16 nodes; the last one takes all others that no node takes."""
    chain = Chain(Random(seed))
    length = chain.random.randrange(3, 15)
    for _ in range(10 * length):
        if len(chain.nodes) < length:
            chain.random.choice(_DRAWS)(chain)
    chain.close()
    return chain


def problem(seed: int, tune: Literal["none", "pass"] | None) -> str | None:
    """The fault of a random model, interpreted (`tune` is None) or compiled; None if there is none."""
    chain = chain_of(seed)
    made = [name for node in chain.nodes for name in node.output]
    share = chain.random.choice((0, 0.2, 0.5))
    outputs = [name for name in made[:-1] if chain.random.random() < share] + made[-1:]
    outputs += [name for name in (*chain.inputs, *chain.constants) if chain.random.random() < 0.05]
    given = {name: chain.values[name] for name in chain.inputs}
    model = models.load(chain.model(chain.nodes, outputs, given)).specialise(**given)
    before = {name: value.copy() for name, value in given.items()}
    if tune is None:
        runs: list[Any] = [model.interpret(**given)]
    else:
        compiled = model.compile(tune=tune)
        runs = [compiled(**given)]
        for block in compiled._blocks:  # pyright: ignore[reportPrivateUsage]
            block.memory[...] = 0xFF
        runs.append(compiled(**given))
    for found in runs:
        rows = cast("Sequence[Values]", found if isinstance(found, tuple) else (found,))
        for name, value in zip(outputs, rows, strict=True):
            if value.shape != chain.values[name].shape or (value != chain.values[name]).any():
                return f"output {name} of {[node.op_type for node in chain.nodes]} is wrong"
    changed = [name for name, value in given.items() if (value != before[name]).any()]
    return f"inputs {', '.join(changed)} are changed" if changed else None


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; the exit code is 1 if a model is wrong."""
    parser: argparse.ArgumentParser = Arguments(prog="python -m qa.onnx_chains", description=__doc__)
    parser.add_argument("--models", type=int, default=100, metavar="N", help="number of models (default: 100)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the first model (default: 0)")
    parser.add_argument("--tune", choices=("none", "pass"), help="compile; by default the models are interpreted")
    options = parser.parse_args(argv)
    wrong = 0
    for seed in range(options.seed, options.seed + options.models):
        found = problem(seed, options.tune)
        if found is not None:
            wrong += 1
            print(f"seed {seed}: {found}")
    print(f"{options.models - wrong} of {options.models} models are right")
    return int(wrong > 0)


if __name__ == "__main__":
    raise SystemExit(main())
