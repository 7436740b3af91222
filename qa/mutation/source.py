"""The text of a file with its syntax tree: positions of symbols, bytes of expressions."""

from __future__ import annotations

import ast
import builtins
from dataclasses import dataclass
from functools import cached_property, lru_cache

from pdojo.errors import UsageError


@dataclass(frozen=True)
class Edit:
    """Replaces the bytes `old` at `start` of a file by `new`."""

    start: int
    old: str
    new: str


@dataclass(frozen=True)
class Source:
    """The text of a Python file."""

    text: str

    @cached_property
    def tree(self) -> ast.Module:
        """The syntax tree. Raises SyntaxError for a text that is no Python."""
        return ast.parse(self.text)

    @cached_property
    def structure(self) -> str:
        """A form that is equal for two texts that differ only in format."""
        return ast.dump(self.tree)

    @cached_property
    def stored(self) -> set[str]:
        """The names that are assigned."""
        return {name.id for name in self._names if isinstance(name.ctx, ast.Store)}

    @cached_property
    def read(self) -> set[str]:
        """The names that are read."""
        return {name.id for name in self._names if isinstance(name.ctx, ast.Load)}

    @cached_property
    def _names(self) -> list[ast.Name]:
        return [node for node in ast.walk(self.tree) if isinstance(node, ast.Name)]

    @cached_property
    def _bytes(self) -> bytes:
        return self.text.encode()

    @cached_property
    def _offsets(self) -> list[int]:
        """The offset of each line, and of the end."""
        offsets = [0]
        for line in self._bytes.splitlines(keepends=True):
            offsets.append(offsets[-1] + len(line))
        return offsets

    def lacks(self, other: Source) -> set[str]:
        """The names that another version reads and neither version has."""
        return other.read - self.read - self.stored - other.stored - set(dir(builtins))

    def symbol(self, name: str) -> ast.AST:
        """A class, a function or `Class.method`; the module for ''. Raises UsageError if there is none."""
        node: ast.AST = self.tree
        for part in name.split(".") if name else ():
            found = [
                child
                for child in ast.iter_child_nodes(node)
                if isinstance(child, ast.FunctionDef | ast.ClassDef) and child.name == part
            ]
            if not found:
                raise UsageError(f"there is no '{name}'")
            node = found[-1]
        return node

    def part(self, node: ast.AST) -> tuple[int, str]:
        """The first byte of a node, and its text."""
        if isinstance(node, ast.Module):
            return 0, self.text
        assert isinstance(node, ast.stmt | ast.expr)
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start = self._offsets[node.lineno - 1] + node.col_offset
        end = self._offsets[node.end_lineno - 1] + node.end_col_offset
        return start, self._bytes[start:end].decode()

    def replacing(self, node: ast.expr, new: ast.expr) -> Edit:
        """The edit that replaces an expression; the rest of the text stays."""
        return Edit(*self.part(node), f"({ast.unparse(new)})")

    def has(self, edit: Edit) -> bool:
        """True if the text that an edit replaces is there."""
        old = edit.old.encode()
        return self._bytes[edit.start : edit.start + len(old)] == old

    def edited(self, edit: Edit) -> str:
        """The text after an edit that fits."""
        end = edit.start + len(edit.old.encode())
        return (self._bytes[: edit.start] + edit.new.encode() + self._bytes[end:]).decode()


@lru_cache(maxsize=64)
def source_of(text: str) -> Source:
    """The source of a text, parsed once."""
    return Source(text)
