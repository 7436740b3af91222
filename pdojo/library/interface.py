"""The C interface of a library: its functions, and the header."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

from pdojo.backends.c.names import Identifiers
from pdojo.backends.c.spelling import C_TYPES
from pdojo.dialect.attributes import Intent
from pdojo.dialect.view.build import nest_of
from pdojo.dialect.view.nest import Access
from pdojo.kernels.workload import size_text
from pdojo.library.entries import PlannedEntry
from pdojo.library.naming import licence_line
from pdojo.library.spec import LibrarySpec
from pdojo.math.functions import FUNCTIONS

CODES = {
    "OK": "no error",
    "NULL": "a handle or an array is NULL",
    "SIZES": "there is no program for these sizes",
    "ALIGNMENT": "an array is not aligned to its elements",
    "OVERLAP": "an array that is written overlaps another array",
    "BUSY": "another call uses the handle",
    "MEMORY": "not enough memory",
    "THREADS": "the system refuses to start a thread",
    "LEVEL": "the processor runs no level of the library, or not the named one",
    "ARGUMENT": "the number of threads is not from 0 to 4096",
    "INDICES": "an index is outside of its range",
    "WEIGHTS": "the model is not loaded, or its file of weights is missing or another one",
}
"""Return codes, keyed by their names without the prefix, in the order of `runtime.h`."""


_WIDENED = ("arith.extui", "arith.uitofp")
"""Casts of unsigned integers."""
_INTEGERS = ("i8", "i16", "i32", "i64")


def operators_of(entries: Sequence[PlannedEntry]) -> list[Operator]:
    """The operators of sorted entries."""
    return [Operator(name, list(group)) for name, group in groupby(entries, lambda entry: entry.operator)]


@dataclass(frozen=True)
class Operator:
    """A C function with its entries."""

    name: str
    entries: Sequence[PlannedEntry]
    """The entries, first those with constant sizes, sorted by them, then the others, in the order in which a call tries
    them.
    """

    @property
    def first(self) -> PlannedEntry:
        """Any entry of the operator: names of sizes and arrays are the same in all."""
        return self.entries[0]

    @cached_property
    def unsigned(self) -> frozenset[str]:
        """The input arrays of signless integers whose elements all statements read as unsigned numbers."""
        signs: dict[str, set[bool]] = {}
        for leaf in nest_of(self.first.kernel).leaves:
            is_unsigned = leaf.function in _WIDENED or (
                leaf.function in FUNCTIONS and FUNCTIONS[leaf.function].unsigned
            )
            for each in leaf.inputs:
                if isinstance(each, Access) and each.array.intent is Intent.IN and each.array.dtype in _INTEGERS:
                    signs.setdefault(each.array.name, set()).add(is_unsigned)
        return frozenset(name for name, found in signs.items() if found == {True})

    def parameters(self, prefix: str) -> tuple[str, list[str], list[str]]:
        """The C parameters, and the names of sizes and arrays in them."""
        local = Identifiers(("handle", "sizes", "arrays"))
        sizes = [local.fresh(name) for name in self.first.sizes]
        arrays = [local.fresh(array.name) for array in self.first.arrays]
        rows = [f"{prefix}_handle *handle", *(f"int64_t {name}" for name in sizes)]
        for array, name in zip(self.first.arrays, arrays, strict=True):
            const = "const " if array.direction == "in" else ""
            sign = "u" if array.name in self.unsigned else ""
            rows.append(f"{const}{sign}{C_TYPES[array.dtype]} *{name}")
        return ", ".join(rows), sizes, arrays


def header_text(spec: LibrarySpec, operators: Sequence[Operator], models: Sequence[str]) -> str:
    """The header of a library, with the declarations of its models; equal arguments give equal texts."""
    prefix, upper = spec.prefix, spec.prefix.upper()
    codes = ",\n".join(f"  {upper}_{name} = {number} /* {text} */" for number, (name, text) in enumerate(CODES.items()))
    functions = "\n".join([*(_declared(each, prefix) for each in operators), *models])
    return f"""\
{licence_line(spec.licence)}
/* {spec.name} {spec.version}: tuned kernels, made by pdojo.

   Arrays are dense, in row-major order; f16 and bf16 are passed as their bits. A function returns 0 or a code of the
   list below. A handle owns threads and workspace, and serves one call at a time: callers that run at the same time
   need handles of their own. Arrays that are aligned to 64 bytes are served fastest. */
#ifndef {upper}_H
#define {upper}_H
#include <stdint.h>

#define {upper}_VERSION "{spec.version}"

#ifdef __cplusplus
extern "C" {{
#endif

enum {prefix}_code {{
{codes}
}};

typedef struct {prefix}_handle {prefix}_handle;

/* A handle with the best level that the processor runs. `threads` is the number of threads of parallel kernels, the
   caller's among them; 0 is the number of processors. `*out` is NULL after an error. */
int {prefix}_create({prefix}_handle **out, int threads);
/* The same with a level by its name. */
int {prefix}_create_level({prefix}_handle **out, int threads, const char *level);
/* Ends the threads; no call may use the handle. NULL is allowed. */
void {prefix}_destroy({prefix}_handle *handle);
/* The meaning of a code. */
const char *{prefix}_message(int code);
/* The version of the library that runs, which may differ from {upper}_VERSION. */
const char *{prefix}_version(void);
/* The name of the handle's level. */
const char *{prefix}_level(const {prefix}_handle *handle);

{functions}
#ifdef __cplusplus
}}
#endif
#endif
"""


def _declared(operator: Operator, prefix: str) -> str:
    """The declaration of an operator, with its sizes and arrays in a comment."""
    parameters, sizes, names = operator.parameters(prefix)
    lines = [operator.name]
    if sizes:
        listed = ["x".join(map(size_text, entry.sizes.values())) for entry in operator.entries]
        lines.append(f"{' x '.join(sizes)}: {_folded(listed)}")
    uses = {"in": "read", "inout": "read and written", "out": "written"}
    for array, name in zip(operator.first.arrays, names, strict=True):
        shape = "" if sizes else " " + "x".join(map(str, array.shape))
        lines.append(f"{name}: {array.dtype}{shape}, {uses[array.direction]}")
    comment = "\n   ".join(lines)
    return f"/* {comment} */\nint {prefix}_{operator.name}({parameters});\n"


def _folded(words: Sequence[str]) -> str:
    """Words in lines of a comment."""
    lines: list[str] = [""]
    for word in words:
        if len(lines[-1]) + len(word) > 90:
            lines.append("")
        lines[-1] += f"{word}, "
    return "\n     ".join(line.strip() for line in lines).rstrip(", ")
