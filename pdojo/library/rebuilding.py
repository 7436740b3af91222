"""A generated library made again from its kernels and traces, and compared with the given one byte by byte."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pdojo.dialect.machines.machine import Machine
from pdojo.library.build import assemble, tools_of
from pdojo.library.choosing import Choice
from pdojo.library.devices import DeviceChoice, device_files, device_tools
from pdojo.library.entries import PlannedEntry
from pdojo.library.findings import Finding, Listener
from pdojo.library.levels import Level
from pdojo.library.linking import compiler_for
from pdojo.library.manifest import MANIFEST, Entry, Manifest, Variant, digests
from pdojo.library.packaging import package_files
from pdojo.library.programs import Made, compiled_program, jobs_of
from pdojo.library.publishing import Workplace
from pdojo.library.replaying import Replayed
from pdojo.library.spec import LibrarySpec

LICENCE = "LICENSE"
"""A file whose text is free: it is copied."""


def rebuild(
    folder: Path,
    manifest: Manifest,
    machines: Mapping[str, Machine],
    programs: Sequence[Replayed],
    workplace: Workplace,
    listener: Listener,
) -> Iterator[Finding]:
    """Make the library of replayed programs in a workplace; returns the differences from the one in `folder`.

    Raises UsageError or LoweringError if there is no C compiler, or if it fails.
    """
    spec = LibrarySpec(manifest.name, manifest.version, manifest.prefix, manifest.licence)
    levels = [Level(machines[name], machines[name]) for name in manifest.levels]
    compilers = {level.machine.architecture: compiler_for(level.machine.architecture) for level in levels}
    devices = {d.variant.level: Level(machines[d.variant.level], machines[d.variant.level]) for d in manifest.devices}
    tools = {**tools_of(compilers), **device_tools(devices.values())}
    other = [name for name in sorted({*tools, *manifest.tools}) if tools.get(name) != manifest.tools.get(name)]
    if other:
        listed = "; ".join(f"{name} {manifest.tools.get(name)}, here {tools.get(name)}" for name in other)
        yield Finding(f"the bytes cannot be compared, as other tools made them: {listed}", file=MANIFEST)
        return
    on_devices = [each for each in programs if each.variant.level in devices]
    given = {(each.entry.name, each.variant.level, each.variant.align): each for each in programs}
    given = {key: each for key, each in given.items() if key[1] not in devices}
    entries = list({each.entry.name: _planned(each) for each in programs}.values())
    jobs = {(job.entry.name, job.level.name, job.align): job for job in jobs_of(levels, entries)}
    for name, level, align in sorted(given.keys() ^ jobs.keys()):
        what = "lacks" if (name, level, align) in jobs else "has, and a build does not make,"
        yield Finding(f"the entry {what} the program for level {level} and arrays aligned to {align} bytes", name)
    done: list[Made] = []
    for key, job in jobs.items():
        if key in given:
            replayed = given[key]
            listener.step(f"compiling {replayed.variant.symbol}")
            facts, code = compiled_program(spec, job, Choice(replayed.tuning, "plain"))
            facts["trace"] = _trace(folder, replayed)
            yield from _facts(replayed.entry, replayed.variant, facts)
            workplace.keep(job.name, "", facts, code)
            done.append(Made(job, facts))
    if len(done) < len(jobs):
        return
    workplace.begin()
    listener.step("linking")
    licence = (folder / LICENCE).read_text(encoding="utf-8")
    texts = {**package_files(spec, manifest.triples), LICENCE: licence}
    planned = {entry.name: entry for entry in entries}
    choices = [
        DeviceChoice(planned[each.entry.name], devices[each.variant.level], _trace(folder, each), each.tuning.after)
        for each in on_devices
    ]
    compiled = device_files(spec, choices)
    yield from (Finding(reason) for reason in compiled.left_out)
    made = assemble(spec, workplace, levels, entries, done, compilers, texts, compiled)
    yield from _differences(folder, workplace.library)
    if replace(made, files={}).text() != replace(manifest, files={}).text():
        yield Finding("the rebuilt manifest has other facts", file=MANIFEST)


def _trace(folder: Path, replayed: Replayed) -> str:
    return (folder / replayed.variant.trace).read_text(encoding="utf-8")


def _planned(replayed: Replayed) -> PlannedEntry:
    entry = replayed.entry
    return PlannedEntry(entry.name, entry.operator, entry.sizes, replayed.plain, entry.arrays, entry.dispatch)


def _facts(entry: Entry, variant: Variant, facts: Mapping[str, object]) -> Iterator[Finding]:
    """The facts of the manifest that differ from those of a program that was compiled again."""
    listed = {"symbol": variant.symbol, "object": variant.object, "workspace": list(variant.workspace)}
    for name, value in listed.items():
        if facts[name] != value:
            what = f"the manifest says {name} {value}, and the program compiled again has {facts[name]}"
            yield Finding(what, entry.name, variant.symbol, variant.trace)


def _differences(folder: Path, made: Path) -> Iterator[Finding]:
    there, again = digests(folder), digests(made)
    for name in sorted({*there, *again}):
        if name not in again:
            yield Finding("the rebuilt library has no such file", file=name)
        elif name not in there:
            yield Finding("the rebuilt library has this file, and the library lacks it", file=name)
        elif there[name] != again[name]:
            yield Finding("the rebuilt file has other bytes", file=name)
