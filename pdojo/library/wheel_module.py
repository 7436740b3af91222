"""The Python module of a generated library: a typed function with a docstring for each operator."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from pdojo.kernels.workload import size_text
from pdojo.library.client.arrays import DTYPES
from pdojo.library.manifest import Manifest, is_open
from pdojo.library.model_plan import ModelPlan
from pdojo.library.records import Array, Entry

_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
"""The name of a size in an extent."""
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
    """An operator and its entries, or a model, for Python."""

    name: str
    entries: tuple[Entry, ...]
    plan: ModelPlan | None = None
    """The model; None for an operator."""

    @property
    def sizes(self) -> tuple[str, ...]:
        """The names of the size arguments."""
        return tuple(self.entries[0].sizes)

    @property
    def arrays(self) -> tuple[Array, ...]:
        """The arrays, at the sizes of the first entry."""
        return self.entries[0].arrays

    @cached_property
    def unclear(self) -> tuple[str, ...]:
        """The sizes that the shapes of the inputs do not determine."""
        found: set[str] = set()
        for number, entry in enumerate(self.entries):
            told = {size for size, array, _ in places_of(entry) if entry.arrays[array].direction != "out"}
            own = zip(self.sizes, entry.sizes.values(), strict=True)
            found |= {name for k, (name, size) in enumerate(own) if isinstance(size, range) and k not in told}
            for other in self.entries[:number]:
                if not _differ(entry, other):
                    pairs = zip(self.sizes, entry.sizes.values(), other.sizes.values(), strict=True)
                    found |= {n for n, a, b in pairs if isinstance(a, int) and isinstance(b, int) and a != b}
        return tuple(name for name in self.sizes if name in found)


def places_of(entry: Entry) -> list[tuple[int, int, int]]:
    """Sizes by number, each with an array and a dimension of it whose extent is linear in this size; inputs first."""
    numbers = {name: number for number, name in enumerate(entry.sizes)}
    found: list[tuple[int, int, int]] = []
    for number, array in enumerate(entry.arrays):
        for dimension, extent in enumerate(array.shape):
            names = set(_NAME.findall(str(extent)))
            if len(names) == 1 and not {"/", "%"} & set(str(extent)):
                found.append((numbers[names.pop()], number, dimension))
    return sorted(found, key=lambda place: entry.arrays[place[1]].direction == "out")


def _differ(one: Entry, other: Entry) -> bool:
    """Whether the shapes of inputs tell for which of two entries they are."""
    shapes = [(a.shape, b.shape) for a, b in zip(one.arrays, other.arrays, strict=True) if a.direction != "out"]
    pairs = ((a, b) for first, second in shapes for a, b in zip(first, second, strict=True))
    return any(isinstance(a, int) and isinstance(b, int) and a != b for a, b in pairs)


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
    """The operators of a library, in the order of their first entries, then its models."""
    names = dict.fromkeys(entry.operator for entry in manifest.entries)
    found = [OperatorFacts(n, tuple(e for e in manifest.entries if e.operator == n)) for n in names]
    for plan in manifest.models:
        entry = Entry(plan.name, plan.name, plan.sizes, plan.arrays, (), "", ())
        found.append(OperatorFacts(plan.name, (entry,), plan))
    return found


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
        f"from .runtime import Library, LibraryError, {'Model, ' * bool(manifest.models)}Operator, Ranges, Served",
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
    yield f"_{own.name} = {'Operator' if own.plan is None else 'Model'}("
    parameters = Parameters.of(own)
    yield f'    _LIBRARY, "{own.name}", {parameters.sizes!r},'
    yield f"    ({''.join(f'Argument({a.name!r}, {a.dtype!r}, {a.direction!r}), ' for a in own.arrays).rstrip()}),"
    yield "    ("
    for entry in own.entries:
        yield f"        {_served(entry)},"
    yield "    ),"
    if own.plan is not None and own.plan.is_apart:
        yield f'    weights=str(Path(__file__).with_name("{own.name}.bin")),'
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
    for entry in own.entries[:_LISTED]:
        listed = ", ".join(f"{a.name} [{', '.join(map(str, a.shape))}]" for a in entry.arrays)
        yield f"    - {', '.join(map(size_text, entry.sizes.values()))}{': ' if entry.sizes else ''}{listed}"
    if len(own.entries) > _LISTED:
        yield f"    - and {len(own.entries) - _LISTED} more"
    yield '    """'


def _served(entry: Entry) -> str:
    """The sizes and shapes of an entry as an object of the client."""
    sizes, shapes = tuple(entry.sizes.values()), tuple(array.shape for array in entry.arrays)
    if not is_open(entry.sizes):
        return f"Served({sizes!r}, {shapes!r})"
    values = {name: f"s[{number}]" for number, name in enumerate(entry.sizes)}
    rows = (", ".join(_NAME.sub(lambda name: values[name[0]], str(extent)) for extent in shape) for shape in shapes)
    listed = ", ".join(f"({row}{',' * bool(row)})" for row in rows)
    return f"Ranges({sizes!r}, {shapes!r}, lambda s: ({listed},), {tuple(places_of(entry))!r})"
