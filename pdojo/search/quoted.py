"""The last measurement of a kernel in the database: the same programs are not measured twice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from pdojo.backends.measure import Ok
from pdojo.backends.measure.outcome import outcome_from_json
from pdojo.dialect.notation import print_notation
from pdojo.errors import DatabaseError
from pdojo.search.database import SearchMemory
from pdojo.search.database.rows import now
from pdojo.search.dojo import fingerprint_of
from pdojo.search.evaluation import Evaluation
from pdojo.search.racing import Race
from pdojo.search.timing import MeasuredRow, Timed

KIND = "quoted"
"""The kind of the race under which a measurement is stored; no other race is compared with it."""


class QuotedMemory:
    """The last measurements of the programs of a problem."""

    def __init__(self, memory: SearchMemory) -> None:
        self._memory = memory

    def find(self, rows: Sequence[MeasuredRow]) -> tuple[list[Timed], str] | None:
        """The measurement of these programs, the tuned one last, and its moment; None if there is none.

        Raises DatabaseError for a row that holds something else.
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
        return timed, str(found.evaluation.detail.get("moment", ""))

    def keep(self, rows: Sequence[MeasuredRow], timed: Sequence[Timed]) -> None:
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
            "environment": dict(cast("Ok", timed[-1].outcome).environment),
        }
        race = Race(Evaluation(timed[-1].cost, detail=detail))
        self._memory.keep_race(texts[-1], None, KIND, race, moment)
