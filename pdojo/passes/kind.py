"""Kinds of machine: the expert passes, evaluators and proposals of each.

A kind has the name of the machine's backend. It is a folder here, or an entry point of the group `pdojo.kinds`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.plugins import KINDS, find
from pdojo.errors import PluginError, UsageError
from pdojo.search.contract.evaluation import Evaluator

if TYPE_CHECKING:
    from pdojo.passes.common.builder import PassBuilder
    from pdojo.search.neighbourhoods.proposals import Proposals

ExpertPass: TypeAlias = "Callable[[PassBuilder], None]"
"""Makes moves; it may leave questions open (`PassBuilder.choices`), whose answers are raced."""
MakeEvaluator: TypeAlias = Callable[[Machine, KernelOp, int], Evaluator]
"""Makes an evaluator for a machine and a plain kernel, with a seed. The caller closes it."""


@dataclass(frozen=True)
class EvaluatorKind:
    """A kind of evaluator."""

    make: MakeEvaluator
    version: Callable[[], object]
    """Everything that its costs depend on, besides machine and program; stored costs of other versions are not used.

    `Backend.environment` describes the surroundings of a run for people and reports.
    """
    runs: bool = True
    """True if programs run or are simulated; False if costs are estimates."""


@dataclass(frozen=True)
class MachineKind:
    """Tuning for a kind of machine."""

    passes: Mapping[str, Callable[[], ExpertPass]]
    """Expert passes by name, weakest first; each is imported when it is needed (`pdojo.dialect.plugins.lazy`)."""
    evaluators: Mapping[str, EvaluatorKind]
    """Evaluators by name; the first one is the default."""
    proposals: Callable[[], Proposals] | None = None
    """Alternatives to a trace; None if there are none."""


_OWN = {
    "": "pdojo.passes.cpu.kind:ANY",
    "cuda": "pdojo.passes.gpu.kind:GPU",
    "hip": "pdojo.passes.gpu.kind:GPU",
    "llvm": "pdojo.passes.cpu.kind:CPU",
    "snitch": "pdojo.passes.snitch.kind:SNITCH",
}


def kind_of_machine(machine: Machine) -> MachineKind:
    """The kind of a machine. Raises UsageError if there is none, PluginError if its plugin is invalid."""
    name = machine.backend
    found = find(KINDS, name, _OWN)
    if found is None:
        raise UsageError(f"nothing is known of tuning for {machine.name}: there is no kind '{name}'")
    if not isinstance(found, MachineKind):
        raise PluginError(f"the kind of machine '{name}' is a {type(found).__name__}; it must be a MachineKind")
    return found
