"""Costs: from memory where they are known, from the evaluator where not, and stored as soon as they are there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import isfinite
from time import perf_counter

from pdojo.search.database import Duel, Memory, Run
from pdojo.search.evaluation import NOT_TIMED, Anchor, Anchored, Candidate, Evaluation, Evaluator, Refining
from pdojo.search.progress import Times
from pdojo.transforms.trace import Trace


class Costs:
    """An evaluator that remembers."""

    def __init__(
        self,
        evaluator: Evaluator,
        memory: Memory,
        times: Times,
        doing: Callable[[str], None],
        *,
        log: Run | None = None,
    ) -> None:
        self._evaluator = evaluator
        self._memory = memory
        self._log = log
        self._times = times
        self._doing = doing
        self.remembered = 0
        """Evaluations that came from memory."""
        self._rough: dict[str, Evaluation] = {}
        """Of the last batch, what was measured here."""
        self.made = 0
        """Evaluations that were made."""

    @property
    def is_anchored(self) -> bool:
        """Whether costs are told by the measure of the best."""
        return isinstance(self._evaluator, Anchored)

    def anchor(self, candidate: Candidate | None, cost: float) -> None:
        """The program is the best now, if there is one; alone it costs so much."""
        if isinstance(self._evaluator, Anchored):
            self._evaluator.anchor = None if candidate is None else Anchor(candidate, cost)

    def expect(self, candidate: Candidate) -> None:
        """The program will be among the next ones to evaluate."""
        if self._find(candidate) is None:
            self._evaluator.expect(candidate)

    def failure(self, candidate: Candidate) -> Evaluation | None:
        """How a program failed, as far as anybody knows by now; None where it did not."""
        found = self._memory.find(candidate.fingerprint)
        return None if found is None or found.is_ok else found

    def _find(self, candidate: Candidate) -> Evaluation | None:
        """What is known of a program; of one that the run has met before what it was told then.

        What duels said later comes when they do: a run that goes on repeats itself.
        """
        fingerprint = candidate.fingerprint
        return self._memory.find(fingerprint, alone=self._log is not None and self._log.has(fingerprint))

    def evaluate(self, candidates: Sequence[tuple[Candidate, Trace]]) -> Iterator[Evaluation]:
        """The evaluation of each program, different ones, in order; each is stored before the next is waited for."""
        with self._times.of("store"):
            known = [self._find(candidate) for candidate, _ in candidates]
        missing = [candidate for (candidate, _), found in zip(candidates, known, strict=True) if found is None]
        made = self._make(missing)
        self._rough.clear()
        for (candidate, trace), found in zip(candidates, known, strict=True):
            if found is not None:
                self.remembered += 1
                yield found
                continue
            evaluation = next(made)
            self.made += 1
            with self._times.of("store"):
                kept = self._memory.keep(candidate.program.text, trace, evaluation)
            if kept is evaluation:
                self._rough[candidate.fingerprint] = evaluation
            yield kept

    def refine(self, best: float) -> dict[str, Evaluation]:
        """Better costs of those of the last batch that were measured here, where they may be the best.

        By fingerprint, and stored in place of the first ones. `best` is the least cost so far.
        """
        if not isinstance(self._evaluator, Refining) or not self._rough:
            return {}
        with self._times.of("run"):
            better = self._evaluator.refine(self._rough, best, self._doing)
        with self._times.of("store"):
            for fingerprint, evaluation in better.items():
                self._memory.improve(fingerprint, evaluation)
        return better

    def duel(self, candidate: Candidate, best: Candidate | None, *, again: bool = False) -> Duel:
        """The program beside the best so far; it is right on fresh inputs, or has failed.

        A former best stands a return match with the one that took its place (`again`).
        """
        against = None if best is None else best.fingerprint
        found = self._memory.find_duel(candidate.fingerprint, against, again=again)
        if found is not None:
            return found
        with self._times.of("duel"):
            given = [_timed(evaluation) for evaluation in self._evaluator.confirm(candidate, best, self._doing)]
        first, other = given if best is not None else (*given, None)
        assert first is not None
        with self._times.of("store"):
            text = None if best is None else best.program.text
            return self._memory.keep_duel(candidate.program.text, text, Duel.of(first, other, again=again), again=again)

    def _make(self, candidates: Sequence[Candidate]) -> Iterator[Evaluation]:
        """Ask the evaluator. What it does not account for is the phase `evaluate`."""
        if not candidates:
            return
        rest = 0.0
        count = 0
        start = perf_counter()
        try:
            for evaluation in self._evaluator.evaluate(candidates, self._doing):
                rest += perf_counter() - start
                for phase, seconds in evaluation.seconds.items():
                    self._times.add(phase, seconds)
                    rest -= seconds
                count += 1
                yield _checked(evaluation)
                start = perf_counter()
        finally:
            # Evaluators that give all at once account for more than has passed, until the last one is given.
            self._times.add("evaluate", max(0.0, rest))
        assert count == len(candidates), f"{count} evaluations of {len(candidates)} programs"


def _timed(evaluation: Evaluation) -> Evaluation:
    """Where one of two programs fails before both are timed, the other has neither a cost nor a failure of its own.

    It is stored as `NOT_TIMED`, and nothing is made of that.
    """
    return Evaluation.failed(NOT_TIMED, {}) if evaluation.is_ok and not isfinite(evaluation.cost) else evaluation


def _checked(evaluation: Evaluation) -> Evaluation:
    assert evaluation.is_ok == isfinite(evaluation.cost), f"a program has a cost or has failed, not both: {evaluation}"
    return evaluation
