"""The last measurement of a kernel in the database, and its verification, so that neither is repeated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from pdojo.backends.common.source_digest import source_digest
from pdojo.backends.measure import Ok
from pdojo.backends.measure.outcome import outcome_from_json
from pdojo.dialect.notation import print_notation
from pdojo.dialect.ops import KernelOp
from pdojo.errors import DatabaseError
from pdojo.search.contract.evaluation import Evaluation
from pdojo.search.database import SearchMemory
from pdojo.search.database.rows import now
from pdojo.search.engine.racing import Race
from pdojo.search.tuning.timing import MeasuredRow, Timed
from pdojo.search.tuning.verify import Verification
from pdojo.transforms.game import fingerprint_of

KIND = "quoted"
"""Kind of the race that stores a measurement; no other race is compared with it."""
_CODE = "**/*.py"
"""Files of pdojo whose change outdates a verification."""


@dataclass(frozen=True)
class Quoted:
    """A stored measurement."""

    timed: Sequence[Timed]
    """The programs, the tuned one last."""
    moment: str
    decision: Verification | None
    """The verification of the tuned program; None if other code of pdojo made it."""


class QuotedMemory:
    """The last measurements of a problem's programs."""

    def __init__(self, memory: SearchMemory) -> None:
        self._memory = memory

    def find(self, rows: Sequence[MeasuredRow]) -> Quoted | None:
        """The measurement of these programs, the tuned one last; None if there is none.

        Raises DatabaseError for an invalid row.
        """
        names = [fingerprint_of(print_notation(kernel)) for _, kernel, _ in rows]
        found = self._memory.find_race(names[-1], None, KIND)
        if found is None or found.evaluation.detail.get("programs") != names:
            return None
        outcomes = cast("list[dict[str, Any]]", found.evaluation.detail.get("outcomes", []))
        try:
            timed = [
                Timed(title, outcome_from_json(outcome), moves)
                for (title, _, moves), outcome in zip(rows, outcomes, strict=True)
            ]
        except (ValueError, TypeError, AttributeError) as error:
            raise DatabaseError(f"the database holds no measurement where one should be: {error}") from None
        verified = found.evaluation.detail.get("verified")
        return Quoted(timed, str(found.evaluation.detail.get("moment", "")), _decision(verified))

    def keep(self, rows: Sequence[MeasuredRow], timed: Sequence[Timed], decision: Verification) -> None:
        """Store a measurement in place of an earlier one, if all programs were timed."""
        texts = [print_notation(kernel) for _, kernel, _ in rows]
        outcomes = [replace(each.outcome, environment={}) for each in timed if isinstance(each.outcome, Ok)]
        if len(outcomes) < len(rows):
            return
        moment = now()
        detail = {
            "programs": [fingerprint_of(text) for text in texts],
            "outcomes": [outcome.to_json() for outcome in outcomes],
            "moment": moment,
            "verified": _stored(decision, moment),
            "environment": dict(cast("Ok", timed[-1].outcome).environment),
        }
        self._keep(texts[-1], Evaluation(timed[-1].cost, detail=detail))

    def keep_verification(self, tuned: KernelOp, decision: Verification) -> None:
        """Store a verification with its program's measurement, which must exist."""
        text = print_notation(tuned)
        found = self._memory.find_race(fingerprint_of(text), None, KIND)
        if found is not None:
            detail = {**found.evaluation.detail, "verified": _stored(decision, now())}
            self._keep(text, replace(found.evaluation, detail=detail))

    def _keep(self, text: str, evaluation: Evaluation) -> None:
        self._memory.keep_race(text, None, KIND, Race(evaluation), now())


def _stored(decision: Verification, moment: str) -> dict[str, Any]:
    return {"said": decision.said, "exact": decision.is_exact, "moment": moment, "code": source_digest(_CODE)}


def _decision(stored: object) -> Verification | None:
    """The stored verification by the same code; None if other code made it, or if there is none."""
    match stored:
        case {"said": str(said), "exact": bool(is_exact), "moment": str(moment), "code": str(code)}:
            found = Verification(f"verified at {moment}: {said}", is_exact=is_exact)
            return found if code == source_digest(_CODE) else None
        case _:
            return None
