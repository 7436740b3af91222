"""The check of a manifest, which may be foreign: only facts that a build writes reach paths, C and linkers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from pdojo.dialect.element_types import ELEMENT_TYPES
from pdojo.dialect.names import is_machine_name
from pdojo.dialect.names import name_problem as identifier_problem
from pdojo.library.features import ARCHITECTURES
from pdojo.library.manifest import (
    ALIGNED,
    UNALIGNED,
    DeviceProgram,
    Manifest,
    entry_name,
    kernel_path,
    order_of,
    program_name,
    trace_path,
    triple_of,
)
from pdojo.library.naming import (
    extent_problem,
    licence_problem,
    name_problem,
    operator_problem,
    prefix_problem,
    version_problem,
)
from pdojo.library.paths import path_problem, shown
from pdojo.library.plan_checking import is_size, parts_of, plan_problems
from pdojo.library.records import Entry


def problems(manifest: Manifest) -> Iterator[str]:
    """The facts of a manifest that no build writes, each with its place.

    What a specification says is checked as a specification is; names and paths must be those that follow from it.
    """
    own = {
        "name": name_problem(manifest.name),
        "prefix": prefix_problem(manifest.prefix),
        "version": version_problem(manifest.version),
        "licence": licence_problem(manifest.licence),
    }
    yield from (f"{key}: {problem}" for key, problem in own.items() if problem is not None)
    yield from _words("triples", manifest.triples, [triple_of(each) for each in ARCHITECTURES])
    yield from _words("levels", manifest.levels)
    yield from (f"files: {problem}" for path in manifest.files if (problem := path_problem(path)) is not None)
    for number, entry in enumerate(manifest.entries):
        yield from (f"entries[{number}].{problem}" for problem in _of_entry(entry))
    for number, device in enumerate(manifest.devices):
        yield from (f"devices[{number}].{problem}" for problem in _of_device(device))
    for number, plan in enumerate(manifest.models):
        own = [problem for name, entry in parts_of(plan) for problem in _of_part(name, entry)]
        yield from (f"models[{number}].{problem}" for problem in own or plan_problems(plan))
    if not manifest.entries and not manifest.models:
        yield "entries: there is none, and no model"
    names = [plan.name for plan in manifest.models]
    if sorted(set(names)) != names:
        yield "models: they are not sorted by name"
    keys = [order_of(entry.operator, entry.sizes) for entry in manifest.entries]
    if keys != sorted(keys):
        yield "entries: they are not sorted by operator and sizes"
    for operator, group in groupby(manifest.entries, lambda entry: entry.operator):
        yield from (f"entries: operator '{operator}': {problem}" for problem in _of_operator(list(group)))


def _words(key: str, words: Sequence[str], known: Sequence[str] | None = None) -> Iterator[str]:
    for number, word in enumerate(words):
        if not is_machine_name(word) if known is None else word not in known:
            yield f"{key}[{number}]: {shown(word)} is no {'name of a machine' if known is None else 'known triple'}"
    if not words or len(set(words)) < len(words):
        yield f"{key}: there must be at least one, and none twice"


def _of_entry(entry: Entry) -> Iterator[str]:
    problem = operator_problem(entry.operator)
    if problem is not None:
        yield f"operator: {problem}"
    names = [*(("sizes", name) for name in entry.sizes), *(("arrays", array.name) for array in entry.arrays)]
    yield from (f"{key}: {problem}" for key, name in names if (problem := identifier_problem(name)) is not None)
    yield from (f"sizes: {size} is no size" for size in entry.sizes.values() if not is_size(size))
    named = {name for name, size in entry.sizes.items() if isinstance(size, range)}
    extents = (extent for array in entry.arrays for extent in array.shape)
    yield from (f"arrays: {problem}" for extent in extents if (problem := extent_problem(extent, named)) is not None)
    for array in entry.arrays:
        if array.dtype not in ELEMENT_TYPES:
            yield f"arrays: '{array.name}' has elements of {shown(array.dtype)}"
    wanted = entry_name(entry.operator, entry.sizes)
    yield from _same("name", entry.name, wanted)
    yield from _same("kernel", entry.kernel, kernel_path(wanted))
    for number, variant in enumerate(entry.variants):
        place = f"variants[{number}]."
        if variant.align not in (ALIGNED, UNALIGNED):
            yield f"{place}align: {variant.align} is neither {ALIGNED} nor {UNALIGNED}"
        if not is_machine_name(variant.level):
            yield f"{place}level: {shown(variant.level)} is no name of a machine"
        yield from _same(f"{place}trace", variant.trace, trace_path(program_name(wanted, variant.level, variant.align)))


def _of_part(name: str, entry: Entry) -> Iterator[str]:
    """The facts of a kernel of a model that no build writes."""
    yield from _same("kernels: operator", entry.operator, name)
    yield from (f"kernels.{problem}" for problem in _of_entry(entry))


def _of_device(device: DeviceProgram) -> Iterator[str]:
    variant = device.variant
    problem = path_problem(device.file)
    if problem is not None:
        yield f"file: {problem}"
    if not is_machine_name(variant.level):
        yield f"variant.level: {shown(variant.level)} is no name of a machine"
    if variant.align != ALIGNED:
        yield f"variant.align: {variant.align} is not {ALIGNED}"
    yield from _same("variant.trace", variant.trace, trace_path(program_name(device.entry, variant.level, ALIGNED)))


def _same(key: str, given: str, wanted: str) -> Iterator[str]:
    if given != wanted:
        yield f"{key}: it is {shown(given)}, and a build writes {shown(wanted)}"


def _of_operator(entries: Sequence[Entry]) -> Iterator[str]:
    """The ways in which the entries of an operator contradict each other."""
    kinds = {(*entry.sizes, *((a.name, a.dtype, a.direction, len(a.shape)) for a in entry.arrays)) for entry in entries}
    if len(kinds) > 1:
        yield "its entries have different arguments"
