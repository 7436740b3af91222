"""Building a library: programs are made, then linked, checked and published."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pdojo.backends.measure.worker import most_memory
from pdojo.dialect.ops import KernelOp
from pdojo.errors import PdojoError
from pdojo.files import write_file
from pdojo.library.choosing import Chooser, Tuner
from pdojo.library.devices import DeviceFiles, choose_for_devices, device_files, devices_of
from pdojo.library.dispatch import sources_of
from pdojo.library.entries import PlannedEntry, entries_of
from pdojo.library.findings import UnprovedError
from pdojo.library.levels import Level, levels_of, runs_here
from pdojo.library.linking import CCompiler, compiler_for
from pdojo.library.manifest import (
    MANIFEST,
    Manifest,
    digests,
    is_open,
    kernel_path,
    library_path,
    machine_path,
    soname,
    trace_path,
)
from pdojo.library.model_code import functions_of, weights_text
from pdojo.library.model_plan import with_kernels
from pdojo.library.models import ModelSource, PlannedModel, planned_models
from pdojo.library.packaging import package_files
from pdojo.library.paths import inside
from pdojo.library.program_facts import EntryProgram
from pdojo.library.programs import BuildListener, Job, Made, ProgramMaker, jobs_of, tool_versions
from pdojo.library.publishing import Workplace
from pdojo.library.records import Entry, Variant
from pdojo.library.schema import schema_text
from pdojo.library.spec import LibrarySpec, TuningSpec
from pdojo.library.wheel import wheel

if TYPE_CHECKING:
    from pdojo.search.database import Database

_RUNTIME = ("runtime.c", "runtime.h")


Check = Callable[[Path], object]
"""Checks a finished library before it is published; raises UnprovedError for faults."""


def build_library(
    spec: LibrarySpec,
    destination: Path,
    kernels: Iterable[tuple[str, KernelOp]] = (),
    *,
    models: Iterable[ModelSource] = (),
    check: Check,
    database: Database | None = None,
    listener: BuildListener | None = None,
    force: bool = False,
    keep_going: bool = False,
) -> Manifest:
    """Build the library of a specification, of single kernels of models, and of whole models in the folder
    `destination`.

    What the database lacks is tuned on this computer, and stored there. A build that was interrupted goes on where it
    ended. `check` is called with the finished folder before it takes its place: `check_proof` of
    `pdojo.library.verify`. With `force`, a library in `destination` is replaced. With `keep_going`, entries without a
    program, or with a wrong one, are left out. The same specification and database give the same bytes.

    Raises UsageError for a wrong specification and a destination that is taken, LoweringError if the C compiler fails,
    MeasurementError or InvalidKernel, after all other programs were made, if a program cannot be tuned.
    """
    listener = listener or BuildListener()
    listener.step("reading the kernels")
    levels = levels_of(spec, measure=spec.tuning.measure)
    _check_search(spec.tuning)
    devices = devices_of(spec)
    compilers = {level.machine.architecture: compiler_for(level.machine.architecture) for level in levels}
    most = most_memory() if any(runs_here(level.machine) for level in levels) else None
    planned = planned_models(models)
    entries = entries_of(spec, kernels, most, has_models=bool(planned))
    parts = [kernel for model in planned for kernel in model.kernels]
    _check_names(spec, entries, planned)
    texts = package_files(spec, _triples(levels))
    workplace = Workplace(destination.absolute())
    with workplace.opened(force=force):
        chooser = Chooser(_tuner(spec.tuning, database, listener) if spec.tuning.measure else None)
        done, failed = ProgramMaker(spec, workplace, chooser, listener).made(jobs_of(levels, [*entries, *parts]))
        if failed:
            _check_models(planned, failed)
            entries = _without(entries, failed, keep_going=keep_going)
        while True:
            workplace.begin()
            if devices:
                listener.step("compiling for devices")
            on_devices = device_files(spec, choose_for_devices(devices, entries))
            ranges = [entry.name for entry in entries if devices and is_open(entry.sizes)]
            for reason in (
                *on_devices.left_out,
                *(f"{name} has no program for devices: it has ranges" for name in ranges),
            ):
                listener.left_out(reason)
            listener.step("linking")
            names = {entry.name for entry in (*entries, *parts)}
            own = [made for made in done if made.job.entry.name in names]
            found = assemble(spec, workplace, levels, entries, planned, own, compilers, texts, on_devices)
            listener.step("checking")
            try:
                check(workplace.library)
                break
            except UnprovedError as error:
                if not keep_going or not _may_go(entries, error):
                    raise
                for finding in error.findings:
                    listener.failed(str(finding))
                wrong = {finding.entry: error for finding in error.findings}
                entries = _without(entries, wrong, keep_going=True)
        workplace.publish()
    return found


def _check_search(plan: TuningSpec) -> None:
    """Raise UsageError if a package that the search needs is missing."""
    if plan.search is not None:
        from pdojo.search.strategies import strategy

        strategy(plan.search)


def _tuner(plan: TuningSpec, database: Database | None, listener: BuildListener) -> Tuner:
    from pdojo.library.tuning import DatabaseTuner
    from pdojo.search.database import Database

    return DatabaseTuner(plan, database or Database.in_memory(), listener)


def _without(
    entries: Sequence[PlannedEntry], failed: Mapping[str, PdojoError], *, keep_going: bool
) -> tuple[PlannedEntry, ...]:
    """The entries without those that failed.

    Raises the error if none is left, and, unless `keep_going`, in any case.
    """
    rest = tuple(entry for entry in entries if entry.name not in failed)
    if keep_going and rest:
        return rest
    first = next(iter(failed.values()))
    if isinstance(first, UnprovedError):
        raise first
    others = "" if len(failed) == 1 else f"; {len(failed)} of {len(entries)} entries fail"
    remedy = "" if not rest else "; the programs of the others are kept, and --keep-going leaves out those that fail"
    raise type(first)(f"{first}{others}{remedy}")


def _triples(levels: Sequence[Level]) -> list[str]:
    return list(dict.fromkeys(level.triple for level in levels))


def assemble(
    spec: LibrarySpec,
    workplace: Workplace,
    levels: Sequence[Level],
    entries: Sequence[PlannedEntry],
    models: Sequence[PlannedModel],
    done: Sequence[Made],
    compilers: Mapping[str, CCompiler],
    texts: Mapping[str, str],
    devices: DeviceFiles,
) -> Manifest:
    """Write all files of the library; the manifest last."""
    programs = {(m.job.entry.name, m.job.level.name, m.job.number): EntryProgram.of(m.facts) for m in done}
    sources = sources_of(spec, levels, entries, models, programs)
    parts = [kernel for model in models for kernel in model.kernels]
    written: dict[str, str | bytes] = {
        **texts,
        **devices.files,
        "manifest.schema.json": schema_text(),
        **{machine_path(level.name): level.text(spec.name) for level in levels},
        **{kernel_path(entry.name): entry.text for entry in (*entries, *parts)},
        **{model.plan.weights_path: model.weights_file for model in models},
        **{trace_path(made.job.name): made.facts["trace"] for made in done},
        **{f"source/{name}": (Path(__file__).parent / name).read_text(encoding="utf-8") for name in _RUNTIME},
        f"source/{spec.name}.h": sources.header,
        "source/dispatch.c": sources.dispatch,
        "source/exports.map": sources.exports,
        **({"source/weights.S": weights_text(models, spec.prefix)} if models else {}),
        f"include/{spec.name}.h": sources.header,
    }
    for path, data in written.items():
        workplace.write(path, data)
    for architecture, compiler in compilers.items():
        own = [made.job for made in done if made.job.level.machine.architecture == architecture]
        objects = [f"../programs/{job.name}.o" for job in own]
        output, loaded = library_path(spec.name, own[0].level.triple), soname(spec.name, spec.version)
        place = inside(workplace.library, output)
        place.parent.mkdir(parents=True, exist_ok=True)
        compiler.link(workplace.library, objects, loaded, output)
        # A copy, as a library has no links, which some archives lose.
        write_file(place.with_name(loaded), place.read_bytes())
    bare = Manifest(
        spec.name,
        spec.version,
        spec.prefix,
        spec.licence,
        tuple(_triples(levels)),
        tuple(level.name for level in levels),
        {**tools_of(compilers), **devices.tools},
        tuple(_entry(entry, done) for entry in entries),
        {},
        devices.programs,
        tuple(with_kernels(model.plan, tuple(_entry(entry, done) for entry in model.kernels)) for model in models),
    )
    weights = {model.plan.name: model.weights_file for model in models if model.plan.is_apart}
    for triple in bare.triples:
        made = wheel(bare, inside(workplace.library, bare.library(triple)).read_bytes(), texts["LICENSE"], weights)
        workplace.write(f"wheel/{made.name}", made.data)
    found = replace(bare, files=digests(workplace.library))
    workplace.write(MANIFEST, found.text())
    return found


def tools_of(compilers: Mapping[str, CCompiler]) -> dict[str, str]:
    """The versions of all tools that determine the bytes of a library."""
    return {**tool_versions(), **{f"compiler for {each}": found.version() for each, found in compilers.items()}}


def _check_models(models: Sequence[PlannedModel], failed: Mapping[str, PdojoError]) -> None:
    """Raise the error of a kernel of a model, without which there is no model."""
    for kernel in (kernel for model in models for kernel in model.kernels):
        if kernel.name in failed:
            raise failed[kernel.name]


def _may_go(entries: Sequence[PlannedEntry], error: UnprovedError) -> bool:
    """Whether all faults are those of entries of operators, which may be left out."""
    return {finding.entry for finding in error.findings} <= {entry.name for entry in entries}


def _check_names(spec: LibrarySpec, entries: Sequence[PlannedEntry], models: Sequence[PlannedModel]) -> None:
    """Raise UsageError for functions or kernels that would have one name."""
    functions = [*dict.fromkeys(entry.operator for entry in entries), *functions_of(models)]
    names = [each.name for each in (*entries, *(kernel for model in models for kernel in model.kernels))]
    for what, found in (("functions", functions), ("kernels", names)):
        if twice := next((name for name in found if found.count(name) > 1), None):
            raise spec.error(f"two {what} are called '{twice}'; give an operator or a model another 'name'")


def _entry(entry: PlannedEntry, done: Sequence[Made]) -> Entry:
    variants = [_variant(made.job, made.facts) for made in done if made.job.entry is entry]
    permitted = tuple(each.value for each in entry.kernel.permitted)
    path = kernel_path(entry.name)
    return Entry(entry.name, entry.operator, entry.sizes, entry.arrays, permitted, path, tuple(variants))


def _variant(job: Job, facts: Mapping[str, Any]) -> Variant:
    shared, thread = facts["workspace"]
    trace = trace_path(job.name)
    return Variant(
        job.level.name, job.align, trace, facts["symbol"], facts["program"], facts["object"], (shared, thread)
    )
