"""One planted defect: a piece of source that is replaced by a wrong one."""

from __future__ import annotations

import ast
import builtins
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from pdojo.errors import UsageError


@dataclass(frozen=True)
class Mutant:
    """A defect: in `symbol` of `file`, `old` (which is there exactly once) becomes `new`."""

    name: str
    """Unique; what `--only` takes."""
    file: str
    """Relative to the package `pdojo`."""
    symbol: str
    """Class, function or `Class.method`; '' for a definition of the module itself."""
    old: str
    new: str
    breaks: str
    """What goes wrong, in a sentence."""
    moves: tuple[str, ...]
    """Transformations whose lit tests are asked first, and that random walks prefer."""

    def path(self, root: Path) -> Path:
        """The file in a copy of the project."""
        return root / "pdojo" / self.file

    def mutated(self, root: Path) -> str:
        """The text of the file with the defect. Raises UsageError where the defect does not fit the source any more."""
        try:
            source = self.path(root).read_text(encoding="utf-8")
        except OSError as error:
            raise UsageError(f"mutant '{self.name}': cannot read '{self.file}': {error.strerror}") from None
        first, last = self._span(source)
        lines = source.splitlines(keepends=True)
        part = "".join(lines[first:last])
        times = part.count(self.old)
        if times != 1:
            where = f"{self.file}, {self.symbol}" if self.symbol else self.file
            raise UsageError(f"mutant '{self.name}': its text is {times} times in {where}, should be once: {self.old}")
        wrong = part.replace(self.old, self.new)
        text = "".join([*lines[:first], wrong, *lines[last:]])
        try:
            after = ast.parse(text)
        except SyntaxError as error:
            raise UsageError(f"mutant '{self.name}' is no Python: {error}") from None
        if ast.dump(after) == _structure(source):
            raise UsageError(f"mutant '{self.name}' changes nothing")
        unknown = _names(after, ast.Load) - _known(source) - _names(after, ast.Store) - set(dir(builtins))
        if unknown:
            raise UsageError(f"mutant '{self.name}' uses a name that {self.file} lacks: {', '.join(sorted(unknown))}")
        return text

    def _span(self, source: str) -> tuple[int, int]:
        """The lines of the symbol: from, to (exclusive)."""
        if not self.symbol:
            return 0, len(source.splitlines())
        node: ast.AST = _tree(source)
        for name in self.symbol.split("."):
            found = [
                child
                for child in ast.iter_child_nodes(node)
                if isinstance(child, ast.FunctionDef | ast.ClassDef) and child.name == name
            ]
            if not found:
                raise UsageError(f"mutant '{self.name}': {self.file} has no '{self.symbol}'")
            node = found[-1]
        assert isinstance(node, ast.FunctionDef | ast.ClassDef)
        assert node.end_lineno is not None
        return node.lineno - 1, node.end_lineno


@lru_cache(maxsize=64)
def _tree(source: str) -> ast.Module:
    return ast.parse(source)


@lru_cache(maxsize=64)
def _structure(source: str) -> str:
    return ast.dump(_tree(source))


@lru_cache(maxsize=64)
def _known(source: str) -> set[str]:
    return _names(_tree(source))


def _names(tree: ast.AST, context: type[ast.expr_context] = ast.expr_context) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, context)}


def family(file: str, symbol: str, *moves: str) -> Family:
    """What the mutants of one symbol have in common, to declare them briefly."""
    return Family(file, symbol, moves)


@dataclass(frozen=True)
class Family:
    """Where mutants are."""

    file: str
    symbol: str
    moves: tuple[str, ...]

    def __call__(self, name: str, breaks: str, old: str, new: str) -> Mutant:
        """A mutant there."""
        return Mutant(name, self.file, self.symbol, old, new, breaks, self.moves)
