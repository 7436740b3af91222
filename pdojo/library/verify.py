"""The proof of a generated library: its files, its moves, its bytes and its results, all checked again."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from pdojo.dialect.machines.machine import Machine
from pdojo.errors import PdojoError
from pdojo.files import read_text
from pdojo.library.devices import check_device
from pdojo.library.findings import Finding, Listener, UnprovedError
from pdojo.library.levels import check_level, read_level, runs_here
from pdojo.library.manifest import LARGEST, MANIFEST, Manifest, differing, machine_path, triple_of
from pdojo.library.paths import inside
from pdojo.library.publishing import Workplace
from pdojo.library.rebuilding import Rebuild
from pdojo.library.records import Entry
from pdojo.library.replaying import Replay
from pdojo.library.schema import read_manifest
from pdojo.library.supervising import run_entries


def verify(folder: str | Path, listener: Listener | None = None) -> list[Finding]:
    """Prove a generated library; returns its faults, none if it is sound.

    1. Every file has the digest of the manifest, and none is missing or added.
    2. Every trace is replayed by legal moves from the plain kernel, and the exact oracle compares the two programs.
    3. All files are made again from the kernels and the traces, and have the same bytes.
    4. Every entry of the shared library of this computer agrees with the reference interpreter on fresh inputs: NaN and
       infinities, odd addresses, guard pages around all arrays, several callers at once.

    A step that finds faults is the last one. The fourth step runs the library that the third one made: no code runs
    that is only in the folder. Raises UsageError for a folder without a manifest that satisfies the schema, and if
    there is no C compiler.
    """
    folder, listener = Path(folder), listener or Listener()
    manifest = read_manifest(folder)
    findings = [*_files(folder, manifest), *_references(manifest)]
    machines: dict[str, Machine] = {}
    on_devices = dict.fromkeys(device.variant.level for device in manifest.devices)
    for name in (*manifest.levels, *on_devices):
        try:
            machines[name] = read_level(folder, name)
            (check_level if name in manifest.levels else check_device)(machines[name])
        except PdojoError as error:
            findings.append(Finding(str(error), file=machine_path(name)))
    if findings:
        return findings
    replay = Replay(folder, machines, listener)
    programs = replay.run([*manifest.entries, *(kernel for plan in manifest.models for kernel in plan.kernels)])
    if not replay.findings:
        programs += replay.run_devices(manifest)
    if replay.findings:
        return replay.findings
    with tempfile.TemporaryDirectory(prefix="pdojo-verify-") as temporary:
        workplace = Workplace(Path(temporary) / "library")
        workplace.programs.mkdir(parents=True)
        findings = Rebuild(folder, manifest, machines, workplace, listener).differences(programs)
        return findings or _run(workplace.library, manifest, machines, listener)


def _run(made: Path, manifest: Manifest, machines: dict[str, Machine], listener: Listener) -> list[Finding]:
    """The faults of the results of the library in `made`."""
    here = [name for name in manifest.levels if runs_here(machines[name])]
    others = [name for name in manifest.levels if name not in here]
    if others:
        listener.note(f"this computer does not run the programs of level {', '.join(others)}")
    if not here:
        return []
    library = made / manifest.library(triple_of(machines[here[0]].architecture))
    return run_entries(made, library, manifest, here, listener)


def check_proof(folder: Path, listener: Listener | None = None) -> None:
    """Raise UnprovedError with all faults of a library, if it has any."""
    findings = verify(folder, listener)
    if findings:
        raise UnprovedError(findings)


def _files(folder: Path, manifest: Manifest) -> Iterator[Finding]:
    """The files that are missing, added or changed."""
    if read_text(inside(folder, MANIFEST), LARGEST) != manifest.text():
        yield Finding("the file is not in the form that pdojo writes", file=MANIFEST)
    for name, what in differing(folder, manifest.files):
        yield Finding(what, file=name)


def _references(manifest: Manifest) -> Iterator[Finding]:
    """The facts of the manifest that contradict each other."""
    names = [entry.name for entry in manifest.entries]
    entries = [*manifest.entries, *(kernel for plan in manifest.models for kernel in plan.kernels)]
    listed = [entry.name for entry in entries]
    for name in sorted({name for name in listed if listed.count(name) > 1}):
        yield Finding("the manifest lists the entry twice", name, file=MANIFEST)
    for entry in entries:
        yield from _of_entry(manifest, entry)
    for device in manifest.devices:
        if device.entry not in names:
            yield Finding(
                "the manifest lists a program for a device, but not its entry", device.entry, file=device.file
            )
        if device.variant.trace not in manifest.files:
            yield Finding(f"the trace '{device.variant.trace}' is no file of the library", device.entry)


def _of_entry(manifest: Manifest, entry: Entry) -> Iterator[Finding]:
    if entry.kernel not in manifest.files:
        yield Finding(f"the plain kernel '{entry.kernel}' is no file of the library", entry.name)
    missing = set(manifest.levels) - {variant.level for variant in entry.variants}
    if missing:
        yield Finding(f"the entry has no program for level {', '.join(sorted(missing))}", entry.name)
    for variant in entry.variants:
        if variant.trace not in manifest.files:
            yield Finding(f"the trace '{variant.trace}' is no file of the library", entry.name, variant.symbol)
        if variant.level not in manifest.levels:
            yield Finding(f"the library has no level '{variant.level}'", entry.name, variant.symbol)
