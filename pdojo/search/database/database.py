"""The memory of all searches, in one file."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Self

from pdojo.dialect.machines.machine_file import machine_facts
from pdojo.errors import DatabaseError
from pdojo.files import default_database, existing_database
from pdojo.search.contract.evaluation import Evaluator
from pdojo.search.database.connection import DatabaseConnection
from pdojo.search.database.memory import SearchMemory
from pdojo.search.database.problem import Problem
from pdojo.search.database.rows import put
from pdojo.search.database.schema import canonical


class Database:
    """A file that searches share; several processes may write at once. See docs/database.md.

    Nothing in a file is executed or unpickled. Raises DatabaseError, naming the file, for one that is missing, no
    search database, damaged, or written by a newer pdojo.
    """

    def __init__(self, path: str | Path | None = None, *, create: bool = True) -> None:
        """Open the file `path`, by default `default_database()`; with `create`, a missing file is created."""
        if path is None:
            path = _default()
            if create:
                _make_folder(path.parent)
        self.connection = DatabaseConnection(Path(path), create=create)

    @classmethod
    def existing(cls, path: str | Path | None = None) -> Database:
        """The file `path`, by default `default_database()`; an empty database in memory if there is no such file."""
        file = existing_database(path)
        return cls.in_memory() if file is None else cls(file, create=False)

    @classmethod
    def in_memory(cls) -> Database:
        """A private database, which ends with the process."""
        database = cls.__new__(cls)
        database.connection = DatabaseConnection(None)
        return database

    def memory(self, problem: Problem, evaluator: Evaluator) -> SearchMemory:
        """The memory of a problem under an evaluator's settings."""
        with self.connection.transaction() as connection:
            facts = canonical(machine_facts(problem.machine))
            machine = put(connection, "machines", {"name": problem.machine.name, "text": facts})
            plain = put(connection, "programs", {"text": problem.text})
            names = {"kernel": problem.kernel, "shape": problem.shape, "dtype": problem.dtype, "label": problem.label}
            key = put(connection, "problems", {"plain": plain, "machine": machine, **names})
            if problem.label:
                # An earlier search may not have known the workload's name.
                connection.execute(
                    "UPDATE problems SET shape = ?, label = ? WHERE id = ? AND label = ''",
                    (problem.shape, problem.label, key.id),
                )
            settings = put(
                connection,
                "settings",
                {
                    "machine": machine,
                    "evaluator": evaluator.name,
                    "unit": evaluator.unit,
                    "text": canonical(evaluator.settings),
                },
            )
        return SearchMemory(self.connection, key, settings)

    def close(self) -> None:
        """Close the file; closing twice is fine."""
        self.connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def _default() -> Path:
    try:
        return default_database()
    except FileNotFoundError as error:
        raise DatabaseError(f"there can be no database by default: {error.strerror}, or name a file") from None


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DatabaseError(f"cannot make the folder '{folder}' for the search database: {error.strerror}") from None
