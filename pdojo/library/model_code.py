"""The generated C of the models of a library: what is bound when one is loaded, and the calls of its kernels."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from pdojo.backends.c.names import Identifiers
from pdojo.backends.c.spelling import C_TYPES
from pdojo.backends.common.placement import rounded
from pdojo.build.numbers import UNSIGNED, storage_of
from pdojo.dialect.functions import byte_width
from pdojo.kernels.workload import size_text
from pdojo.library.levels import Level
from pdojo.library.model_plan import Call, Extent, ModelPlan, Place
from pdojo.library.models import PlannedModel
from pdojo.library.program_facts import EntryProgram, Programs
from pdojo.library.records import Array, range_of

FUNCTIONS = ("load", "share")
"""Functions of every model beside the one that runs it, after its name."""
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_TYPES = {**C_TYPES, **{name: f"u{C_TYPES[stored]}" for name, stored in UNSIGNED.items()}}


def functions_of(models: Sequence[PlannedModel]) -> list[str]:
    """The names of the functions of models, without the library's prefix."""
    return [name for each in models for name in (each.plan.name, *(f"{each.plan.name}_{f}" for f in FUNCTIONS))]


def _width(array: Array) -> int:
    """Bytes of an element."""
    return byte_width(storage_of(array.dtype))


@dataclass(frozen=True)
class _Level:
    """A model's calls for a level."""

    model: PlannedModel
    programs: Sequence[EntryProgram]
    """The programs of its kernels."""

    @cached_property
    def bound(self) -> dict[tuple[int, tuple[int, ...]], dict[str, int]]:
        """The places of constants, by name, for each kernel and the weights that it is bound to."""
        found: dict[tuple[int, tuple[int, ...]], dict[str, int]] = {}
        place = 0
        for call in self.model.plan.calls:
            binding, key = self.programs[call.kernel].binding, self.key(call)
            if binding is not None and key not in found:
                found[key] = {}
                for name, size in binding.constants:
                    found[key][name] = place
                    place += rounded(size)
        return found

    @property
    def bytes(self) -> int:
        """Bytes of all constants."""
        bindings = [self.programs[kernel].binding for kernel, _ in self.bound]
        return sum(rounded(size) for each in bindings if each is not None for _, size in each.constants)

    def key(self, call: Call) -> tuple[int, tuple[int, ...]]:
        """The kernel of a call, and the weights among its arguments that its constants are computed from."""
        binding = self.programs[call.kernel].binding
        names = [array.name for array in self.model.kernels[call.kernel].arrays]
        read = () if binding is None else binding.arguments
        own = [p.number for n, p in zip(names, call.arguments, strict=True) if n in read and p.kind == "weight"]
        return call.kernel, tuple(own)


def _own(plan: ModelPlan) -> str:
    """The beginning of static names of a model; names of entries have no capitals."""
    return f"M_{plan.name}"


def levels_text(model: PlannedModel, levels: Sequence[Level], programs: Programs) -> Iterator[str]:
    """For an architecture: declarations of a model's kernels, and for each level what binds and calls them."""
    name, rows = _own(model.plan), list[str]()
    for number, level in enumerate(levels):
        own = _Level(model, [programs[entry.name, level.name, 0] for entry in model.kernels])
        yield from _declarations(own)
        yield from _binding(own, f"{name}_bind_{number}")
        yield from _calling(own, f"{name}_call_{number}")
        shared = max((p.workspace[0] for p in own.programs), default=0)
        thread = max((p.workspace[1] for p in own.programs), default=0)
        rows.append(f"{{{name}_bind_{number}, {name}_call_{number}, {own.bytes}, {shared}, {thread}}}")
    yield f"static const pd_model_level {name}_levels[] = {{\n  " + ",\n  ".join(rows) + "};"


def _declarations(own: _Level) -> Iterator[str]:
    for entry, program in zip(own.model.kernels, own.programs, strict=True):
        sizes = ["int64_t"] * len(entry.kernel.known_sizes())
        arguments = ", ".join([*["void *"] * len(program.arguments), *sizes, "void *"])
        yield f"PD_HIDDEN void {program.symbol}({arguments}, int32_t);"
        if program.binding is not None:
            arguments = ", ".join([*["void *"] * len(program.binding.arguments), "void *"])
            yield f"PD_HIDDEN void {program.binding.symbol}({arguments}, int32_t);"


