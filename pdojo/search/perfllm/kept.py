"""Vectors of programs on disk, so that a program is read once."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import numpy

from pdojo.files import cache_folder
from pdojo.search.perfllm.learner import Vector

_PREPARE = (
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = NORMAL",
    "CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB NOT NULL)",
)


class Kept:
    """Vectors of `size` numbers, by encoder and text: `embeddings.sqlite` in pdojo's cache, or in `folder`.

    Several processes may use it at once. A file that is damaged or cannot be written keeps nothing: programs are read
    again, which gives the same vectors.
    """

    def __init__(self, encoder: str, size: int, folder: Path | None = None) -> None:
        self._encoder, self._size = encoder, size
        self._connection: sqlite3.Connection | None = None
        place = cache_folder("perfllm") if folder is None else folder
        with suppress(OSError, sqlite3.Error):
            place.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(place / "embeddings.sqlite", timeout=60)
            for statement in _PREPARE:
                self._connection.execute(statement)

    def of(self, texts: Sequence[str]) -> dict[str, Vector]:
        """The vectors that are there."""
        found: dict[str, Vector] = {}
        for text in dict.fromkeys(texts):
            vector = self._vector(self._row(text))
            if vector is not None:
                found[text] = vector
        return found

    def _row(self, text: str) -> object:
        if self._connection is not None:
            with suppress(sqlite3.Error):
                query = "SELECT vector FROM vectors WHERE key = ?"
                for row in self._connection.execute(query, (self._key(text),)):
                    return row[0]
        return None

    def _vector(self, data: object) -> Vector | None:
        """The vector in a cell; None for anything else."""
        if not isinstance(data, bytes) or len(data) != 4 * self._size:
            return None
        vector = numpy.frombuffer(data, dtype=numpy.float32)
        return vector if numpy.isfinite(vector).all() else None

    def add(self, vectors: Mapping[str, Vector]) -> None:
        """Keep vectors."""
        if self._connection is not None:
            rows = [(self._key(text), vector.tobytes()) for text, vector in vectors.items()]
            with suppress(sqlite3.Error), self._connection:
                self._connection.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows)

    def _key(self, text: str) -> bytes:
        return sha256(f"{self._encoder}\n{text}".encode()).digest()
