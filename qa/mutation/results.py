"""Results of runs, kept in a file: an interrupted run goes on where it was, a later one knows whom to ask first."""

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
    """What noticed a defect."""

    name: str
    outcome: Outcome
    """`walks`: random walks did, but no test."""
    stage: str
    killer: str
    """The first test that failed."""
    seconds: float


class Results:
    """The results of one state of sources and tests; each is written at once."""

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
            return  # no results, or none that can be read: they are found again

    def of(self, mutant: Mutant) -> Result | None:
        """A result that is known."""
        return self._known.get(_key(mutant))

    def earlier(self, mutant: Mutant) -> str:
        """The test that noticed the defect in an earlier state of sources and tests; '' if that is not known."""
        return self._earlier.get(mutant.name, "")

    def add(self, mutant: Mutant, result: Result) -> None:
        """Keep a result."""
        with self._lock:
            self._known[_key(mutant)] = result
            self.path.parent.mkdir(parents=True, exist_ok=True)
            entries = {key: asdict(found) for key, found in self._known.items()}
            data = {"digest": self.digest, "results": entries, "earlier": self._earlier}
            write_output(json.dumps(data, indent=1), str(self.path))


def _key(mutant: Mutant) -> str:
    return sha256(repr(mutant).encode()).hexdigest()[:16]
