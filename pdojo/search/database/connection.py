"""A connection to a search database: makes the tables, waits for other writers, explains bad files."""

from __future__ import annotations

import os
import sqlite3
import stat
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from pdojo.errors import DatabaseError, UsageError
from pdojo.search.database.rows import visible
from pdojo.search.database.schema import APPLICATION, NUMBERS, VERSION, create, fits

PATIENCE = 60.0
"""Seconds to wait for other writers."""

Cells: TypeAlias = dict[str, Any]
"""A row: its cells, keyed by name."""
_Result = TypeVar("_Result")


class DatabaseConnection:
    """A database file, or memory if `path` is None. A connection belongs to one thread.

    Every change is one short transaction, which is atomic even if the process dies. Raises DatabaseError for a file
    that is missing (unless `create` is set), no search database, damaged or of another version, and for SQLite's
    special name `:memory:`, which would become a file here.
    """

    def __init__(self, path: Path | None, *, create: bool = True) -> None:
        self.path = path
        if path == Path(":memory:"):
            raise DatabaseError(
                "':memory:' is no database here: give a file, in a temporary folder if it is to be thrown away"
                " (Database.in_memory() in Python)"
            )
        if path is not None:
            _check_file(path, create=create)
        self._is_read_only = path is not None and _is_read_only(path)
        with self._clear_errors():
            self._sqlite = _connect(path, create=create, read_only=self._is_read_only)
        try:
            with self._clear_errors():
                self._prepare()
        except BaseException:
            self._sqlite.close()
            raise

    @property
    def name(self) -> str:
        """The name in messages."""
        return "the database in memory" if self.path is None else f"the database '{self.path}'"

    def rows(self, query: str, *values: object) -> list[Cells]:
        """The rows of a query. Raises DatabaseError if a cell's type differs from its column's."""
        with self._clear_errors():
            found = self._patiently(lambda: self._sqlite.execute(query, values).fetchall())
            return [self._checked(row) for row in found]

    def _checked(self, row: sqlite3.Row) -> Cells:
        """The cells by name, with control characters in text escaped, because a terminal must not obey a file."""
        cells: Cells = {}
        for name in row.keys():  # noqa: SIM118  # iterating over a row gives its values
            value = row[name]
            if isinstance(value, bytes) or (name in NUMBERS and not fits(NUMBERS[name], value)):
                raise damaged_cell(self.name, name, value)
            cells[name] = visible(value) if isinstance(value, str) else value
        return cells

    def row(self, query: str, *values: object) -> Cells | None:
        """The first row of a query; None if there is none."""
        found = self.rows(query, *values)
        return found[0] if found else None

    def only(self, query: str, *values: object) -> Cells:
        """The row of a query that must have one. Raises DatabaseError if there is none."""
        found = self.row(query, *values)
        if found is None:
            raise DatabaseError(f"{self.name} is damaged: it has no row of {query.partition('FROM ')[2]:.40}")
        return found

    @contextmanager
    def snapshot(self) -> Generator[None, None, None]:
        """Let all queries within see one state, regardless of other writers."""
        with self._clear_errors():
            try:
                self._patiently(lambda: self._sqlite.execute("BEGIN"))
                yield
            finally:
                self._sqlite.rollback()

    @contextmanager
    def transaction(self, *, keep: bool = True) -> Generator[sqlite3.Connection, None, None]:
        """Commit all writes within, or none of them after an exception or without `keep`."""
        with self._clear_errors():
            try:
                # Take the write lock at once: SQLite does not wait for a lock requested after a read.
                self._patiently(lambda: self._sqlite.execute("BEGIN IMMEDIATE"))
                yield self._sqlite
                if keep:
                    self._sqlite.commit()
            finally:
                self._sqlite.rollback()  # Does nothing after a commit.

    def shrink(self) -> None:
        """Release the disk space of deleted rows."""
        with self._clear_errors():
            self._patiently(lambda: self._sqlite.execute("VACUUM"))

    def close(self) -> None:
        """Close the file; closing twice is fine."""
        self._sqlite.close()

    def _prepare(self) -> None:
        execute = self._sqlite.execute
        self._sqlite.row_factory = sqlite3.Row
        # A foreign file must not call functions with effects, or trick SQLite by its structure.
        execute("PRAGMA trusted_schema = OFF")
        execute("PRAGMA cell_size_check = ON")
        version = self._version()
        if version == 0 and self._is_read_only:
            raise DatabaseError(f"{self.name} is empty and may not be written")
        if version == 0:
            with self.transaction() as connection:
                # Another process may have made the tables meanwhile.
                if self._version() == 0:
                    create(connection)
                    connection.execute(f"PRAGMA application_id = {APPLICATION}")
                    connection.execute(f"PRAGMA user_version = {VERSION}")
        tables = self._patiently(lambda: self._sqlite.execute(_SCHEMA).fetchall())
        if [tuple(row) for row in tables] != _schema():
            raise DatabaseError(f"{self.name} is damaged: its tables are not those of version {VERSION}")
        if self._is_read_only:
            return
        self._patiently(lambda: execute("PRAGMA journal_mode = WAL"))
        # With a write-ahead log, NORMAL keeps every commit when the process dies: it is in the system's memory. Only a
        # power cut may lose the last commits, and it never damages the file. FULL would wait for the disk at every
        # measurement.
        execute("PRAGMA synchronous = NORMAL")
        execute("PRAGMA foreign_keys = ON")

    def _version(self) -> int:
        """The version of the file; 0 if it is empty. Raises DatabaseError for foreign files and other versions."""
        application, version, tables = self._patiently(
            lambda: self._sqlite.execute(
                "SELECT application_id, user_version, (SELECT count(*) FROM sqlite_master)"
                " FROM pragma_application_id, pragma_user_version"
            ).fetchone()
        )
        if application != APPLICATION and (application or version or tables):
            raise DatabaseError(f"'{self.path}' is an SQLite database, but not one of pdojo's")
        if version not in (0, VERSION):
            raise DatabaseError(
                f"'{self.path}' has version {version} of the tables; this pdojo knows version {VERSION}: use another"
                " file, or the pdojo that wrote this one"
            )
        return version

    def _patiently(self, operation: Callable[[], _Result]) -> _Result:
        """Retry while others write. SQLite itself does not wait during recovery and changes of mode."""
        end = time.monotonic() + PATIENCE
        while True:
            try:
                return operation()
            except sqlite3.OperationalError as error:
                # Errors of the Python module, not of SQLite, have no code.
                busy = getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
                if not busy or time.monotonic() > end:
                    raise
                time.sleep(0.02)

    @contextmanager
    def _clear_errors(self) -> Generator[None, None, None]:
        try:
            yield
        except sqlite3.ProgrammingError:
            raise  # A bug in pdojo.
        except sqlite3.DatabaseError as error:
            raise DatabaseError(f"{self.name} {_reason(error)}") from None
        except UnicodeEncodeError:
            raise UsageError(f"{self.name} keeps texts, and a name here has bytes that are none") from None
        except UnicodeError as error:
            raise DatabaseError(f"{self.name} is damaged: {error}") from None


