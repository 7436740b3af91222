"""The last measurement of a kernel in the database, and its verification, so that neither is repeated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from pdojo.backends.common.source_digest import source_digest
from pdojo.backends.measure import Ok
from pdojo.backends.measure.outcome import outcome_from_json
from pdojo.dialect.notation import print_notation
from pdojo.errors import DatabaseError
from pdojo.passes.verification.verify import Verification
from pdojo.search.database import SearchMemory
from pdojo.search.database.decisions import find_decision, keep_decision
from pdojo.search.database.rows import now
from pdojo.search.tuning.timing import MeasuredRow, Timed
from pdojo.transforms.game import fingerprint_of

_CODE = "**/*.py"
"""Files of pdojo whose change outdates a verification."""


@dataclass(frozen=True)
class StoredMeasurement:
    """A stored measurement."""

    timed: Sequence[Timed]
    """The programs, the tuned one last."""
    moment: str
    decision: Verification | None
    """The verification of the tuned program; None if other code of pdojo made it."""


class StoredMeasurements:
    """The last measurements of a problem's programs."""

    def __init__(self, memory: SearchMemory) -> None:
        self._memory = memory

    def find(self, rows: Sequence[MeasuredRow]) -> StoredMeasurement | None:
        """The measurement of these programs, the tuned one last; None if there is none.

        Raises DatabaseError for an invalid row.
        """
        names = [fingerprint_of(print_notation(kernel)) for _, kernel, _ in rows]
        found = find_decision(self._memory, _kind(names[-1]))
        if found is None or found.get("programs") != names:
            return None
        outcomes = cast("list[dict[str, Any]]", found.get("outcomes", []))
        try:
            timed = [
                Timed(title, outcome_from_json(outcome), moves)
                for (title, _, moves), outcome in zip(rows, outcomes, strict=True)
            ]
        except (ValueError, TypeError, AttributeError) as error:
            raise DatabaseError(f"the database holds no measurement where one should be: {error}") from None
        return StoredMeasurement(timed, str(found.get("moment", "")), _decision(found.get("verified")))

    def keep(
        self, rows: Sequence[MeasuredRow], timed: Sequence[Timed], decision: Verification, moment: str | None = None
    ) -> None:
        """Store a measurement in place of an earlier one, if all programs were timed; `moment` is its time if not now.

        The verification was made now.
        """
        outcomes = [replace(each.outcome, environment={}) for each in timed if isinstance(each.outcome, Ok)]
        if len(outcomes) < len(rows):
            return
        names = [fingerprint_of(print_notation(kernel)) for _, kernel, _ in rows]
        detail = {
            "programs": names,
            "outcomes": [outcome.to_json() for outcome in outcomes],
            "moment": moment or now(),
            "verified": _stored(decision, now()),
        }
        keep_decision(self._memory, _kind(names[-1]), detail, timed[0].cost / timed[-1].cost)


def _kind(fingerprint: str) -> str:
    """The kind of decision that holds the last measurement of a program."""
    return f"quoted {fingerprint}"


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
