"""Measured decisions about tuning parameters, keyed by kind of kernel and settings of the evaluator."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import log2, prod
from typing import cast

from pdojo.dialect.functions import byte_width
from pdojo.dialect.notation.printer import print_nest
from pdojo.dialect.view.nest import Nest
from pdojo.errors import DatabaseError
from pdojo.passes.common.parameters import ParameterValues
from pdojo.search.contract.evaluation import JSON
from pdojo.search.database.memory import SearchMemory
from pdojo.search.database.rows import now, read_json
from pdojo.search.database.schema import canonical, digest

_NUMBER = re.compile(r"(?<![\w.])\d+(?![\w.])")


def kind_of(plain: Nest) -> str:
    """The kind of a kernel: equal for plain kernels that differ only in numbers, and in size by less than a factor of
    four.

    The numbers are extents and constants; the size is the total of the interface arrays in bytes.
    """
    size = sum(prod(b.shape) * byte_width(b.dtype) for b in plain.buffers if b.op is None)
    # Sizes that are powers of two are common, so they do not lie at the ends of a class.
    return digest(f"{(log2(size) + 0.5) // 2:.0f}\n{_NUMBER.sub('#', print_nest(plain))}")


@dataclass(frozen=True)
class Decided:
    """Decisions found in the database."""

    answers: ParameterValues
    is_own: bool
    """True if they were decided for this very kernel; False for another kernel of the same kind."""


def find_decision(memory: SearchMemory, kind: str) -> JSON | None:
    """The decision about a kind of kernels; None if there is none. Raises DatabaseError for an invalid row."""
    query = "SELECT text FROM decisions WHERE kind = ? AND settings = ?"
    row = memory.connection.row(query, kind, memory.settings.id)
    return None if row is None else read_json(row["text"], memory.connection.path)


def keep_decision(memory: SearchMemory, kind: str, decided: JSON, gain: float) -> None:
    """Store a decision, replacing an earlier one; `gain` is the speed-up."""
    with memory.connection.transaction() as connection:
        connection.execute(
            "INSERT OR REPLACE INTO decisions (kind, settings, text, gain, measured) VALUES (?, ?, ?, ?, ?)",
            (kind, memory.settings.id, canonical(decided), gain, now()),
        )


class DecisionMemory:
    """The decisions about kernels of one kind, under the settings of an evaluator."""

    def __init__(self, memory: SearchMemory, plain: Nest) -> None:
        self._memory = memory
        self._kind, self._program = kind_of(plain), digest(print_nest(plain))

    def find(self) -> Decided | None:
        """The latest decisions; None if there are none. Raises DatabaseError for an invalid row."""
        found = find_decision(self._memory, self._kind)
        if found is None:
            return None
        own = found.get("programs", {})
        is_own = isinstance(own, dict) and self._program in own
        answers = cast("JSON", own)[self._program] if is_own else found.get("answers")
        if not isinstance(answers, dict):
            raise DatabaseError(f"the database '{self._memory.connection.path}' has a row of decisions without answers")
        given = cast("JSON", answers)
        return Decided({question: str(answer) for question, answer in given.items()}, is_own)

    def keep(self, answers: ParameterValues, gain: float) -> None:
        """Make these the latest decisions; `gain` is the speed-up over the program they raced with.

        Decisions about other kernels of the kind are kept.
        """
        known = (find_decision(self._memory, self._kind) or {}).get("programs")
        programs = {**(cast("JSON", known) if isinstance(known, dict) else {}), self._program: dict(answers)}
        keep_decision(self._memory, self._kind, {"answers": dict(answers), "programs": programs}, gain)
