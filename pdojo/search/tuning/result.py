"""The result of tuning: the program, its moves, its gain, and its verification."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from pdojo.passes.tuned import TunedKernel
from pdojo.search.tuning.run import SearchOutcome
from pdojo.search.tuning.timing import Timed


@dataclass(frozen=True, repr=False)
class TuneResult(TunedKernel):
    """A tuned kernel, made by `pdojo.tune`.

    >>> import pdojo
    >>> tuned = pdojo.tune("softmax:4x8", expert="naive", measure=False)
    >>> tuned
    <TuneResult softmax:4x8 on host, 8 moves, verified>
    >>> tuned.run().shape
    (4, 8)
    """

    timed: Sequence[Timed] = ()
    """The last measurement, the plain program first, the tuned one last; empty if nothing was measured."""
    found: SearchOutcome | None = None
    """The search's result; None without a search."""
    is_interrupted: bool = False
    """True if Ctrl-C ended the search or the last measurement."""

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

    def _facts(self) -> list[str]:
        facts = super()._facts()
        if self.before is not None and self.after is not None:
            facts.append(f"{self.before:.4g} {self.unit} before, {self.after:.4g} {self.unit} after")
        return [*facts, "verified" if self.is_verified else "not verified"]
