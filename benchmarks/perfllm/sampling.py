"""Profile of a search by sampling its stack: finer than phase of the searchs, and without changes to the search."""

from __future__ import annotations

import sys
from collections import Counter
from threading import Event, Thread, get_ident
from typing import Self

INTERVAL = 0.02
"""Seconds between two samples."""
PARTS = ("moves", "encode", "learn", "evaluate", "store", "rest")
"""`moves`: drawing, checking and making moves, and texts of programs. `learn`: values of actions and updates of the
agent, or a cost model. `evaluate`: waiting for the evaluator.
"""
FILES = {
    "/pdojo/perfllm/encoders.py": "encode",
    "/pdojo/perfllm/transformer.py": "encode",
    "/pdojo/search/features/": "encode",
    "/pdojo/perfllm/learner.py": "learn",
    "/pdojo/perfllm/replay.py": "learn",
    "/pdojo/search/database/": "store",
    "/pdojo/search/evaluators/": "evaluate",
    "/sklearn/": "learn",
    "/pdojo/transforms/": "moves",
    "/pdojo/search/contract/candidates.py": "moves",
    "/pdojo/search/environment/": "moves",
    "/pdojo/search/neighbourhoods/": "moves",
}
"""Parts of file names; the innermost matching frame decides."""


class Sampling:
    """Samples the stack of the thread that made it, in its own thread, while its context is active."""

    def __init__(self) -> None:
        self._watched = get_ident()
        self._counts: Counter[str] = Counter()
        self._parts: dict[str, str | None] = {}
        self._ended = Event()
        self._thread = Thread(target=self._look, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def shares(self) -> dict[str, float]:
        """The fraction of the time of each of `PARTS`; all are 0 if the time was too short for a sample."""
        total = max(1, self._counts.total())
        return {part: self._counts[part] / total for part in PARTS}

    def _look(self) -> None:
        while not self._ended.wait(INTERVAL):
            self._counts[self._part()] += 1

    def _part(self) -> str:
        frame = sys._current_frames().get(self._watched)  # pyright: ignore[reportPrivateUsage]
        while frame is not None:
            part = self._part_of(frame.f_code.co_filename)
            if part is not None:
                return part
            frame = frame.f_back
        return "rest"

    def _part_of(self, file: str) -> str | None:
        if file not in self._parts:
            self._parts[file] = next((part for name, part in FILES.items() if name in file), None)
        return self._parts[file]
