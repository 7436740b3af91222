"""The entries of a specification: plain kernels at sizes, in the order of the library's tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from pdojo.backends.calling.arrays import array_bytes, parameters_of
from pdojo.backends.common.placement import plan_memory
from pdojo.dialect.flow.program import Program
from pdojo.dialect.machines.registry import host
from pdojo.dialect.notation import parse_notation, print_notation
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.rules.validate import validate
from pdojo.dialect.view.build import nest_of
from pdojo.errors import PdojoError, UsageError
from pdojo.kernels import Workload
from pdojo.kernels.workload import size_text
from pdojo.library.manifest import entry_name, is_open, order_of
from pdojo.library.naming import TAKEN, operator_problem, word_of
from pdojo.library.records import Array, Sizes
from pdojo.library.sources import KernelSource, SizedKernel, given_source
from pdojo.library.spec import MOST_ROWS, LibrarySpec, OperatorSpec
from pdojo.passes.versions import advised_versions

_GIB = 1 << 30
MEASURED = 1 << 28
"""Most bytes of arrays at the greatest sizes of an entry whose program is timed, if calls choose sizes."""


@dataclass(frozen=True)
class PlannedEntry:
    """An entry of a library before its programs are chosen."""

    name: str
    operator: str
    sizes: Sizes
    kernel: KernelOp
    """The plain kernel."""
    arrays: tuple[Array, ...]
    is_tuned: bool = True
    """False for a kernel that is compiled without a move."""
    source: Workload | str | None = None
    """The kernel at other sizes; None if there is none."""
    is_part: bool = False
    """Whether it is a kernel of a model, which keeps its constants, and gets aligned arrays only."""

    @property
    def text(self) -> str:
        """The plain kernel in the notation."""
        return print_notation(self.kernel)

    @property
    def is_timed(self) -> bool:
        """Whether the program may be chosen by measurements, which take arrays of the greatest sizes."""
        return self.is_tuned and (not is_open(self.sizes) or whole_bytes(self.kernel) <= MEASURED)

    @property
    def checked_indices(self) -> frozenset[str]:
        """The arrays of indices that a call refuses if one is out of range."""
        found = self.kernel.index_arrays().values()
        return frozenset(each.name for each in found if each.outside.is_checked)

    @property
    def workload(self) -> Workload | None:
        """The workload of a library kernel."""
        return self.source if isinstance(self.source, Workload) else None


def entries_of(
    spec: LibrarySpec,
    models: Iterable[tuple[str, KernelOp]] = (),
    most_bytes: int | None = None,
    *,
    has_models: bool = False,
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
    if not found and not has_models:
        raise spec.error("the library has no operators; add [[operators]] to its specification, or name a model")
    return tuple(sorted(found, key=lambda entry: order_of(entry.operator, entry.sizes)))


def _small(entries: Iterable[PlannedEntry], most_bytes: int | None) -> list[PlannedEntry]:
    """The entries. Raises UsageError if the arrays of one take more bytes."""
    found: list[PlannedEntry] = []
    for entry in entries:
        size = array_bytes(nest_of(entry.kernel), {size.name: size.low for size in entry.kernel.known_sizes().values()})
        if most_bytes is not None and size > most_bytes:
            raise UsageError(
                f"the arrays of entry '{entry.name}' take {size / _GIB:.4g} GiB, and the check, which runs it, may use "
                f"{most_bytes / _GIB:.4g} GiB: three quarters of this computer's memory; choose smaller sizes"
            )
        found.append(entry)
    return found


def _entries(spec: OperatorSpec, source: KernelSource) -> Iterator[PlannedEntry]:
    """The entries of an operator for all its element types."""
    rows = _rows(spec, source)
    for dtype in spec.dtypes or (None,):
        made = [(_sized(source, sizes, dtype), is_tuned) for sizes, is_tuned in rows]
        operator = _operator(spec.name or source.title, made[0][0])
        for sized, is_tuned in _and_parts(source, made, dtype):
            yield _entry(operator, sized, is_tuned=is_tuned)


def _and_parts(
    source: KernelSource, made: Iterable[tuple[SizedKernel, bool]], dtype: str | None
) -> Iterable[tuple[SizedKernel, bool]]:
    """Kernels at sizes, each with whether it is tuned, and those that are at the parts of ranges; each once."""
    found = {tuple(sized.sizes.values()): (sized, is_tuned) for sized, is_tuned in made}
    for whole in [sized for sized, is_tuned in found.values() if is_tuned]:
        for part in _parts(whole.kernel):
            sized = _sized(source, {**whole.sizes, **part}, dtype)
            found.setdefault(tuple(sized.sizes.values()), (sized, True))
    return found.values()


def _rows(spec: OperatorSpec, source: KernelSource) -> list[tuple[Sizes, bool]]:
    """The sizes of an operator, each with whether its program is tuned. Raises UsageError."""
    if not spec.shapes and not spec.plain and not all(isinstance(size, range) for size in source.declared.values()):
        raise UsageError(f"key 'shapes': missing; write numbers separated by x: {'x'.join(source.declared)}")
    for shapes in (spec.shapes, spec.plain):
        if len(set(shapes)) < len(shapes):
            raise UsageError("a shape is listed twice")
    rows: list[tuple[Sizes, bool]] = [(source.sizes(shape), True) for shape in spec.shapes]
    rows += [(source.sizes(shape), False) for shape in spec.plain]
    rows = rows or [(source.declared, True)]
    listed = [tuple(sizes.values()) for sizes, _ in rows]
    twice = next((each for each in listed if listed.count(each) > 1), None)
    if twice is not None:
        raise UsageError(f"the sizes {'x'.join(map(size_text, twice))} are listed twice")
    if not spec.rows:
        return rows
    if not source.declared:
        raise UsageError(f"key 'rows': '{source.title}' has fixed sizes")
    first = next(iter(source.declared))
    return rows + [({**sizes, first: range(1, MOST_ROWS + 1)}, True) for sizes, _ in rows]


def _parts(kernel: KernelOp) -> Iterator[Sizes]:
    """Parts of the ranges of sizes that have programs of their own: those that are better there, or can be measured."""
    advised = advised_versions(kernel, host())
    for nest in () if advised is None else advised.nests[:-1]:
        yield {size.name: size.values for size in nest.sizes.values()}
    ranges = halved(kernel, lambda values: array_bytes(nest_of(kernel), values) <= MEASURED)
    if array_bytes(nest_of(kernel), {name: each[-1] for name, each in ranges.items()}) <= MEASURED:
        yield ranges


def _sized(source: KernelSource, sizes: Sizes, dtype: str | None) -> SizedKernel:
    """The plain kernel at sizes. Raises UsageError, which names them."""
    try:
        return source.at(sizes, dtype)
    except PdojoError as error:
        place = " ".join(filter(None, ("x".join(map(size_text, sizes.values())), dtype)))
        raise UsageError(f"{place}: {error}" if place else str(error)) from None


def _operator(name: str, kernel: SizedKernel) -> str:
    """The C function of a kernel without the library's prefix."""
    named = f"{name}_{kernel.element}" if kernel.element is not None else name
    problem = operator_problem(named.lower())
    if problem is not None:
        raise UsageError(f"{problem}; choose another name with key 'name'")
    return named.lower()


