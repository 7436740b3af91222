"""The Python module of a generated library: a typed function with a docstring for each operator."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from pdojo.library.client.arrays import DTYPES
from pdojo.library.manifest import Array, Entry, Manifest

_LISTED = 20
"""Most sizes in a docstring."""
_OWN = ("LibraryError", "empty", "level", "set_threads")
"""Public names of the module besides operators."""
_TAKEN = frozenset((*keyword.kwlist, *_OWN, "annotations", "arrays", "overload", "runtime"))
"""Names that no function of an operator has."""


def module_name(manifest: Manifest) -> str:
    """The name by which Python programs import the library."""
    return safe(re.sub(r"\W", "_", manifest.name))


def safe(name: str) -> str:
    """A name that is no keyword of Python, and no other name of the module."""
    return f"{name}_" if name in _TAKEN else name


@dataclass(frozen=True)
class OperatorFacts:
    """An operator and its entries, for Python."""

    name: str
    entries: tuple[Entry, ...]

    @property
    def sizes(self) -> tuple[str, ...]:
        """The names of the size arguments."""
        return tuple(self.entries[0].sizes)

    @property
    def arrays(self) -> tuple[Array, ...]:
        """The arrays, at the sizes of the first entry."""
        return self.entries[0].arrays

    @cached_property
    def served(self) -> list[tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]]:
        """The sizes, each with the shapes of the arrays; -1 is any number of rows."""
        rows = [e for e in self.entries if e.dispatch == "row"]
        chunks = [e for e in self.entries if e.dispatch == "chunk"]
        # Chunk and row of an operator for any number of rows differ in the places where the number stands.
        open_ = [(_open(r.sizes.values(), c.sizes.values()), _open_shapes(r, c)) for r, c in _pairs(rows, chunks)]
        exact = [(tuple(e.sizes.values()), tuple(a.shape for a in e.arrays)) for e in self.entries]
        covered = {e.name for e in (*rows, *chunks)}
        named = zip(self.entries, exact, strict=True)
        return [*open_, *(x for e, x in named if e.name not in covered and not any(_fits(x[0], o[0]) for o in open_))]

    @cached_property
    def unclear(self) -> tuple[str, ...]:
        """The sizes that the shapes of the inputs do not determine."""
        inputs = [k for k, a in enumerate(self.arrays) if a.direction != "out"]
        found: set[int] = set()
        for sizes, shapes in self.served:
            if not any(shapes[k][:1] == (-1,) for k in inputs):
                found |= {k for k, size in enumerate(sizes) if size < 0}
        for number, (sizes, shapes) in enumerate(self.served):
            for others, their in self.served[:number]:
                if all(shapes[k] == their[k] for k in inputs):
                    found |= {k for k, (a, b) in enumerate(zip(sizes, others, strict=True)) if a != b}
        return tuple(self.sizes[k] for k in sorted(found))


@dataclass(frozen=True)
class Parameters:
    """The parameters of an operator's function: names of Python, none of them twice."""

    inputs: tuple[str, ...]
    out: str
    sizes: tuple[str, ...]
    """A name for each size of the operator; only those of `OperatorFacts.unclear` are parameters."""

    @staticmethod
    def of(own: OperatorFacts) -> Parameters:
        """The parameters, named like the arrays and the sizes where possible."""
        # The function calls the object `_NAME`.
        taken = {f"_{own.name}"}

        def fresh(name: str) -> str:
            found = safe(name)
            while found in taken:
                found += "_"
            taken.add(found)
            return found

        inputs = tuple(fresh(a.name) for a in own.arrays if a.direction != "out")
        out = fresh("out")
        return Parameters(inputs, out, tuple(fresh(name) for name in own.sizes))


def operators(manifest: Manifest) -> list[OperatorFacts]:
    """The operators of a library, in the order of their first entries."""
    names = dict.fromkeys(entry.operator for entry in manifest.entries)
    return [OperatorFacts(n, tuple(e for e in manifest.entries if e.operator == n)) for n in names]


def _pairs(rows: Sequence[Entry], chunks: Sequence[Entry]) -> Iterator[tuple[Entry, Entry]]:
    """The entries for one row, each with the chunk of the same other dimensions."""
    for row in rows:
        rest = [a.shape[1:] for a in row.arrays]
        yield row, next(c for c in chunks if [a.shape[1:] for a in c.arrays] == rest)


def _fits(sizes: Sequence[int], pattern: Sequence[int]) -> bool:
    return all(wanted in (-1, size) for size, wanted in zip(sizes, pattern, strict=True))


def _open(row: Iterable[int], chunk: Iterable[int]) -> tuple[int, ...]:
    return tuple(a if a == b else -1 for a, b in zip(row, chunk, strict=True))


def _open_shapes(row: Entry, chunk: Entry) -> tuple[tuple[int, ...], ...]:
    return tuple(_open(a.shape, b.shape) for a, b in zip(row.arrays, chunk.arrays, strict=True))


