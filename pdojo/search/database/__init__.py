"""The memory of searches: SQLite. See docs/database.md."""

from pdojo.search.database.database import Database
from pdojo.search.database.memory import LogEntry, SearchMemory, StoredRun
from pdojo.search.database.problem import Problem

__all__ = ["Database", "LogEntry", "Problem", "SearchMemory", "StoredRun"]
