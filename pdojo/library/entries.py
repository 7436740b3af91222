"""The entries of a specification: plain kernels at sizes, in the order of the library's tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from pdojo.backends.calling.arrays import parameters_of
from pdojo.backends.common.placement import plan_memory
from pdojo.dialect.flow.program import Program
from pdojo.dialect.machines.registry import host
from pdojo.dialect.notation import print_notation
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.rules.validate import validate
from pdojo.dialect.semantics.rounding import INTERFACE
from pdojo.dialect.view.build import nest_of
from pdojo.errors import PdojoError, UsageError
from pdojo.kernels import Workload
from pdojo.library.manifest import Array, Dispatch, entry_name, order_of
from pdojo.library.naming import TAKEN, operator_problem
from pdojo.library.rows import rows_problem
from pdojo.library.sources import KernelSource, SizedKernel, given_source
from pdojo.library.spec import LibrarySpec, OperatorSpec

_GIB = 1 << 30
MOST_ARRAYS = 32
"""Most arrays of an operator that serves any number of rows (`PD_MOST_ARRAYS` in `runtime.h`)."""


@dataclass(frozen=True)
class PlannedEntry:
    """An entry of a library before its programs are chosen."""

    name: str
    operator: str
    sizes: Mapping[str, int]
    kernel: KernelOp
    """The plain kernel."""
    arrays: tuple[Array, ...]
    dispatch: Dispatch = "exact"
    is_tuned: bool = True
    """False for a kernel that is compiled without a move."""
    source: Workload | str | None = None
    """The kernel at other sizes; None if there is none."""

    @property
    def text(self) -> str:
        """The plain kernel in the notation."""
        return print_notation(self.kernel)

    @property
    def workload(self) -> Workload | None:
        """The workload of a library kernel."""
        return self.source if isinstance(self.source, Workload) else None


def entries_of(
    spec: LibrarySpec, models: Iterable[tuple[str, KernelOp]] = (), most_bytes: int | None = None
) -> tuple[PlannedEntry, ...]:
    """The entries of a specification and of the kernels of models, sorted by operator and sizes.

    Raises UsageError, with the key of the specification, for kernels, shapes and types that do not fit, and for entries
    whose arrays take more than `most_bytes`; None is no limit.
    """
    found: list[PlannedEntry] = []
    for operator in spec.operators:
        try:
            made = _small(_entries(operator, KernelSource.of(operator, spec.folder)), most_bytes)
        except PdojoError as error:
            raise spec.error(f"{operator.key}: {error}") from None
        taken = {entry.operator for entry in found}
        twice = next((entry.operator for entry in made if entry.operator in taken), None)
        if twice is not None:
            raise spec.error(f"{operator.key}: there is an operator '{twice}' already; give one of them another 'name'")
        files = {entry.name for entry in found}
        twice = next((entry for entry in made if entry.name in files), None)
        if twice is not None:
            raise spec.error(
                f"{operator.key}: the kernel of '{twice.operator}' would have the file of another one, "
                f"'{twice.name}.pdojo'; give one of the operators another 'name'"
            )
        found += made
    found += _small(_of_models(models, {*TAKEN, *(entry.operator for entry in found)}), most_bytes)
    if not found:
        raise spec.error("the library has no operators; add [[operators]] to its specification, or name a model")
    return tuple(sorted(found, key=lambda entry: order_of(entry.operator, entry.dispatch, entry.sizes)))


def _small(entries: Iterable[PlannedEntry], most_bytes: int | None) -> list[PlannedEntry]:
    """The entries. Raises UsageError if the arrays of one take more bytes."""
    found: list[PlannedEntry] = []
    for entry in entries:
        size = sum(prod(array.shape) * INTERFACE[array.dtype].itemsize for array in entry.arrays)
        if most_bytes is not None and size > most_bytes:
            raise UsageError(
                f"the arrays of entry '{entry.name}' take {size / _GIB:.4g} GiB, and the check, which runs it, may use "
                f"{most_bytes / _GIB:.4g} GiB: three quarters of this computer's memory; choose smaller sizes"
            )
        found.append(entry)
    return found


def _entries(spec: OperatorSpec, source: KernelSource) -> Iterator[PlannedEntry]:
    """The entries of an operator for all its element types."""
    if not spec.shapes and not spec.plain and source.declared:
        raise UsageError(f"key 'shapes': missing; write numbers separated by x: {'x'.join(source.declared)}")
    for shapes in (spec.shapes, spec.plain):
        if len(set(shapes)) < len(shapes):
            raise UsageError("a shape is listed twice")
    for dtype in spec.dtypes or (None,):
        rows = [(source.sizes(shape), True) for shape in spec.shapes] + [(source.sizes(s), False) for s in spec.plain]
        if not source.declared:
            rows = [(dict[str, int](), True)]
        listed = [tuple(sizes.values()) for sizes, _ in rows]
        twice = next((each for each in listed if listed.count(each) > 1), None)
        if twice is not None:
            raise UsageError(f"the sizes {'x'.join(map(str, twice))} are listed twice")
        made = [(_sized(source, sizes, dtype), is_tuned) for sizes, is_tuned in rows]
        operator = _operator(spec.name or source.title, made[0][0])
        yield from (_entry(operator, each, "exact", is_tuned=is_tuned) for each, is_tuned in made)
        if spec.rows:
            yield from _row_entries(spec.rows, operator, source, dtype, [each for each, _ in made])


def _sized(source: KernelSource, sizes: Mapping[str, int], dtype: str | None) -> SizedKernel:
    """The plain kernel at sizes. Raises UsageError, which names them."""
    try:
        return source.at(sizes, dtype)
    except PdojoError as error:
        place = " ".join(filter(None, ("x".join(map(str, sizes.values())), dtype)))
        raise UsageError(f"{place}: {error}" if place else str(error)) from None


def _operator(name: str, kernel: SizedKernel) -> str:
    """The C function of a kernel without the library's prefix."""
    named = f"{name}_{kernel.element}" if kernel.element is not None else name
    problem = operator_problem(named.lower())
    if problem is not None:
        raise UsageError(f"{problem}; choose another name with key 'name'")
    return named.lower()