def module_text(manifest: Manifest) -> str:
    """The file `__init__.py`."""
    own = operators(manifest)
    names = sorted([*_OWN, *(safe(o.name) for o in own)])
    head = [
        f'"""{manifest.name} {manifest.version}: tuned kernels as functions of arrays, generated by pdojo-lib.',
        "",
        "Arrays are C-contiguous NumPy arrays, or tensors of PyTorch on the CPU; nothing is copied. Several threads",
        "may call the functions at once. They are fastest with arrays that are aligned to 64 bytes, like those of",
        "`empty`, and all outputs that are not given.",
        '"""',
        "",
        "from __future__ import annotations",
        "",
        "from pathlib import Path",
        "from typing import TYPE_CHECKING, Any, TypeVar, overload",
        "",
        "from .arrays import Argument, Tensor, empty",
        "from .runtime import Library, LibraryError, Operator, Served",
        "",
        "if TYPE_CHECKING:",
        "    import numpy as np",
        "    from numpy.typing import NDArray",
        "",
        "__all__ = [",
        *(f'    "{name}",' for name in names),
        "]",
        f'__version__ = "{manifest.version}"',
        "",
        '_T = TypeVar("_T", bound=Tensor)',
        f'_LIBRARY = Library(str(Path(__file__).with_name("lib{manifest.name}.so")), "{manifest.prefix}")',
        "level, set_threads = _LIBRARY.level, _LIBRARY.set_threads",
    ]
    return "\n".join([*head, *(line for each in own for line in _operator(each))]) + "\n"


def _operator(own: OperatorFacts) -> Iterator[str]:
    yield ""
    yield f"_{own.name} = Operator("
    parameters = Parameters.of(own)
    yield f'    _LIBRARY, "{own.name}", {parameters.sizes!r},'
    yield f"    ({''.join(f'Argument({a.name!r}, {a.dtype!r}, {a.direction!r}), ' for a in own.arrays).rstrip()}),"
    yield "    ("
    for sizes, shapes in own.served:
        yield f"        Served({sizes!r}, {shapes!r}),"
    yield "    ),"
    yield ")"
    inputs = [a for a in own.arrays if a.direction != "out"]
    outputs = [a for a in own.arrays if a.direction == "out"]
    overloads = [[_numpy(a) for a in own.arrays], *([["_T"] * len(own.arrays)] if inputs else [])]
    for kinds in overloads:
        by_name = dict(zip((a.name for a in own.arrays), kinds, strict=True))
        results = _joined([by_name[a.name] for a in outputs])
        yield ""
        yield ""
        yield "@overload"
        yield f"{_signature(own, parameters, [by_name[a.name] for a in inputs], results)}: ..."
    yield ""
    yield ""
    yield f"{_signature(own, parameters, ['Any'] * len(inputs), 'Any', given='Any')}:"
    yield from _docstring(own, parameters, inputs, outputs)
    wanted = "".join(f", {name}={name}" for name in _unclear(own, parameters))
    given = "".join(f"{name}, " for name in parameters.inputs)
    yield f"    return _{own.name}(({given.rstrip()}), {parameters.out if outputs else 'None'}{wanted})"


def _unclear(own: OperatorFacts, parameters: Parameters) -> list[str]:
    """The sizes that are parameters."""
    return [new for name, new in zip(own.sizes, parameters.sizes, strict=True) if name in own.unclear]


def _signature(
    own: OperatorFacts, parameters: Parameters, kinds: Sequence[str], results: str, given: str | None = None
) -> str:
    listed = [f"{name}: {kind}" for name, kind in zip(parameters.inputs, kinds, strict=True)]
    if results != "None":
        listed.append(f"{parameters.out}: {given or f'{results} | None'} = None")
    if own.unclear:
        listed += ["*", *(f"{name}: int | None = None" for name in _unclear(own, parameters))]
    return f"def {safe(own.name)}({', '.join(listed)}) -> {results}"


def _numpy(array: Array) -> str:
    name = DTYPES[array.dtype]
    return f"NDArray[np.{'bool_' if name == 'bool' else name}]"


def _joined(kinds: Sequence[str]) -> str:
    if not kinds:
        return "None"
    return kinds[0] if len(kinds) == 1 else f"tuple[{', '.join(kinds)}]"


def _docstring(
    own: OperatorFacts, parameters: Parameters, inputs: Sequence[Array], outputs: Sequence[Array]
) -> Iterator[str]:
    results = ", ".join(f"{a.name} {a.dtype}" for a in outputs)
    yield f'    """{own.name}({", ".join(f"{a.name} {a.dtype}" for a in inputs)}) -> ({results}).'
    yield ""
    changed = [a.name for a in inputs if a.direction == "inout"]
    if changed:
        yield f"    The call changes {', '.join(changed)}."
    if outputs:
        listed = ", ".join(a.name for a in outputs)
        yield f"    `{parameters.out}` is the memory for {listed}; new memory if it is None."
    if own.unclear:
        yield f"    Give {', '.join(_unclear(own, parameters))} where sizes share the shapes of the inputs."
    yield "    Raises TypeError or ValueError for arrays that do not fit, LibraryError for a code of the library."
    yield ""
    heading = ", ".join(parameters.sizes)
    yield f"    Shapes by sizes ({heading}):" if heading else "    Shapes:"
    yield ""
    for sizes, shapes in own.served[:_LISTED]:
        named = zip(own.arrays, shapes, strict=True)
        listed = ", ".join(f"{a.name} [{', '.join(map(_number, shape))}]" for a, shape in named)
        yield f"    - {', '.join(map(_number, sizes))}{': ' if sizes else ''}{listed}"
    if len(own.served) > _LISTED:
        yield f"    - and {len(own.served) - _LISTED} more"
    yield '    """'


def _number(value: int) -> str:
    return "any" if value < 0 else str(value)
