"""The generated C of a library: tables of entries and variants, its functions, and the list of exported symbols."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import prod

from pdojo.backends.c.spelling import C_TYPES
from pdojo.backends.calling.arrays import Parameter, parameters_of
from pdojo.dialect.affine import Expr, Lookup, Size, const
from pdojo.dialect.functions import byte_width
from pdojo.dialect.table import Outside
from pdojo.dialect.view.build import nest_of
from pdojo.library.entries import PlannedEntry
from pdojo.library.features import feature_tests, state_of
from pdojo.library.interface import Operator, header_text, operators_of
from pdojo.library.levels import TILES, Level
from pdojo.library.manifest import is_open, major
from pdojo.library.model_code import declared, functions_of, levels_text, model_text
from pdojo.library.models import PlannedModel
from pdojo.library.naming import FUNCTIONS, licence_line
from pdojo.library.program_facts import Programs
from pdojo.library.records import range_of
from pdojo.library.spec import LibrarySpec

_MACROS = {"x86_64": "__x86_64__", "aarch64": "__aarch64__", "riscv64": "__riscv"}


@dataclass(frozen=True)
class Sources:
    """The generated files."""

    header: str
    dispatch: str
    exports: str
    """A version script for the linker."""


def sources_of(
    spec: LibrarySpec,
    levels: Sequence[Level],
    entries: Sequence[PlannedEntry],
    models: Sequence[PlannedModel],
    programs: Programs,
) -> Sources:
    """The C of a library; equal arguments give equal texts."""
    operators = operators_of(entries)
    names = [*FUNCTIONS, *(each.name for each in operators), *functions_of(models)]
    exports = "".join(f"    {spec.prefix}_{name};\n" for name in names)
    node = f"{spec.prefix.upper()}_{major(spec.version)}"
    return Sources(
        header_text(spec, operators, [declared(each, spec.prefix) for each in models]),
        "\n".join(_dispatch(spec, levels, operators, models, programs)) + "\n",
        f"{node} {{\n  global:\n{exports}  local: *;\n}};\n",
    )


def _dispatch(
    spec: LibrarySpec,
    levels: Sequence[Level],
    operators: Sequence[Operator],
    models: Sequence[PlannedModel],
    programs: Programs,
) -> Iterator[str]:
    prefix, upper = spec.prefix, spec.prefix.upper()
    yield licence_line(spec.licence)
    yield f'#include "{spec.name}.h"\n#include "runtime.h"\n\n#include <string.h>\n'
    for entry in (kernel for model in models for kernel in model.kernels):
        if entry.checked_indices:
            yield from _refuses(entry)
    yield "/* Levels, best first, and the programs for each of them. */\n"
    for number, (architecture, group) in enumerate(groupby(levels, lambda level: level.machine.architecture)):
        yield f"#{'el' if number else ''}if defined({_MACROS[architecture]})"
        own = list(group)
        yield from _programs(own, operators, programs)
        for model in models:
            yield from levels_text(model, own, programs)
    yield '#else\n#error "the library has no programs for this architecture"\n#endif\n'
    shapes = sorted({_call_shape(entry) for operator in operators for entry in operator.entries})
    yield from (_caller(*shape) for shape in shapes)
    for operator in operators:
        yield from _tables(operator, levels, programs)
    yield '#define API __attribute__((visibility("default")))\n'
    count = "(int)(sizeof levels / sizeof levels[0])"
    yield f"API int {prefix}_create({prefix}_handle **out, int threads) {{"
    yield f"  return pd_create((pd_handle **)out, threads, NULL, levels, {count});\n}}\n"
    yield f"API int {prefix}_create_level({prefix}_handle **out, int threads, const char *level) {{"
    yield f"  return level == NULL ? PD_NULL : pd_create((pd_handle **)out, threads, level, levels, {count});\n}}\n"
    yield f"API void {prefix}_destroy({prefix}_handle *handle) {{ pd_destroy((pd_handle *)handle); }}"
    yield f"API const char *{prefix}_message(int code) {{ return pd_message(code); }}"
    yield f"API const char *{prefix}_version(void) {{ return {upper}_VERSION; }}"
    yield f"API const char *{prefix}_level(const {prefix}_handle *handle) {{"
    yield "  return pd_level_name((const pd_handle *)handle);\n}\n"
    for operator in operators:
        yield _function(operator, prefix)
    for number, model in enumerate(models):
        yield from model_text(model, number, len(models), prefix)


def _programs(levels: Sequence[Level], operators: Sequence[Operator], programs: Programs) -> Iterator[str]:
    """Declarations of the kernels, the levels, and the variants of each entry, for an architecture."""
    for entry in (each for operator in operators for each in operator.entries):
        for level in levels:
            for number in (0, 1):
                program = programs.get((entry.name, level.name, number))
                if program is not None:
                    sizes = ["int64_t"] * len(entry.kernel.known_sizes())
                    arguments = ", ".join([*["void *"] * len(entry.arrays), *sizes, "void *"])
                    yield f"PD_HIDDEN void {program.symbol}({arguments}, int32_t);"
    for number, level in enumerate(levels):
        tests = ", ".join(f"{{{t.leaf:#x}, {t.subleaf}, {t.register}, {t.bit}}}" for t in feature_tests(level.machine))
        yield f"static const pd_test tests_{number}[] = {{{tests or '{0, 0, 0, 0}'}}};"
    yield "static const pd_level levels[] = {"
    for number, level in enumerate(levels):
        described = level.machine
        width = max(described.vector_bytes, default=0) if described.architecture == "riscv64" else 0
        count, tiles = len(feature_tests(described)), int(TILES in described.features)
        yield f'  {{"{level.name}", tests_{number}, {count}, {state_of(described):#x}, {tiles}, {width}}},'
    yield "};"
    for entry in (each for operator in operators for each in operator.entries):
        rows = [_variant(programs, entry, level, number) for level in levels for number in (0, 1)]
        yield f"static const pd_variant {entry.name}_variants[] = {{\n  " + ",\n  ".join(rows) + "};"


def _variant(programs: Programs, entry: PlannedEntry, level: Level, number: int) -> str:
    # Without a variant of its own, the aligned one serves all arrays that are aligned to their elements.
    program = programs.get((entry.name, level.name, number)) or programs[entry.name, level.name, 0]
    shared, thread = program.workspace
    return f"{{(void (*)(void)){program.symbol}, {shared}, {thread}, {int(program.is_parallel)}}}"


def _call_shape(entry: PlannedEntry) -> tuple[int, tuple[int, ...]]:
    """The number of arrays, and the places of the sizes that the code takes among those of the operator."""
    places = {name: place for place, name in enumerate(entry.sizes)}
    return len(entry.arrays), tuple(places[name] for name in entry.kernel.known_sizes())


def _call_name(count: int, places: Sequence[int]) -> str:
    return "_".join(map(str, ("call", count, *places)))


def _caller(count: int, places: Sequence[int]) -> str:
    """A function that calls a kernel with so many arrays and the sizes at these places."""
    kind = ", ".join([*["void *"] * count, *["int64_t"] * len(places), "void *"])
    values = ", ".join([*(f"arrays[{k}]" for k in range(count)), *(f"sizes[{k}]" for k in places)])
    return (
        f"static void {_call_name(count, places)}(\n"
        "    const pd_variant *variant, void *const *arrays, const int64_t *sizes, void *workspace,\n"
        "    int32_t threads) {\n"
        "  (void)sizes;\n"
        f"  ((void (*)({kind}, int32_t))variant->run)({values}, workspace, threads);\n}}\n"
    )


def _tables(operator: Operator, levels: Sequence[Level], programs: Programs) -> Iterator[str]:
    """The sorted sizes of an operator, and its entries."""
    name, exact = operator.name, [entry for entry in operator.entries if not is_open(entry.sizes)]
    for entry in operator.entries:
        lines = ",\n  ".join(_arrays(entry, levels, programs))
        yield f"static const pd_array {entry.name}_arrays[] = {{\n  {lines}}};"
        if is_open(entry.sizes):
            yield from _of_ranges(entry)
        if entry.checked_indices:
            yield from _refuses(entry)
    yield f"static const int64_t {name}_sizes[] = {{{_numbers(entry.sizes.values() for entry in exact)}}};"
    entries = ",\n  ".join(map(_row, operator.entries))
    yield f"static const pd_entry {name}_entries[] = {{\n  {entries}}};"
    count, columns, arrays = len(exact), len(operator.first.sizes), len(operator.first.arrays)
    yield f"static const pd_operator {name}_dispatch = {{"
    yield f"  {name}_sizes, {name}_entries, {count}, {len(operator.entries) - count}, {columns}, {arrays}}};\n"


def _row(entry: PlannedEntry) -> str:
    ranges = f"{entry.name}_ranges, {entry.name}_measure" if is_open(entry.sizes) else "NULL, NULL"
    refuses = f"{entry.name}_refuses" if entry.checked_indices else "NULL"
    return f"{{{entry.name}_arrays, {entry.name}_variants, {_call_name(*_call_shape(entry))}, {ranges}, {refuses}}}"


def _of_ranges(entry: PlannedEntry) -> Iterator[str]:
    """The ranges of an entry's sizes, and a function that tells the bytes of its arrays."""
    ranges = [range_of(size) for size in entry.sizes.values()]
    rows = ", ".join(f"{{{each[0]}, {each[-1]}, {each.step}}}" for each in ranges)
    yield f"static const pd_range {entry.name}_ranges[] = {{{rows}}};"
    yield f"static void {entry.name}_measure(const int64_t *sizes, size_t *bytes) {{"
    for number, parameter in enumerate(parameters_of(nest_of(entry.kernel))):
        factors = [*_extents(entry, parameter), str(byte_width(parameter.dtype))]
        yield f"  bytes[{number}] = (size_t)({'*'.join(factors)});"
    yield "}"


