"""Stored results of runs: an interrupted run resumes, and a later one knows which test to run first."""

from __future__ import annotations

import json
import threading
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from pdojo_tools.outputs import write_output

from qa.mutation.mutant import Mutant

Outcome = Literal["suite", "walks", "survived"]


@dataclass(frozen=True)
class Result:
    """The result for one defect."""

    name: str
    outcome: Outcome
    """`suite`, `walks` (only random walks notice it) or `survived`."""
    stage: str
    killer: str
    """The first test that failed."""
    seconds: float


class Results:
    """The results for one state of sources and tests; each is written at once."""

    def __init__(self, path: Path, digest: str) -> None:
        self.path = path
        self.digest = digest
        self._lock = threading.Lock()
        self._known: dict[str, Result] = {}
        self._earlier: dict[str, str] = {}
        self._load()

    def _load(self) -> None:
        try:
            data: Any = json.loads(self.path.read_text(encoding="utf-8"))
            results = {key: Result(**entry) for key, entry in data["results"].items()}
            self._earlier = dict(data.get("earlier", {})) | {r.name: r.killer for r in results.values() if r.killer}
            if data["digest"] == self.digest:
                self._known = results
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return  # Without readable results, all are computed again.

    def of(self, mutant: Mutant) -> Result | None:
        """The stored result of a mutant; None if there is none."""
        return self._known.get(_key(mutant))

    def earlier(self, mutant: Mutant) -> str:
        """The test that noticed the defect in an earlier state of sources and tests; '' if unknown."""
        return self._earlier.get(mutant.name, "")

    def add(self, mutant: Mutant, result: Result) -> None:
        """Store a result."""
        with self._lock:
            self._known[_key(mutant)] = result
            self.path.parent.mkdir(parents=True, exist_ok=True)
            entries = {key: asdict(found) for key, found in self._known.items()}
            data = {"digest": self.digest, "results": entries, "earlier": self._earlier}
            write_output(json.dumps(data, indent=1), str(self.path))


def _key(mutant: Mutant) -> str:
    return sha256(repr(mutant).encode()).hexdigest()[:16]
