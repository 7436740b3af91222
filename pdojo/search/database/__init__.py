"""The memory of searches: SQLite. See docs/database.md."""

from pdojo.search.database.database import Database
from pdojo.search.database.memory import Entry, SearchMemory, StoredRun
from pdojo.search.database.problem import Problem

__all__ = ["Database", "Entry", "Problem", "SearchMemory", "StoredRun"]
