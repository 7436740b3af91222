"""docs/moves.md from the docstrings of transformations: `python -m pdojo.transforms.document > docs/moves.md`.

A docstring has an example: a move between back quotes, then the lines before it and after it, side by side, with an
arrow between them on one line. `N` and `M` stand for extents. Tests run the example and compare.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import MISSING, dataclass, fields
from inspect import cleandoc
from itertools import pairwise
from typing import Any

from pdojo.dialect.attributes import Numerics
from pdojo.dialect.canonical import canonicalize
from pdojo.dialect.flow.program import Program
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation import parse_notation
from pdojo.dialect.notation.index import parse_index
from pdojo.dialect.ops import KernelOp
from pdojo.transforms.apply import Applied, apply
from pdojo.transforms.base import Transformation, kind_of, spelled
from pdojo.transforms.move import Move
from pdojo.transforms.registry import TRANSFORMATION_NAMES, transformation

EXTENTS = {"N": 8, "M": 4}
"""Extents that the letters stand for when an example runs."""

TEMPORARIES = ("t", "p")
"""Names of temporaries in examples."""

PERMITTED = f"numerics {' '.join(n for n in Numerics if n is not Numerics.EXACT)}"
"""Numerics classes that examples permit."""

_MOVE = re.compile(r"`(\w+@\S[^`]*)`:")
_ARROW = "-->"
DECLARATION = re.compile(r"([a-z]\w*) [a-z]+\d+ \[.*\] [a-z]+(?:![a-z_]+)*(?: const)?(?: -> (.*))?")
"""A declaration; the groups are its name and the arrays that share the memory."""
_ACCESS = re.compile(r"\b([a-z]\w*)\[([^\]]*)\]")
_HEAD = re.compile(r"((?:\d+(?::[a-z])?(?: where \([^)]*\))? ?)*)(.*)")
_GUARD = re.compile(r"where \([^)]*\)")
_SCOPE = re.compile(r"\d+")
_BODY = ("8", "| 4 t[{0},{1}] = x[{0},{1}]", "| 4 y[{0},{1}] = t[{0},{1}]")
"""The statements for an example that shows a declaration only."""


@dataclass(frozen=True)
class Example:
    """A move, and the lines of the notation before and after it."""

    move: Move
    before: tuple[str, ...]
    after: tuple[str, ...]
    machine: str

    def kernel(self) -> KernelOp:
        """A kernel with the lines before the move, in canonical form."""
        dtype = "f64" if machine(self.machine).snitch.stream_registers else "f32"
        kernel = parse_notation(kernel_text(_numbered(self.before), dtype), str(self.move))[0]
        canonicalize(kernel)
        return kernel

    def run(self) -> Applied:
        """Apply the move to that kernel."""
        return apply(Program(self.kernel(), machine(self.machine)), self.move)

    def expected(self) -> list[str]:
        """The lines after the move, as the program prints them."""
        return list(_numbered(self.after))


def example_of(cls: type[Transformation[Any]]) -> Example:
    """The example in a transformation's docstring. Raises ValueError if there is none, or its columns overlap."""
    paragraphs = _paragraphs(cls)
    for name, lines in pairwise(paragraphs):
        match = _MOVE.fullmatch(name)
        if match is None:
            continue
        column = next(line.index(_ARROW) for line in lines.splitlines() if _ARROW in line)
        if any(line[column : column + len(_ARROW)].strip(" ->") for line in lines.splitlines()):
            raise ValueError(f"the example of {cls.__name__}: text stands in the column of the arrow; move it aside")
        left = [line[:column].rstrip() for line in lines.splitlines()]
        right = [line[column + len(_ARROW) :].strip() for line in lines.splitlines()]
        sides = tuple(filter(None, left)), tuple(filter(None, right))
        return Example(Move.parse(match[1]), *sides, cls.example_machine)
    raise ValueError(f"the docstring of {cls.__name__} has no example")


def _paragraphs(cls: type[Transformation[Any]]) -> list[str]:
    return cleandoc(cls.__doc__ or "").split("\n\n")


def legality_of(cls: type[Transformation[Any]]) -> str:
    """The docstring's text after the example, which is about legality; '' if there is no example."""
    paragraphs = _paragraphs(cls)
    start = next((k for k, text in enumerate(paragraphs) if _MOVE.fullmatch(text)), len(paragraphs))
    return "\n\n".join(paragraphs[start + 2 :])


def _numbered(lines: Sequence[str]) -> Iterator[str]:
    """The lines with numbers in place of letters for extents."""
    return (re.sub(r"(?<!:)\b[NM]\b", lambda m: str(EXTENTS[m[0]]), line) for line in lines)