def _extents(entry: PlannedEntry, parameter: Parameter) -> list[str]:
    """The extents of an array in C."""
    extents = parameter.extents or [const(extent) for extent in parameter.shape]
    return [_in_c(entry, extent) for extent in extents]


def _in_c(entry: PlannedEntry, expression: Expr) -> str:
    """An expression of an entry's sizes in C, with 64 bits."""

    def spelled(atom: Lookup | Size, _place: Sequence[str]) -> str:
        assert isinstance(atom, Size)
        return f"sizes[{list(entry.sizes).index(atom.name)}]"

    return f"({expression.render(str, '%', '/', spelled)})" if expression.terms else f"INT64_C({expression.constant})"


def _refuses(entry: PlannedEntry) -> Iterator[str]:
    """A function that tells whether an index is out of range."""
    yield f"static int {entry.name}_refuses(const int64_t *sizes, void *const *arrays) {{"
    yield "  (void)sizes;"
    for number, parameter in enumerate(parameters_of(nest_of(entry.kernel))):
        indices = parameter.indices
        if parameter.name in entry.checked_indices and indices is not None:
            last = _in_c(entry, indices.last)
            least = f"-{last} - 1" if indices.outside is Outside.WRAP and not indices.low else str(indices.low)
            kind = C_TYPES[indices.dtype]
            yield f"  for (int64_t k = 0; k < {'*'.join(_extents(entry, parameter)) or '1'}; k++) {{"
            yield f"    const int64_t index = ((const {kind} *)arrays[{number}])[k];"
            yield f"    if (index < {least} || index > {last}) return 1;"
            yield "  }"
    yield "  return 0;"
    yield "}"


