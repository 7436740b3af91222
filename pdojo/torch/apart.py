"""The kernels of a region one by one, with memory of its own for every result: for checks and for times."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import torch
from torch.fx import Node

from pdojo.model.compiled import CompiledModel
from pdojo.model.graph import Tensor
from pdojo.model.kernels import Step
from pdojo.model.present import Present
from pdojo.torch.keys import Key, key_of
from pdojo.torch.plans import Plan
from pdojo.torch.program import Environment, RegionStep, result_layout

if TYPE_CHECKING:
    from pdojo.model.device_models import DeviceModel

Memory: TypeAlias = dict[Tensor, torch.Tensor]
"""Tensors of PyTorch, laid out as the graph says, keyed by the tensors of a model that live in their memory."""


@dataclass(frozen=True)
class KernelCall:
    """A call of a kernel in a region."""

    step: Step
    compiled: CompiledModel | DeviceModel
    """A model of just this call."""
    inputs: Mapping[Key, Tensor]
    """The tensors of the graph that the kernel reads."""
    outputs: Mapping[Key, Tensor]
    """The tensors of the graph that the kernel writes."""
    present: Present
    """The values of sizes."""

    @property
    def name(self) -> str:
        """The name of the kernel."""
        return self.step.kernel.sym_name.data

    def bind(self, memory: Memory) -> Callable[[], None]:
        """A function that runs the kernel on tensors in memory; its results get memory now."""
        made = ((tensor, result_layout(key, tensor)) for key, tensor in self.outputs.items())
        memory.update((tensor, layout.at(self.present).new()) for tensor, layout in made)
        inputs = [memory[tensor].data_ptr() for tensor in self.compiled.inputs_read]
        outputs = [memory[tensor].data_ptr() for tensor in self.compiled.results]
        return lambda: self.compiled.run_at(inputs, outputs)

    def nodes(self, plan: Plan) -> list[Node]:
        """The calls of the graph that the kernel computes, in the order of the graph."""
        found: set[Node] = set()
        rest = [key[0] for key in self.outputs]
        while rest:
            node = rest.pop()
            if node not in found and node not in plan.numbers and node.op == "call_function":
                found.add(node)
                keys = [key_of(each) for each in node.all_input_nodes]
                rest += [key[0] for key in keys if key not in self.inputs and key not in plan.static]
        return [node for node in plan.module.graph.nodes if node in found]


def kernel_calls(region: RegionStep) -> list[KernelCall]:
    """The calls of a region's kernels, in the order of execution."""
    keys = region.keys
    calls: list[KernelCall] = []
    for step, compiled in zip(region.compiled.model.steps, region.compiled.apart(), strict=True):
        inputs = dict.fromkeys(each.memory for each in step.inputs if isinstance(each, Tensor))
        calls.append(
            KernelCall(
                step,
                compiled,
                {keys[each]: each for each in inputs},
                {keys[each]: each for each in step.outputs},
                region.present,
            )
        )
    return calls


def given_memory(region: RegionStep, values: Environment) -> Memory:
    """The inputs of a region as its kernels take them."""
    keys = region.keys
    found = zip(region.compiled.inputs_read, region.given(values), strict=True)
    return {tensor: each for tensor, each in found if tensor in keys}
