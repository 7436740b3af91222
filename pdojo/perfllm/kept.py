"""Vectors of programs on disk, so that each program is encoded once."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from hashlib import sha256
from pathlib import Path

import numpy

from pdojo.files import cache_folder
from pdojo.perfllm.learner import Vector

_PREPARE = (
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = NORMAL",
    "CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB NOT NULL)",
)


class Kept:
    """Vectors of `size` numbers, keyed by encoder and text: `embeddings.sqlite` in pdojo's cache, or in `folder`.

    Several processes may use it at once. If the file is damaged or cannot be written, or the user has no home folder,
    nothing is kept and programs are encoded again, with equal vectors.
    """

    def __init__(self, encoder: str, size: int, folder: Path | None = None) -> None:
        self._encoder, self._size = encoder, size
        place = cache_folder("perfllm") if folder is None else folder
        # Each connection to `:memory:` is another, empty database.
        self._file = ":memory:" if place is None else place / "embeddings.sqlite"
        if place is None:
            return
        with suppress(OSError, sqlite3.Error):
            place.mkdir(parents=True, exist_ok=True)
            with self._opened() as connection:
                for statement in _PREPARE:
                    connection.execute(statement)

    @contextmanager
    def _opened(self) -> Generator[sqlite3.Connection]:
        """The file during one transaction."""
        with closing(sqlite3.connect(self._file, timeout=60)) as connection, connection:
            yield connection

    def of(self, texts: Sequence[str]) -> dict[str, Vector]:
        """The stored vectors among `texts`."""
        found: dict[str, Vector] = {}
        with suppress(sqlite3.Error), self._opened() as connection:
            for text in dict.fromkeys(texts):
                row = connection.execute("SELECT vector FROM vectors WHERE key = ?", (self._key(text),)).fetchone()
                vector = None if row is None else self._vector(row[0])
                if vector is not None:
                    found[text] = vector
        return found

    def _vector(self, data: object) -> Vector | None:
        """The vector in a cell; None if the cell holds anything else."""
        if not isinstance(data, bytes) or len(data) != 4 * self._size:
            return None
        vector = numpy.frombuffer(data, dtype=numpy.float32)
        return vector if numpy.isfinite(vector).all() else None

    def add(self, vectors: Mapping[str, Vector]) -> None:
        """Keep vectors."""
        rows = [(self._key(text), vector.tobytes()) for text, vector in vectors.items()]
        with suppress(sqlite3.Error), self._opened() as connection:
            connection.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows)

    def _key(self, text: str) -> bytes:
        return sha256(f"{self._encoder}\n{text}".encode()).digest()
