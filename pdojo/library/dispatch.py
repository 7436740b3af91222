"""The generated C of a library: tables of entries and variants, its functions, and the list of exported symbols."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import prod

from pdojo.dialect.functions import byte_width
from pdojo.library.entries import PlannedEntry
from pdojo.library.features import feature_tests, state_of
from pdojo.library.interface import Operator, header_text, operators_of
from pdojo.library.levels import TILES, Level
from pdojo.library.manifest import major
from pdojo.library.naming import FUNCTIONS, licence_line
from pdojo.library.spec import LibrarySpec

_MACROS = {"x86_64": "__x86_64__", "aarch64": "__aarch64__", "riscv64": "__riscv"}


@dataclass(frozen=True)
class EntryProgram:
    """The compiled program of an entry for a level and an alignment."""

    symbol: str
    workspace: tuple[int, int]
    is_parallel: bool
    alignments: tuple[int, ...]
    """Bytes to which callers align each array."""


Programs = Mapping[tuple[str, str, int], EntryProgram]
"""Programs by names of entry and level, and number of the variant: 0 for aligned arrays, 1 for others."""


@dataclass(frozen=True)
class Sources:
    """The generated files."""

    header: str
    dispatch: str
    exports: str
    """A version script for the linker."""


def sources_of(
    spec: LibrarySpec, levels: Sequence[Level], entries: Sequence[PlannedEntry], programs: Programs
) -> Sources:
    """The C of a library; equal arguments give equal texts."""
    operators = operators_of(entries)
    names = [*FUNCTIONS, *(each.name for each in operators)]
    exports = "".join(f"    {spec.prefix}_{name};\n" for name in names)
    node = f"{spec.prefix.upper()}_{major(spec.version)}"
    return Sources(
        header_text(spec, operators),
        "\n".join(_dispatch(spec, levels, operators, programs)) + "\n",
        f"{node} {{\n  global:\n{exports}  local: *;\n}};\n",
    )


def _dispatch(
    spec: LibrarySpec, levels: Sequence[Level], operators: Sequence[Operator], programs: Programs
) -> Iterator[str]:
    prefix, upper = spec.prefix, spec.prefix.upper()
    yield licence_line(spec.licence)
    yield f'#include "{spec.name}.h"\n#include "runtime.h"\n'
    yield "/* Levels, best first, and the programs for each of them. */\n"
    for number, (architecture, group) in enumerate(groupby(levels, lambda level: level.machine.architecture)):
        yield f"#{'el' if number else ''}if defined({_MACROS[architecture]})"
        yield from _programs(list(group), operators, programs)
    yield '#else\n#error "the library has no programs for this architecture"\n#endif\n'
    for count in sorted({len(each.first.arrays) for each in operators}):
        yield _caller(count)
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


def _programs(levels: Sequence[Level], operators: Sequence[Operator], programs: Programs) -> Iterator[str]:
    """Declarations of the kernels, the levels, and the variants of each entry, for an architecture."""
    for entry in (each for operator in operators for each in operator.entries):
        for level in levels:
            for number in (0, 1):
                program = programs.get((entry.name, level.name, number))
                if program is not None:
                    arguments = ", ".join(["void *"] * (len(entry.arrays) + 1))
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


def _caller(count: int) -> str:
    """A function that calls a kernel with so many arrays."""
    kind = ", ".join(["void *"] * (count + 1))
    arrays = ", ".join(f"arrays[{k}]" for k in range(count))
    return (
        f"static void call_{count}(\n"
        "    const pd_variant *variant, void *const *arrays, void *workspace, int32_t threads) {\n"
        f"  ((void (*)({kind}, int32_t))variant->run)({arrays}, workspace, threads);\n}}\n"
    )


def _tables(operator: Operator, levels: Sequence[Level], programs: Programs) -> Iterator[str]:
    """The sorted sizes of an operator, its entries, and its families of rows."""
    name = operator.name
    exact, chunks, rows = (operator.of(dispatch) for dispatch in ("exact", "chunk", "row"))
    moving = {entry.name: _moving(*pair) for pair in zip(chunks, rows, strict=True) for entry in pair}
    for entry in operator.entries:
        lines = ",\n  ".join(_arrays(entry, levels, programs, moving.get(entry.name)))
        yield f"static const pd_array {entry.name}_arrays[] = {{\n  {lines}}};"
    yield f"static const int64_t {name}_sizes[] = {{{_numbers(entry.sizes.values() for entry in exact)}}};"
    entries = ",\n  ".join(_pair(entry) for entry in exact)
    yield f"static const pd_entry {name}_entries[] = {{\n  {entries}}};"
    if rows:
        others = _numbers(list(entry.sizes.values())[1:] for entry in rows)
        yield f"static const int64_t {name}_family_sizes[] = {{{others}}};"
        pairs = zip(chunks, rows, strict=True)
        families = ",\n  ".join(f"{{{next(iter(c.sizes.values()))}, {_pair(c)}, {_pair(r)}}}" for c, r in pairs)
        yield f"static const pd_family {name}_families[] = {{\n  {families}}};"
    count, columns, arrays = len(exact), len(operator.first.sizes), len(operator.first.arrays)
    family = f"{name}_family_sizes, {name}_families, {len(rows)}" if rows else "NULL, NULL, 0"
    yield f"static const pd_operator {name}_dispatch = {{"
    yield f"  {name}_sizes, {name}_entries, {count}, {columns}, {arrays}, call_{arrays}, {family}}};\n"


def _pair(entry: PlannedEntry) -> str:
    return f"{{{entry.name}_arrays, {entry.name}_variants}}"


def _numbers(rows: Iterable[Iterable[int]]) -> str:
    return ", ".join(str(number) for row in rows for number in row) or "0"


def _moving(chunk: PlannedEntry, row: PlannedEntry) -> list[bool]:
    """Whether each array has rows: its shape then differs between the chunk kernel and the one-row kernel."""
    return [one.shape != other.shape for one, other in zip(chunk.arrays, row.arrays, strict=True)]


def _arrays(
    entry: PlannedEntry, levels: Sequence[Level], programs: Programs, moving: Sequence[bool] | None
) -> Iterator[str]:
    """Bytes, bytes of a row, alignments of both variants, and use of each array."""
    first = levels[0].name
    aligned = programs[entry.name, first, 0].alignments
    others = programs.get((entry.name, first, 1), programs[entry.name, first, 0]).alignments
    count = next(iter(entry.sizes.values()), 1)
    has_rows = moving or [False] * len(entry.arrays)
    for array, most, least, moves in zip(entry.arrays, aligned, others, has_rows, strict=True):
        size = prod(array.shape) * byte_width(array.dtype)
        written = int(array.direction != "in")
        yield f"{{{size}, {size // count if moves else 0}, {most - 1}, {least - 1}, {written}}}"


def _function(operator: Operator, prefix: str) -> str:
    parameters, sizes, arrays = operator.parameters(prefix)
    pointers = ", ".join(f"(void *){name}" for name in arrays)
    keys = ", ".join(sizes) or "0"
    return (
        f"API int {prefix}_{operator.name}({parameters}) {{\n"
        f"  const int64_t sizes[] = {{{keys}}};\n"
        f"  void *const arrays[] = {{{pointers}}};\n"
        f"  return pd_run((pd_handle *)handle, &{operator.name}_dispatch, sizes, arrays);\n}}\n"
    )