def _row_entries(
    rows: int, operator: str, source: KernelSource, dtype: str | None, made: Sequence[SizedKernel]
) -> Iterator[PlannedEntry]:
    """The chunk kernels and the one-row kernels of an operator: a pair for all other sizes that its shapes have."""
    if not source.declared:
        raise UsageError(f"key 'rows': '{source.title}' has fixed sizes")
    first = next(iter(source.declared))
    for others in dict.fromkeys(tuple(each.sizes.items())[1:] for each in made):
        problem = rows_problem(lambda count, fixed=others: source.at({first: count, **dict(fixed)}, dtype).kernel)
        if problem is not None:
            raise UsageError(f"key 'rows': the rows of '{source.title}' are not independent: {problem}")
        dispatches: tuple[tuple[int, Dispatch], ...] = ((rows, "chunk"), (1, "row"))
        for count, dispatch in dispatches:
            yield _entry(operator, source.at({first: count, **dict(others)}, dtype), dispatch)


def _entry(operator: str, sized: SizedKernel, dispatch: Dispatch, *, is_tuned: bool = True) -> PlannedEntry:
    name = entry_name(operator, sized.sizes.values(), dispatch)
    validate(Program(sized.kernel, host()))
    nest = nest_of(sized.kernel)
    if strided := [p.name for p in parameters_of(nest) if p.strides]:
        raise UsageError(f"'{operator}': '{strided[0]}' is strided, and libraries take dense arrays")
    arrays = tuple(Array(p.name, p.dtype, p.shape, p.intent.value) for p in parameters_of(nest))
    if dispatch != "exact" and len(arrays) > MOST_ARRAYS:
        raise UsageError(f"key 'rows': '{operator}' has {len(arrays)} arrays, and rows are for at most {MOST_ARRAYS}")
    if not is_tuned:
        # A plain kernel has no move that could make a buffer fit.
        plan_memory(nest)
    return PlannedEntry(name, operator, sized.sizes, sized.kernel, arrays, dispatch, is_tuned, sized.source)


def _of_models(models: Iterable[tuple[str, KernelOp]], taken: set[str]) -> Iterator[PlannedEntry]:
    """An operator without size arguments for every different kernel of models."""
    seen: set[str] = set()
    for _, kernel in models:
        sized = given_source(kernel).at({}, None)
        text = print_notation(sized.kernel)
        if text in seen:
            continue
        seen.add(text)
        base = re.sub(r"[^a-z0-9_]", "_", kernel.sym_name.data.lower()).lstrip("_0123456789")[:56] or "kernel"
        name, number = base, 2
        while name in taken:
            name, number = f"{base}_{number}", number + 1
        taken.add(name)
        entry = _entry(name, sized, "exact")
        yield replace(entry, source=text)
