"""A generated library made again from its kernels and traces, and compared with the given one byte by byte."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pdojo.backends.common.processes import shared_map
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.notation import print_notation
from pdojo.files import read_bytes, read_text
from pdojo.library.build import assemble, tools_of
from pdojo.library.devices import DeviceChoice, DeviceFiles, device_files, device_tools
from pdojo.library.entries import PlannedEntry
from pdojo.library.findings import Finding, Listener
from pdojo.library.levels import Level
from pdojo.library.linking import compiler_for
from pdojo.library.manifest import LARGEST, MANIFEST, Manifest, digest, digests
from pdojo.library.model_plan import ModelPlan, with_kernels
from pdojo.library.models import PlannedModel
from pdojo.library.objects import ObjectSource
from pdojo.library.packaging import package_files
from pdojo.library.paths import inside
from pdojo.library.programs import Made, c_name, facts_of, jobs_of
from pdojo.library.publishing import Workplace
from pdojo.library.records import Entry, Variant
from pdojo.library.replaying import Replayed
from pdojo.library.spec import LibrarySpec

LICENCE = "LICENSE"
"""A file whose text is free: it is copied."""


class Rebuild:
    """The library of replayed programs, made in a workplace.

    Raises UsageError or LoweringError if a compiler is missing, or if it fails.
    """

    def __init__(
        self,
        folder: Path,
        manifest: Manifest,
        machines: Mapping[str, Machine],
        workplace: Workplace,
        listener: Listener,
    ) -> None:
        self._folder = folder
        self._manifest = manifest
        self._workplace = workplace
        self._listener = listener
        self._spec = LibrarySpec(manifest.name, manifest.version, manifest.prefix, manifest.licence)
        self._levels = [Level(machines[name], machines[name]) for name in manifest.levels]
        on_devices = dict.fromkeys(device.variant.level for device in manifest.devices)
        self._devices = {name: Level(machines[name], machines[name]) for name in on_devices}
        architectures = dict.fromkeys(level.machine.architecture for level in self._levels)
        self._compilers = {name: compiler_for(name) for name in architectures}

    def differences(self, programs: Sequence[Replayed]) -> list[Finding]:
        """Make the library, and return its differences from the given one."""
        found = [*self._of_tools(), *self._of_weights()]
        if found:
            return found
        on_devices = [each for each in programs if each.variant.level in self._devices]
        parts = {kernel.name for plan in self._manifest.models for kernel in plan.kernels}
        planned = {each.entry.name: _planned(each, is_part=each.entry.name in parts) for each in programs}
        entries = {name: entry for name, entry in planned.items() if not entry.is_part}
        done: list[Made] = []
        found = list(
            self._compile(
                list(planned.values()), [each for each in programs if each.variant.level not in self._devices], done
            )
        )
        if found:
            return found
        self._workplace.begin()
        compiled = self._compile_devices(entries, on_devices)
        self._listener.step("linking")
        licence = read_text(inside(self._folder, LICENCE))
        texts = {**package_files(self._spec, self._manifest.triples), LICENCE: licence}
        made = assemble(
            self._spec,
            self._workplace,
            self._levels,
            list(entries.values()),
            [self._model(plan, planned) for plan in self._manifest.models],
            done,
            self._compilers,
            texts,
            compiled,
        )
        found = [*(Finding(reason) for reason in compiled.left_out), *self._of_files()]
        if replace(made, files={}).text() != replace(self._manifest, files={}).text():
            found.append(Finding("the rebuilt manifest differs", file=MANIFEST))
        return found

    def _model(self, plan: ModelPlan, planned: Mapping[str, PlannedEntry]) -> PlannedModel:
        data = read_bytes(inside(self._folder, plan.weights_path), LARGEST)
        kernels = tuple(planned[kernel.name] for kernel in plan.kernels)
        return PlannedModel(with_kernels(plan, ()), kernels, data[: plan.weight_bytes])

    def _of_weights(self) -> Iterator[Finding]:
        for plan in self._manifest.models:
            data = read_bytes(inside(self._folder, plan.weights_path), LARGEST)
            if len(data) < plan.weight_bytes or digest(data[: plan.weight_bytes]) != plan.digest:
                yield Finding("the weights have another digest than the model", file=plan.weights_path)

    def _of_tools(self) -> Iterator[Finding]:
        tools = {**tools_of(self._compilers), **device_tools(self._devices.values())}
        given = self._manifest.tools
        other = [name for name in sorted({*tools, *given}) if tools.get(name) != given.get(name)]
        if other:
            listed = "; ".join(f"{name} {given.get(name)}, here {tools.get(name)}" for name in other)
            yield Finding(f"the bytes cannot be compared, as other tools made them: {listed}", file=MANIFEST)

    def _compile(
        self, entries: Sequence[PlannedEntry], programs: Sequence[Replayed], done: list[Made]
    ) -> Iterator[Finding]:
        """Compile the programs of all levels into `done`, in the order of a build; returns facts that differ."""
        given = {(each.entry.name, each.variant.level, each.variant.align): each for each in programs}
        jobs = {(job.entry.name, job.level.name, job.align): job for job in jobs_of(self._levels, entries)}
        for name, level, align in sorted(given.keys() ^ jobs.keys()):
            what = "lacks" if (name, level, align) in jobs else "has, and a build does not make,"
            yield Finding(f"the entry {what} the program for level {level} and arrays aligned to {align} bytes", name)
        wanted = [(given[key], job) for key, job in jobs.items() if key in given]
        sources = [
            ObjectSource(print_notation(r.program), job.level.machine, c_name(self._spec, job)) for r, job in wanted
        ]
        compiled = shared_map(ObjectSource.compiled, sources)
        for number, (replayed, job) in enumerate(wanted, 1):
            self._listener.step(f"compiling {number} of {len(wanted)}, {replayed.variant.symbol}")
            made = next(compiled)
            facts = {"trace": self._trace(replayed), **facts_of(replayed.program, made)}
            yield from _facts(replayed.entry, replayed.variant, facts)
            self._workplace.keep(job.name, "", facts, made.code)
            done.append(Made(job, facts))

    def _compile_devices(self, entries: Mapping[str, PlannedEntry], programs: Sequence[Replayed]) -> DeviceFiles:
        choices: list[DeviceChoice] = []
        for each in programs:
            entry, device = entries[each.entry.name], self._devices[each.variant.level]
            choices.append(DeviceChoice(entry, device, self._trace(each), each.program))
        return device_files(self._spec, choices)

    def _trace(self, replayed: Replayed) -> str:
        return read_text(inside(self._folder, replayed.variant.trace))

    def _of_files(self) -> Iterator[Finding]:
        there, again = digests(self._folder), digests(self._workplace.library)
        for name in sorted({*there, *again}):
            if name not in again:
                yield Finding("the rebuilt library has no such file", file=name)
            elif name not in there:
                yield Finding("the rebuilt library has this file, and the library lacks it", file=name)
            elif there[name] != again[name]:
                yield Finding("the rebuilt file has other bytes", file=name)


def _planned(replayed: Replayed, *, is_part: bool) -> PlannedEntry:
    entry = replayed.entry
    return PlannedEntry(entry.name, entry.operator, entry.sizes, replayed.plain, entry.arrays, is_part=is_part)


def _facts(entry: Entry, variant: Variant, facts: Mapping[str, object]) -> Iterator[Finding]:
    """The facts of the manifest that differ in the program that was compiled again."""
    listed = {"symbol": variant.symbol, "object": variant.object, "workspace": list(variant.workspace)}
    for name, value in listed.items():
        if facts[name] != value:
            what = f"the manifest says {name} {value}, and the program compiled again has {facts[name]}"
            yield Finding(what, entry.name, variant.symbol, variant.trace)
