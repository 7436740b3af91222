"""The cost model of CPUs and GPUs: cycles of a program, without running it."""

from __future__ import annotations

from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.view.nest import Nest
from pdojo.passes.cpu.cost_model import ModelCost, estimate
from pdojo.passes.gpu.cost_model import GpuCost, estimate_gpu
from pdojo.passes.kind import CostModel


def estimated(nest: Nest, machine: Machine) -> ModelCost | GpuCost | None:
    """The cost of one call: a GPU's if the machine has a GPU's memory; None for mappings of other machines."""
    return (estimate_gpu if machine.gpu.memory_bandwidth else estimate)(nest, machine)


MODEL = CostModel(estimated, 2)