def _binding(own: _Level, title: str) -> Iterator[str]:
    yield f"static void {title}(const char *w, char *k, void *workspace, int32_t threads) {{"
    yield "  (void)w, (void)k, (void)workspace, (void)threads;"
    plan = own.model.plan
    done: set[object] = set()
    for call in plan.calls:
        program, key = own.programs[call.kernel], own.key(call)
        if program.binding is None or key in done:
            continue
        done.add(key)
        places = dict(zip((a.name for a in own.model.kernels[call.kernel].arrays), call.arguments, strict=True))
        given = [
            f"(void *)(w + {plan.weights[places[n].number].offset})" if n in places else f"k + {own.bound[key][n]}"
            for n in program.binding.arguments
        ]
        yield f"  {program.binding.symbol}({', '.join([*given, 'workspace', 'threads'])});"
    yield "}"


def _calling(own: _Level, title: str) -> Iterator[str]:
    plan = own.model.plan
    yield f"static int {title}(const pd_model_call *c) {{"
    yield "  char *const b = c->block;"
    yield "  const char *const w = c->weights, *const k = c->bound;"
    yield "  void *const *const a = c->arrays;"
    yield "  const int64_t *const sizes = c->sizes;"
    yield "  const size_t *const t = c->places;"
    yield "  (void)b, (void)w, (void)k, (void)a, (void)sizes, (void)t;"
    for call in plan.calls:
        program, entry = own.programs[call.kernel], own.model.kernels[call.kernel]
        places = dict(zip((a.name for a in entry.arrays), call.arguments, strict=True))
        constants = own.bound.get(own.key(call), {})
        given = [
            _pointer(plan, places[n]) if n in places else f"(void *)(k + {constants[n]})" for n in program.arguments
        ]
        values = [in_c(plan, size) for size in call.sizes]
        if entry.checked_indices:
            every = ", ".join(_pointer(plan, place) for place in call.arguments)
            listed = ", ".join(values) or "0"
            yield "  {"
            yield f"    void *const own[] = {{{every}}};"
            yield f"    const int64_t own_sizes[] = {{{listed}}};"
            yield f"    if ({entry.name}_refuses(own_sizes, own)) return PD_INDICES;"
            yield "  }"
        yield f"  {program.symbol}({', '.join([*given, *values, 'c->workspace', 'c->threads'])});"
    for copy in plan.copies:
        size = _bytes(plan, plan.outputs[copy.output])
        yield f"  memcpy(a[{len(plan.inputs) + copy.output}], {_pointer(plan, copy.source)}, {size});"
    yield "  return PD_OK;"
    yield "}"


def _pointer(plan: ModelPlan, place: Place) -> str:
    match place.kind:
        case "weight":
            return f"(void *)(w + {plan.weights[place.number].offset})"
        case "block":
            base = f"b + t[{place.number}]"
        case "input":
            base = f"(char *)a[{place.number}]"
        case "output":
            base = f"(char *)a[{len(plan.inputs) + place.number}]"
    return f"{base} + {in_c(plan, place.offset)}" if place.offset else base


def in_c(plan: ModelPlan, extent: Extent) -> str:
    """An extent in C, with 64 bits."""
    if isinstance(extent, int):
        return f"INT64_C({extent})"
    numbers = {name: number for number, name in enumerate(plan.sizes)}
    return f"({_NAME.sub(lambda name: f'sizes[{numbers[name[0]]}]', extent).replace('//', '/')})"


def _bytes(plan: ModelPlan, array: Array) -> str:
    """The bytes of an array in C."""
    return "(size_t)(" + "*".join([*(in_c(plan, e) for e in array.shape), str(_width(array))]) + ")"


