"""A planted defect: a change at one place of the source."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pdojo.errors import UsageError
from qa.mutation.source import Edit, Source, source_of


class Change(Protocol):
    """The change of a defect in a symbol of a file."""

    def edit(self, source: Source, symbol: str) -> Edit:
        """The change of the text. Raises UsageError unless it fits the source at exactly one place."""
        ...


@dataclass(frozen=True)
class Mutant:
    """A defect in `symbol` of `file`."""

    name: str
    """A unique name, for `--only`."""
    file: str
    """The path relative to the package `pdojo`."""
    symbol: str
    """Class, function or `Class.method`; '' for a definition of the module itself."""
    change: Change
    breaks: str
    """The effect of the defect, in a sentence."""
    moves: tuple[str, ...]
    """Transformations whose lit tests run first, and which random walks prefer."""

    def path(self, root: Path) -> Path:
        """The file in a copy of the project."""
        return root / "pdojo" / self.file

    def edit(self, root: Path) -> Edit:
        """The change of the file's text. Raises UsageError if the defect does not fit the source any more."""
        source = self._source(root)
        try:
            return self.change.edit(source, self.symbol)
        except UsageError as error:
            raise UsageError(f"mutant '{self.name}' does not fit {self.file}, {self.symbol}: {error}") from None

    def mutated(self, root: Path) -> str:
        """The text of the file with the defect. Raises UsageError if the defect does not fit the source any more."""
        source, edit = self._source(root), self.edit(root)
        after = Source(source.edited(edit))
        try:
            same = after.structure == source.structure
        except SyntaxError as error:
            raise UsageError(f"mutant '{self.name}' is no Python: {error}") from None
        if same:
            raise UsageError(f"mutant '{self.name}' changes nothing")
        unknown = source.lacks(after)
        if unknown:
            raise UsageError(f"mutant '{self.name}' uses a name that {self.file} lacks: {', '.join(sorted(unknown))}")
        return after.text

    def _source(self, root: Path) -> Source:
        try:
            return source_of(self.path(root).read_text(encoding="utf-8"))
        except OSError as error:
            raise UsageError(f"mutant '{self.name}': cannot read '{self.file}': {error.strerror}") from None


@dataclass(frozen=True)
class Family:
    """The location of related mutants."""

    file: str
    symbol: str
    moves: tuple[str, ...]

    def __call__(self, name: str, breaks: str, change: Change) -> Mutant:
        """A mutant at this location."""
        return Mutant(name, self.file, self.symbol, change, breaks, self.moves)


def family(file: str, symbol: str, *moves: str) -> Family:
    """The location of the mutants of one symbol, for brief declarations."""
    return Family(file, symbol, moves)
