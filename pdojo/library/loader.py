"""The generated C that launches the programs of a GPU: tables for `device_loader.h`, and a header."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from pdojo.backends.c.names import Identifiers
from pdojo.backends.gpu.vendors import Vendor
from pdojo.library.entries import PlannedEntry
from pdojo.library.naming import licence_line

if TYPE_CHECKING:
    from pdojo.backends.gpu.program import DeviceProgram

_DYNAMIC_SHARED = 8
"""CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES (cuda.h)."""


@dataclass(frozen=True)
class LoadedEntry:
    """An entry with its compiled program."""

    entry: PlannedEntry
    file: str
    """The image, relative to the folder of images."""
    program: DeviceProgram


def loader_texts(name: str, stem: str, vendor: Vendor, entries: Sequence[LoadedEntry], licence: str) -> dict[str, str]:
    """The C file and the header that launch programs of a device, keyed by file name; C names begin with `stem`."""
    operators: dict[str, list[LoadedEntry]] = {}
    for each in entries:
        operators.setdefault(each.entry.operator, []).append(each)
    texts = {
        f"{stem}.h": _header(name, stem, vendor, operators),
        f"{stem}.c": _source(stem, vendor, entries, operators),
    }
    return {file: "\n".join([licence_line(licence), *lines]) + "\n" for file, lines in texts.items()}


def _parameters(stem: str, entry: PlannedEntry) -> tuple[list[str], list[str], str]:
    """The names of the sizes and arrays of an operator, and its parameters."""
    local = Identifiers(("library", "stream", "workspace", "sizes", "arrays"))
    sizes = [local.fresh(size) for size in entry.sizes]
    arrays = [local.fresh(array.name) for array in entry.arrays]
    listed = [*(f"int64_t {size}" for size in sizes), *(f"uint64_t {array}" for array in arrays)]
    return sizes, arrays, ", ".join([f"{stem} *library", "void *stream", "uint64_t workspace", *listed])


def _header(name: str, stem: str, vendor: Vendor, operators: Mapping[str, Sequence[LoadedEntry]]) -> Iterator[str]:
    upper = stem.upper()
    yield f"/* Programs of {name} for {vendor.devices}, as images beside this file."
    yield ""
    yield f"   cc -c {stem}.c; link with -ldl if the C library needs it. The driver's library is opened at run time."
    yield "   Arrays are addresses on the device, aligned to 64 bytes, dense, in row-major order. A function launches"
    yield "   work in a stream of the current context and returns at once: 0, a negative code of this file, or a code"
    yield "   of the driver. `workspace` is device memory of the bytes that the function of that name says, aligned to"
    yield "   256; calls that run at the same time need their own. One thread at a time may use a library. */"
    yield f"#ifndef {upper}_H\n#define {upper}_H\n#include <stddef.h>\n#include <stdint.h>\n"
    yield '#ifdef __cplusplus\nextern "C" {\n#endif\n'
    yield f"typedef struct {stem} {stem};\n"
    yield "/* `folder` has the images. They are loaded at the first call, into the context that is current then. */"
    yield f"int {stem}_open({stem} **out, const char *folder);"
    yield "/* The context of the calls must be current. */"
    yield f"void {stem}_close({stem} *library);"
    yield f"const char *{stem}_message(int code);\n"
    for operator, entries in operators.items():
        sizes, _, parameters = _parameters(stem, entries[0].entry)
        listed = ", ".join("x".join(map(str, each.entry.sizes.values())) for each in entries)
        if sizes:
            yield f"/* {' x '.join(sizes)}: {listed} */"
        yield f"int {stem}_{operator}({parameters});"
        yield f"size_t {stem}_{operator}_workspace({', '.join(f'int64_t {size}' for size in sizes) or 'void'});\n"
    yield "#ifdef __cplusplus\n}\n#endif\n#endif"


def _source(
    stem: str, vendor: Vendor, entries: Sequence[LoadedEntry], operators: Mapping[str, Sequence[LoadedEntry]]
) -> Iterator[str]:
    calls = vendor.calls
    attribute = vendor.extras.get("function_attribute")
    most = max(
        len(kernel.arrays) + 1 + len(values)
        for each in entries
        for number, _, values in each.program.sequence
        for kernel in (each.program.entries[number],)
    )
    yield f'#define PD_LIBRARY "{vendor.libraries[0]}"'
    for word, call in (("MODULE_LOAD", "module_load"), ("MODULE_UNLOAD", "module_unload"), ("FUNCTION", "function")):
        yield f'#define PD_{word} "{calls[call]}"'
    yield f'#define PD_LAUNCH "{calls["launch"]}"'
    yield f"#define PD_ATTRIBUTE {'NULL' if attribute is None else chr(34) + attribute[0] + chr(34)}"
    yield f"#define PD_DYNAMIC_SHARED {_DYNAMIC_SHARED}"
    yield f"#define PD_MOST_PARAMETERS {most}"
    yield f'#define PD_DEVICE {stem}\n#include "{stem}.h"\n#include "device_loader.h"\n'
    numbers = {id(each): number for number, each in enumerate(entries)}
    for each in entries:
        yield from _tables(each, numbers[id(each)])
    yield "static const pd_program programs[] = {"
    for each in entries:
        n, program = numbers[id(each)], each.program
        counts = f"kernels_{n}, {len(program.entries)}, launches_{n}, {len(program.sequence)}"
        yield f'  {{sizes_{n}, "{each.file}", {program.workspace_bytes}, {counts}, positions_{n}, values_{n}}},'
    yield "};\n"
    yield f"int {stem}_open({stem} **out, const char *folder) {{"
    yield "  return pd_open(out, folder, (int)(sizeof programs / sizeof programs[0]));\n}\n"
    yield f"void {stem}_close({stem} *library) {{ pd_close(library); }}\n"
    yield f"const char *{stem}_message(int code) {{ return pd_message(code); }}\n"
    for operator, group in operators.items():
        yield from _function(stem, operator, group, numbers[id(group[0])])


def _tables(each: LoadedEntry, n: int) -> Iterator[str]:
    program = each.program
    yield f"static const int64_t sizes_{n}[] = {{{_numbers(each.entry.sizes.values())}}};"
    yield f"static const int positions_{n}[] = {{{_numbers(chain.from_iterable(k.arrays for k in program.entries))}}};"
    yield f"static const int values_{n}[] = {{{_numbers(chain.from_iterable(v for _, _, v in program.sequence))}}};"
    yield f"static const pd_kernel kernels_{n}[] = {{"
    counts = {number: len(values) for number, _, values in program.sequence}
    first = 0
    for number, kernel in enumerate(program.entries):
        places = f"{first}, {len(kernel.arrays)}, {int(kernel.has_workspace)}, {counts.get(number, 0)}"
        yield f'  {{"{kernel.name}", {kernel.blocks}, {kernel.threads}, {kernel.shared_bytes}, {places}}},'
        first += len(kernel.arrays)
    yield "};"
    yield f"static const pd_launch launches_{n}[] = {{"
    first = 0
    for number, _, values in program.sequence:
        yield f"  {{{number}, {first}}},"
        first += len(values)
    yield "};\n"


def _function(stem: str, operator: str, group: Sequence[LoadedEntry], first: int) -> Iterator[str]:
    sizes, arrays, parameters = _parameters(stem, group[0].entry)
    keys = ", ".join(sizes) or "0"
    chosen = f"pd_choose(&programs[{first}], {len(group)}, {len(sizes)}, sizes)"
    yield f"int {stem}_{operator}({parameters}) {{"
    yield f"  const int64_t sizes[] = {{{keys}}};"
    yield f"  const uint64_t arrays[] = {{{', '.join(arrays)}}};"
    yield f"  const int found = {chosen};"
    yield "  if (library == NULL) return PD_NULL;"
    yield "  if (found < 0) return PD_SIZES;"
    yield f"  const int number = {first} + found;"
    yield "  return pd_call(library, &programs[number], number, stream, workspace, arrays);\n}\n"
    yield f"size_t {stem}_{operator}_workspace({', '.join(f'int64_t {size}' for size in sizes) or 'void'}) {{"
    yield f"  const int64_t sizes[] = {{{keys}}};"
    yield f"  const int found = {chosen};"
    yield f"  return found < 0 ? 0 : programs[{first} + found].workspace;\n}}\n"


def _numbers(values: Iterable[object]) -> str:
    return ", ".join(map(str, values)) or "0"