def model_text(model: PlannedModel, number: int, count: int, prefix: str) -> Iterator[str]:
    """The tables and the functions of a model, number `number` of `count`, for all architectures."""
    plan = model.plan
    name, own, arrays = plan.name, _own(plan), plan.arrays
    rows = ",\n  ".join(f"{{0, 63, {_width(a) - 1}, {int(a.direction == 'out')}}}" for a in arrays)
    yield f"static const pd_array {own}_arrays[] = {{\n  {rows}}};"
    ranges = ", ".join(f"{{{s[0]}, {s[-1]}, {s.step}}}" for s in map(range_of, plan.sizes.values())) or "{0, 0, 0}"
    yield f"static const pd_range {own}_ranges[] = {{{ranges}}};"
    yield f"static size_t {own}_measure(const int64_t *sizes, size_t *bytes, size_t *t) {{"
    yield "  (void)sizes, (void)t;"
    for k, array in enumerate(arrays):
        yield f"  bytes[{k}] = {_bytes(plan, array)};"
    yield "  size_t end = 0, all = 0;"
    for k, block in enumerate(plan.blocks):
        yield "  end = 0;"
        for other in block.below:
            size = in_c(plan, plan.blocks[other].bytes)
            yield f"  if (t[{other}] + (size_t){size} > end) end = t[{other}] + (size_t){size};"
        yield f"  t[{k}] = end;"
        yield f"  if (end + (size_t){in_c(plan, block.bytes)} > all) all = end + (size_t){in_c(plan, block.bytes)};"
    yield "  (void)end;"
    yield "  return all;\n}"
    weights = "NULL" if plan.is_apart else f"{prefix}_{name}_weights"
    if not plan.is_apart:
        yield f"extern PD_HIDDEN const char {weights}[];"
    yield f"static const pd_model {own}_model = {{"
    yield f"  {own}_levels, {own}_arrays, {own}_ranges, {own}_measure, {weights}, {plan.weight_bytes},"
    yield f'  "{name}.bin", "{plan.digest}", {len(arrays)}, {len(plan.sizes)}, {number}, {count}}};'
    parameters, sizes, names = parameters_of(plan, prefix)
    pointers = ", ".join(f"(void *){each}" for each in names)
    yield f"API int {prefix}_{name}_load({prefix}_handle *handle, const char *weights) {{"
    yield f"  size_t bytes[{len(arrays)}], places[{max(1, len(plan.blocks))}];"
    yield f"  return pd_load((pd_handle *)handle, &{own}_model, weights, bytes, places);\n}}"
    yield f"API int {prefix}_{name}_share({prefix}_handle *handle, const {prefix}_handle *other) {{"
    yield f"  size_t bytes[{len(arrays)}], places[{max(1, len(plan.blocks))}];"
    yield f"  return pd_share((pd_handle *)handle, (pd_handle *)other, &{own}_model, bytes, places);\n}}"
    yield f"API int {prefix}_{name}({parameters}) {{"
    yield f"  const int64_t sizes[] = {{{', '.join(sizes) or '0'}}};"
    yield f"  void *arrays[] = {{{pointers}}};"
    yield f"  size_t bytes[{len(arrays)}], places[{max(1, len(plan.blocks))}];"
    yield f"  return pd_run_model((pd_handle *)handle, &{own}_model, sizes, arrays, bytes, places);\n}}\n"


def parameters_of(plan: ModelPlan, prefix: str) -> tuple[str, list[str], list[str]]:
    """The C parameters of the function that runs a model, and the names of sizes and arrays in them."""
    own = (f"{prefix}_handle", f"{prefix.upper()}_VERSION", f"{prefix.upper()}_H", "API", "PD_HIDDEN")
    local = Identifiers(("handle", "sizes", "arrays", "bytes", "places", *own))
    sizes = [local.fresh(name) for name in plan.sizes]
    arrays = [local.fresh(array.name) for array in plan.arrays]
    rows = [f"{prefix}_handle *handle", *(f"int64_t {name}" for name in sizes)]
    for array, name in zip(plan.arrays, arrays, strict=True):
        const = "const " if array.direction == "in" else ""
        rows.append(f"{const}{_TYPES[array.dtype]} *{name}")
    return ", ".join(rows), sizes, arrays


def declared(model: PlannedModel, prefix: str) -> str:
    """The declarations of a model in the library's header."""
    plan = model.plan
    parameters, sizes, names = parameters_of(plan, prefix)
    lines = [f"{plan.name}: a model of {len(plan.calls)} calls of {len(model.kernels)} kernels"]
    lines += [f"{name}: {size_text(size)}" for name, size in zip(sizes, plan.sizes.values(), strict=True)]
    uses = {"in": "read", "out": "written"}
    for array, name in zip(plan.arrays, names, strict=True):
        lines.append(
            f"{name}: {array.dtype} {' x '.join(map(str, array.shape)) or 'one element'}, {uses[array.direction]}"
        )
    comment = "\n   ".join(lines)
    where = (
        f"the path of the file {plan.name}.bin; NULL is the one in the library's folder"
        if plan.is_apart
        else "NULL, as the library has them"
    )
    return (
        f"/* Binds the model {plan.name} to a handle, once: its weights are brought into the order of the level.\n"
        f"   `weights` is {where}. */\n"
        f"int {prefix}_{plan.name}_load({prefix}_handle *handle, const char *weights);\n"
        f"/* Binds the model that another handle of the same level has: both read the same memory. */\n"
        f"int {prefix}_{plan.name}_share({prefix}_handle *handle, const {prefix}_handle *other);\n"
        f"/* {comment} */\n"
        f"int {prefix}_{plan.name}({parameters});\n"
    )


def weights_text(models: Sequence[PlannedModel], prefix: str) -> str:
    """The assembly text that puts weights into the library, but for those that are apart."""
    rows = ['    .section .note.GNU-stack, "", %progbits']
    for model in models:
        if not model.plan.is_apart:
            symbol = f"{prefix}_{model.plan.name}_weights"
            rows += ["    .section .rodata", "    .balign 64", f"    .globl {symbol}", f"    .hidden {symbol}"]
            rows += [f"{symbol}:", f'    .incbin "{model.plan.weights_path}"']
    return "\n".join(rows) + "\n"
