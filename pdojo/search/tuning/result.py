"""The result of tuning: the program, its moves, its gain, and its verification."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from pdojo.backends.backend import CallableKernel
from pdojo.backends.calling.arguments import Outputs
from pdojo.backends.calling.arrays import AnyArray
from pdojo.backends.calls import call, compile_for
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.notation import print_notation
from pdojo.dialect.ops import KernelOp
from pdojo.search.tuning.run import SearchOutcome
from pdojo.search.tuning.scheduled_kernel import ScheduledKernel
from pdojo.search.tuning.task import TuningTask
from pdojo.search.tuning.timing import Timed
from pdojo.search.tuning.verify import Verification
from pdojo.transforms.shown import html_of
from pdojo.transforms.trace import Trace


@dataclass(frozen=True, repr=False)
class TuneResult:
    """A tuned kernel, made by `pdojo.tune`.

    >>> import pdojo
    >>> tuned = pdojo.tune("softmax:4x8", expert="naive", measure=False)
    >>> tuned
    <TuneResult softmax:4x8 on host, 8 moves, verified>
    >>> tuned.run().shape
    (4, 8)
    """

    subject: TuningTask
    tuning: ScheduledKernel
    """The game to the best program, and an expert pass's reasons."""
    decision: Verification
    """The verification of the program's meaning."""
    timed: Sequence[Timed] = ()
    """The last measurement, the plain program first, the tuned one last; empty if nothing was measured."""
    found: SearchOutcome | None = None
    """The search's result; None without a search."""
    is_interrupted: bool = False
    """True if Ctrl-C ended the search or the last measurement."""

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
        return self.subject.machine

    @property
    def before(self) -> float | None:
        """The cost of the plain program; None if it was not measured or could not run."""
        return self._costs[0]

    @property
    def after(self) -> float | None:
        """The cost of the tuned program; None if it was not measured."""
        return self._costs[1]

    @property
    def unit(self) -> str:
        """The unit of the costs: `s` or `cycles`."""
        if self.timed or self.found is None:
            from pdojo.backends.registry import backend_of

            return backend_of(self.machine).unit
        return self.found.unit

    @property
    def is_verified(self) -> bool:
        """True if all results were compared: exactly, or with the plain program's results in a run."""
        ran = self.found is not None and self.found.plan.evaluator != "analytical"
        return self.decision.is_exact or self.decision.is_run or ran or (bool(self.timed) and self.timed[-1].cost < inf)

    @property
    def _costs(self) -> tuple[float | None, float | None]:
        if self.timed:
            plain = next((each.cost for each in self.timed if each.title in ("plain", "before")), inf)
            costs = plain, self.timed[-1].cost
        elif self.found is not None and not self.found.baselines.start and self.found.result.known is not None:
            costs = self.found.baselines.plain, self.found.result.known.cost
        else:
            return None, None
        return costs[0] if costs[0] < inf else None, costs[1] if costs[1] < inf else None

    def compile(self) -> CallableKernel:
        """The tuned program as a callable. Raises LoweringError if this computer cannot call it."""
        return compile_for(self.kernel, self.machine)

    def run(self, *arrays: AnyArray) -> Outputs:
        """Run the tuned program once, as `pdojo.run` does."""
        return call(self.kernel, arrays, self.machine)

    def __repr__(self) -> str:
        return f"<TuneResult {', '.join(self._facts())}>"

    def _facts(self) -> list[str]:
        count = len(self.trace.steps)
        facts = [f"{self.subject.title} on {self.machine.name}", f"{count} move{'s' * (count != 1)}"]
        if self.before is not None and self.after is not None:
            facts.append(f"{self.before:.4g} {self.unit} before, {self.after:.4g} {self.unit} after")
        return [*facts, "verified" if self.is_verified else "not verified"]

    def _repr_html_(self) -> str:
        return html_of(", ".join(self._facts()), print_notation(self.kernel), self.trace.moves)