def _numbers(rows: Iterable[Iterable[object]]) -> str:
    return ", ".join(str(number) for row in rows for number in row) or "0"


def _arrays(entry: PlannedEntry, levels: Sequence[Level], programs: Programs) -> Iterator[str]:
    """Bytes, alignments of both variants, and use of each array."""
    first = levels[0].name
    aligned = programs[entry.name, first, 0].alignments
    others = programs.get((entry.name, first, 1), programs[entry.name, first, 0]).alignments
    parameters = parameters_of(nest_of(entry.kernel))
    for parameter, most, least in zip(parameters, aligned, others, strict=True):
        size = prod(parameter.shape) * byte_width(parameter.dtype)
        yield f"{{{size}, {most - 1}, {least - 1}, {int(parameter.written)}}}"


def _function(operator: Operator, prefix: str) -> str:
    parameters, sizes, arrays = operator.parameters(prefix)
    pointers = ", ".join(f"(void *){name}" for name in arrays)
    keys = ", ".join(sizes) or "0"
    return (
        f"API int {prefix}_{operator.name}({parameters}) {{\n"
        f"  const int64_t sizes[] = {{{keys}}};\n"
        f"  void *const arrays[] = {{{pointers}}};\n"
        f"  size_t bytes[{len(arrays)}];\n"
        f"  return pd_run((pd_handle *)handle, &{operator.name}_dispatch, sizes, arrays, bytes);\n}}\n"
    )