def damaged_cell(database: str, name: str, value: object) -> DatabaseError:
    """The error for a cell with an impossible value for its column."""
    return DatabaseError(f"{database} is damaged: it holds {value!r:.40} where '{name}' should be")


_SCHEMA = "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY name"


@cache
def _schema() -> list[tuple[object, ...]]:
    connection = sqlite3.connect(":memory:")
    create(connection)
    found = connection.execute(_SCHEMA).fetchall()
    connection.close()
    return found


def _check_file(path: Path, *, create: bool) -> None:
    """Raise DatabaseError if `path` cannot be a database: a folder, a pipe, a device, an impossible file name."""
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        if not create:
            raise DatabaseError(f"there is no database '{path}'") from None
    except OSError as error:
        raise DatabaseError(f"there can be no database '{path}': {error.strerror}") from None
    except ValueError:
        raise DatabaseError(f"there can be no database '{path}': its name has a zero byte") from None
    else:
        if not stat.S_ISREG(mode):
            raise DatabaseError(f"the database '{path}' cannot be used: it is no file")


def _is_read_only(path: Path) -> bool:
    """True if the file exists, and the file or its folder is read-only."""
    return path.is_file() and not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK))


def _connect(path: Path | None, *, create: bool, read_only: bool) -> sqlite3.Connection:
    target = ":memory:"
    if path is not None:
        # In a read-only folder SQLite opens a write-ahead log only if the log exists already.
        has_log = path.with_name(path.name + "-wal").exists()
        mode = ("ro" if has_log else "ro&immutable=1") if read_only else "rwc" if create else "rw"
        target = f"{path.absolute().as_uri()}?mode={mode}"
    return sqlite3.connect(target, timeout=PATIENCE, isolation_level=None, uri=path is not None)


def _reason(error: sqlite3.DatabaseError) -> str:
    match getattr(error, "sqlite_errorcode", 0) & 0xFF:
        case sqlite3.SQLITE_NOTADB:
            return "cannot be read: it is no SQLite database"
        case sqlite3.SQLITE_CORRUPT:
            return "is damaged: move it away, and import what was exported from it"
        case sqlite3.SQLITE_READONLY:
            return "may be read only: copy it, or name another file"
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return f"is in use: others have been writing to it for more than {PATIENCE:g} seconds"
        case _:
            return f"cannot be used: {error}"
