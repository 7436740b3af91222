"""Variants of a generated library, replayed from the plain kernel by legal moves and compared exactly."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pdojo.dialect.assumptions import with_alignment
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.notation import print_notation
from pdojo.dialect.ops import KernelOp
from pdojo.errors import PdojoError, UsageError
from pdojo.kernels import Workload, kernel_names
from pdojo.library.findings import Finding, Listener
from pdojo.library.manifest import Entry, Manifest, Variant, digest
from pdojo.library.plain import interface_fault, plain_kernel
from pdojo.library.sources import KernelSource
from pdojo.library.spec import OperatorSpec
from pdojo.search.tuning.scheduled_kernel import ScheduledKernel, make_moves
from pdojo.search.tuning.shrink import MOST
from pdojo.search.tuning.verify import Verification, verify_moves
from pdojo.transforms.trace import Trace


@dataclass(frozen=True)
class Replayed:
    """A variant after the moves of its trace."""

    entry: Entry
    variant: Variant
    plain: KernelOp
    tuning: ScheduledKernel


@dataclass
class Replay:
    """The replay of all variants of a library."""

    folder: Path
    machines: Mapping[str, Machine]
    """The machine descriptions of the levels, by name."""
    listener: Listener
    findings: list[Finding] = field(default_factory=list[Finding])
    _compared: dict[tuple[str, ...], Verification] = field(default_factory=dict[tuple[str, ...], Verification])
    """Comparisons by plain kernel, level and moves: the variants for two alignments often have the same moves."""

    def run(self, entries: tuple[Entry, ...]) -> list[Replayed]:
        """The variants that the replay confirms; faults are added to `findings`."""
        return [replayed for entry in entries for replayed in self._entry(entry, entry.variants)]

    def run_devices(self, manifest: Manifest) -> list[Replayed]:
        """The same for the programs of devices, in the order of the manifest."""
        entries = {entry.name: entry for entry in manifest.entries}
        return [each for device in manifest.devices for each in self._entry(entries[device.entry], [device.variant])]

    def _entry(self, entry: Entry, variants: Sequence[Variant]) -> Iterator[Replayed]:
        try:
            plain = plain_kernel(self.folder, entry)
            wrong = interface_fault(entry, plain)
        except PdojoError as error:
            plain, wrong = None, str(error)
        if plain is None or wrong is not None:
            self.findings.append(Finding(str(wrong), entry.name, file=entry.kernel))
            return
        for variant in variants:
            self.listener.step(f"replaying {variant.symbol}")
            try:
                tuning = self._variant(entry, variant, plain)
            except PdojoError as error:
                self.findings.append(Finding(str(error), entry.name, variant.symbol, variant.trace))
            else:
                yield Replayed(entry, variant, plain, tuning)

    def _variant(self, entry: Entry, variant: Variant, plain: KernelOp) -> ScheduledKernel:
        """The moves of a variant. Raises PdojoError for a trace that does not lead to it, or changes the meaning."""
        tuning = replayed(self.folder, variant, plain, self.machines[variant.level])
        if digest(print_notation(tuning.after).encode()) != variant.program:
            raise UsageError("the moves of the trace lead to another program than the manifest's")
        key = (print_notation(plain), variant.level, *(str(step.resolved) for step in tuning.game.trace.steps))
        if key not in self._compared:
            self._compared[key] = _compared(tuning, workload_of(entry, plain))
            self.listener.note(f"{variant.symbol}: {self._compared[key].said}")
        compared = self._compared[key]
        if compared.fault is not None:
            raise UsageError(f"the moves change the meaning of the kernel: {compared.fault}")
        return tuning


def _compared(tuning: ScheduledKernel, source: Workload | None) -> Verification:
    """The comparison by the exact oracle: at reduced sizes, or else at the kernel's own if it is small enough."""
    found = verify_moves(tuning, source)
    return found if found.is_exact or found.fault is not None else verify_moves(tuning, source, MOST)


def replayed(folder: Path, variant: Variant, plain: KernelOp, machine: Machine) -> ScheduledKernel:
    """The moves of a variant's trace, made on the plain kernel. Raises PdojoError for a move that does not apply."""
    trace = Trace.load(folder / variant.trace)
    return make_moves(with_alignment(plain, variant.align), machine, None, trace)


def workload_of(entry: Entry, plain: KernelOp) -> Workload | None:
    """The library kernel that a plain kernel is, at the entry's sizes; None if it is no library kernel."""
    name = plain.sym_name.data
    if name not in kernel_names():
        return None
    source = KernelSource.of(OperatorSpec("", name), Path())
    if list(source.declared) != list(entry.sizes):
        return None
    for dtype in (None, *dict.fromkeys(array.dtype for array in entry.arrays)):
        try:
            made = source.at(entry.sizes, dtype)
        except PdojoError:
            continue
        # A specification may permit other classes of rounding changes than the text.
        made.kernel.properties.pop("numerics", None)
        if "numerics" in plain.properties:
            made.kernel.properties["numerics"] = plain.properties["numerics"]
        if print_notation(made.kernel) == print_notation(plain):
            return made.workload
    return None