def _entry(operator: str, sized: SizedKernel, *, is_tuned: bool = True) -> PlannedEntry:
    name = entry_name(operator, sized.sizes)
    validate(Program(sized.kernel, host()))
    nest = nest_of(sized.kernel)
    if strided := [p.name for p in parameters_of(nest) if p.strides]:
        raise UsageError(f"'{operator}': '{strided[0]}' is strided, and libraries take dense arrays")
    if not is_tuned:
        # A plain kernel has no move that could make a buffer fit.
        plan_memory(nest)
    return PlannedEntry(name, operator, sized.sizes, sized.kernel, arrays_of(sized.kernel), is_tuned, sized.source)


def planned_part(name: str, kernel: KernelOp) -> PlannedEntry:
    """The entry of a kernel of a model."""
    # Parsed again: traces store the identifiers of the program as printed.
    (parsed,) = parse_notation(print_notation(kernel), name)
    sizes = {size.name: size.values for size in parsed.known_sizes().values()}
    return PlannedEntry(entry_name(name, sizes), name, sizes, parsed, arrays_of(parsed), is_part=True)


def arrays_of(kernel: KernelOp) -> tuple[Array, ...]:
    """The interface of a kernel as manifests have it."""
    rows = [
        (p, [e.constant if e.is_constant else e.render(str) for e in p.extents]) for p in parameters_of(nest_of(kernel))
    ]
    return tuple(Array(p.name, p.dtype, tuple(extents) or p.shape, p.intent.value) for p, extents in rows)


def halved(kernel: KernelOp, fits: Callable[[Mapping[str, int]], bool]) -> dict[str, range]:
    """The ranges of a kernel's sizes, the widest halved until the greatest values fit, or none has two values."""
    ranges = {size.name: size.values for size in kernel.known_sizes().values()}
    while not fits({name: each[-1] for name, each in ranges.items()}):
        wide = max(ranges, key=lambda name: len(ranges[name]), default="")
        if not wide or len(ranges[wide]) == 1:
            break
        ranges[wide] = ranges[wide][: (len(ranges[wide]) + 1) // 2]
    return ranges


def whole_bytes(kernel: KernelOp) -> int:
    """Bytes of the interface arrays of a kernel at its greatest sizes."""
    return array_bytes(nest_of(kernel), {size.name: size.high for size in kernel.known_sizes().values()})


def _of_models(models: Iterable[tuple[str, KernelOp]], taken: set[str]) -> Iterator[PlannedEntry]:
    """An operator for every different kernel of models, with its parts; one of constant sizes takes none."""
    seen: set[str] = set()
    for _, kernel in models:
        source = given_source(kernel)
        sized = source.at(source.declared, None)
        text = print_notation(sized.kernel)
        if text in seen:
            continue
        seen.add(text)
        base = word_of(kernel.sym_name.data, "kernel")
        name, number = base, 2
        while name in taken:
            name, number = f"{base}_{number}", number + 1
        taken.add(name)
        for each, _ in _and_parts(source, [(sized, True)], None):
            yield _entry(name, each)