def kernel_text(lines: Iterable[str], dtype: str = "f32") -> str:
    """A kernel of these lines; undeclared arrays are declared by their uses, with elements of type `dtype`."""
    given = list(lines)
    matches = [match for line in given if (match := DECLARATION.fullmatch(line)) is not None]
    declared = [match.string for match in matches]
    tree = [line for line in given if line not in declared] or list(_BODY)
    shapes = _shapes(tree)
    known = {name for match in matches for name in (match[2] or match[1]).split(", ")}
    interface = [name for name in shapes if name not in TEMPORARIES and name not in known]
    written = [name for name in interface if any(_output(line) == name for line in tree)]
    rows = [f"{name} {dtype} {shapes[name]} heap" for name in shapes if name not in known]
    rows.sort(key=lambda row: row.split()[0] in TEMPORARIES)
    header = f"kernel example({', '.join(interface)}) -> ({', '.join(written)})"
    return "\n".join([header, PERMITTED, *rows, *declared, *tree]) + "\n"


def _output(line: str) -> str:
    """The array that a line writes; '' if it only opens scopes."""
    match = _ACCESS.match(_parts(line)[2])
    return "" if match is None else match[1]


def _parts(line: str) -> tuple[int, list[int], str]:
    """The number of bars of a line, the extents of its scopes, and its statement."""
    tree = line.lstrip("| ")
    match = _HEAD.fullmatch(tree)
    assert match is not None
    return (
        line[: len(line) - len(tree)].count("|"),
        [int(n) for n in _SCOPE.findall(_GUARD.sub("", match[1]))],
        match[2],
    )


def _shapes(tree: Sequence[str]) -> dict[str, list[int]]:
    """The smallest shapes that contain all accesses, keyed by array."""
    shapes: dict[str, list[int]] = {}
    chains: list[list[int]] = []
    for line in tree:
        level, own, statement = _parts(line)
        extents = [*(chains[level - 1] if level else ()), *own]
        chains[level:] = [extents]
        for name, index in _ACCESS.findall(statement):
            needed = [e.bounds(extents)[1] + 1 for e in parse_index(index, extents)]
            shapes[name] = [max(pair) for pair in zip(shapes.get(name, needed), needed, strict=True)]
    return shapes


def document() -> str:
    """The page: every transformation with its parameters, example, conditions and inverse."""
    return "\n".join([_INTRODUCTION, *(_section(transformation(name)) for name in TRANSFORMATION_NAMES)])


_INTRODUCTION = """# Moves

Generated from the docstrings: `python -m pdojo.transforms.document > docs/moves.md`.

A move is a transformation at a location: `name@location{parameter=value ...}`. See [locations.md](locations.md) for the
form of locations, [traces.md](traces.md) for replay, [numerics.md](numerics.md) for effects on rounding, and
[legality.md](legality.md) for the rules of legality. Parameters with a default may be left out. The inverse is the kind
of move that leads back if one does: not always in programs with guards and divisions, after a move that deletes an
array, or without a mapping that the machine lacks. `pdojo-opt --explain` says whether; undo, in contrast, replays the
trace and is exact.
"""

_SITES = {"Scope": "a scope", "Leaf": "an op", "Array": "an array", "Dimension": "a dimension of an array"}


def _section(cls: type[Transformation[Any]]) -> str:
    example = example_of(cls)
    summary, *rest = _paragraphs(cls)
    legality = rest[2:]
    back = example.run().inverse
    assert back is not None, f"no move leads back from the example of {cls.name}"
    parts = [f"## {cls.name}", "", summary, "", f"- location: {_site(cls)}", f"- inverse: `{back.name}`"]
    parts += [*_parameters(cls), ""]
    shown = ["```text", f"{example.move}:", *(f"  {line}" for line in example.before), "-->"]
    shown += [*(f"  {line}" for line in example.after), "```", ""]
    return "\n".join([*parts, *shown, "\n\n".join(legality), ""] if legality else [*parts, *shown])


def _site(cls: type[Transformation[Any]]) -> str:
    kinds = cls.site if isinstance(cls.site, tuple) else (cls.site,)
    return " or ".join(_SITES[kind.__name__] for kind in kinds)


def _parameters(cls: type[Transformation[Any]]) -> Iterator[str]:
    for parameter in fields(cls):
        kind = kind_of(parameter)
        need = "" if parameter.default is not MISSING else ", needed"
        yield f"- `{spelled(parameter.name)}`: {kind}{need}"


if __name__ == "__main__":
    sys.stdout.write(document())
