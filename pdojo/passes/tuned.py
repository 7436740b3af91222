"""Tuned kernels, verified: the results of expert passes, and the base of searches' results."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace

from pdojo.backends.backend import CallableKernel
from pdojo.backends.calling.arguments import Outputs
from pdojo.backends.calling.arrays import AnyArray
from pdojo.backends.calls import call, compile_for
from pdojo.backends.registry import backend_of
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.notation import print_notation
from pdojo.dialect.ops import KernelOp
from pdojo.errors import InvalidKernel
from pdojo.passes.scheduled_kernel import ScheduledKernel
from pdojo.passes.task import TuningTask
from pdojo.passes.verification.running import judge_code
from pdojo.passes.verification.verify import Verification, verify_moves
from pdojo.transforms.shown import html_of
from pdojo.transforms.trace import Trace


class PassListener:
    """Receives the progress of a pass and its verification. The methods do nothing by default."""

    def doing(self, what: str) -> AbstractContextManager[Callable[[str], None]]:
        """A context for a long step named `what`; its function receives details."""
        return nullcontext(_ignore)

    def chosen(self, tuning: ScheduledKernel, note: str) -> None:
        """Called before `tuning` is verified and measured. `note` is '' for the search's result, else the reason."""

    def verified(self, decision: Verification) -> None:
        """Called when the program has passed verification."""


def _ignore(_: str) -> None:
    """Ignore details."""


@dataclass(frozen=True, repr=False)
class TunedKernel:
    """A tuned and verified kernel."""

    task: TuningTask
    tuning: ScheduledKernel
    """The game to the best program, and an expert pass's reasons."""
    decision: Verification
    """The verification of the program's meaning."""

    @property
    def kernel(self) -> KernelOp:
        """The tuned program."""
        return self.tuning.after

    @property
    def plain(self) -> KernelOp:
        """The program before the first move, in canonical form."""
        return self.tuning.before

    @property
    def trace(self) -> Trace:
        """The moves from the plain to the tuned program."""
        return self.tuning.game.trace

    @property
    def machine(self) -> Machine:
        """The machine of the tuning."""
        return self.task.machine

    def compile(self) -> CallableKernel:
        """The tuned program as a callable. Raises LoweringError if this computer cannot call it."""
        return compile_for(self.kernel, self.machine)

    def run(self, *arrays: AnyArray) -> Outputs:
        """Run the tuned program once, as `pdojo.run` does."""
        return call(self.kernel, arrays, self.machine)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {', '.join(self._facts())}>"

    def _facts(self) -> list[str]:
        count = len(self.trace.steps)
        return [f"{self.task.title} on {self.machine.name}", f"{count} move{'s' * (count != 1)}"]

    def _repr_html_(self) -> str:
        return html_of(", ".join(self._facts()), print_notation(self.kernel), self.trace.moves)


@dataclass(frozen=True, repr=False)
class PassedKernel(TunedKernel):
    """A kernel tuned by an expert pass alone: nothing was searched or measured."""

    timed: tuple[()] = ()
    found: None = None
    is_interrupted: bool = False
    before: None = None
    after: None = None

    @property
    def unit(self) -> str:
        """The unit of costs on the machine: `s` or `cycles`."""
        return backend_of(self.machine).unit

    @property
    def is_verified(self) -> bool:
        """True if all results were compared: exactly, or with the plain program's results in a run."""
        return self.decision.is_exact or self.decision.is_run


def tune_by_pass(task: TuningTask, listener: PassListener) -> PassedKernel:
    """The program of the expert pass, verified, and run once.

    Raises InvalidKernel for a program of another meaning, MeasurementError if its code is wrong.
    """
    tuning = passed_tuning(task, listener)
    listener.chosen(tuning, "")
    return PassedKernel(task, tuning, verified(tuning, task, listener, is_run=True))


def passed_tuning(task: TuningTask, listener: PassListener) -> ScheduledKernel:
    """The program of the expert pass."""
    with listener.doing("expert pass"):
        return task.passed


def verified(
    tuning: ScheduledKernel,
    task: TuningTask,
    listener: PassListener,
    known: Verification | None = None,
    *,
    is_run: bool = False,
) -> Verification:
    """The verification of a program, or the known one; with `is_run`, its code is run, too.

    Raises InvalidKernel for a program of another meaning, MeasurementError if its code is wrong.
    """
    with listener.doing("exact oracle"):
        decision = verify_moves(tuning, task.source) if known is None else known
    if decision.fault is not None:
        raise InvalidKernel(f"the tuned program means something else: {decision.fault}; please report this trace")
    if is_run:
        with listener.doing("running its code") as tell:
            left_out = judge_code(tuning, tell)
        ran = "its code gives the right results" if left_out is None else f"its code was not run: {left_out}"
        decision = replace(decision, said=f"{decision.said}; {ran}", is_run=left_out is None)
    listener.verified(decision)
    return decision
