"""Variants of a generated library, replayed from the plain kernel by legal moves and compared exactly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pdojo.backends.common.processes import shared_map
from pdojo.dialect.assumptions import with_alignment
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.notation import parse_notation, print_notation
from pdojo.dialect.ops import KernelOp
from pdojo.errors import PdojoError, UsageError
from pdojo.kernels import Workload, kernel_names
from pdojo.library.findings import Finding, Listener
from pdojo.library.manifest import Manifest, digest
from pdojo.library.paths import inside
from pdojo.library.plain import interface_fault, plain_kernel
from pdojo.library.records import Entry, Variant
from pdojo.library.sources import KernelSource
from pdojo.library.spec import OperatorSpec
from pdojo.passes.scheduled_kernel import ScheduledKernel, make_moves
from pdojo.passes.verification.shrink import MOST
from pdojo.passes.verification.verify import Verification, verify_moves
from pdojo.transforms.trace import Trace


@dataclass(frozen=True)
class Replayed:
    """A variant after the moves of its trace."""

    entry: Entry
    variant: Variant
    plain: KernelOp
    program: KernelOp


@dataclass(frozen=True)
class _Request:
    """Variants of an entry to replay, perhaps in another process."""

    folder: Path
    entry: Entry
    variants: tuple[Variant, ...]
    machines: Mapping[str, Machine]

    def replay(self) -> _Outcome:
        """Replay the variants, and compare them with the plain kernel."""
        found = _Outcome()
        try:
            plain = plain_kernel(self.folder, self.entry)
            wrong = interface_fault(self.entry, plain)
        except PdojoError as error:
            plain, wrong = None, str(error)
        if plain is None or wrong is not None:
            found.findings.append(Finding(str(wrong), self.entry.name, file=self.entry.kernel))
            return found
        compared: dict[tuple[str, ...], Verification] = {}
        for variant in self.variants:
            try:
                found.programs.append((variant, self._replayed(variant, plain, compared, found.notes)))
            except PdojoError as error:
                found.findings.append(Finding(str(error), self.entry.name, variant.symbol, variant.trace))
        return found

    def _replayed(
        self, variant: Variant, plain: KernelOp, compared: dict[tuple[str, ...], Verification], notes: list[str]
    ) -> str:
        """A variant's program. Raises PdojoError for a trace that does not lead to it, or changes the meaning."""
        tuning = replayed(self.folder, variant, plain, self.machines[variant.level])
        program = print_notation(tuning.after)
        if digest(program.encode()) != variant.program:
            raise UsageError("the moves of the trace lead to another program than the manifest's")
        # The variants for two alignments often have the same moves.
        key = (variant.level, *(str(step.resolved) for step in tuning.game.trace.steps))
        if key not in compared:
            compared[key] = _compared(tuning, workload_of(self.entry, plain))
            notes.append(f"{variant.symbol}: {compared[key].said}")
        fault = compared[key].fault
        if fault is not None:
            raise UsageError(f"the moves change the meaning of the kernel: {fault}")
        return program


@dataclass
class _Outcome:
    programs: list[tuple[Variant, str]] = field(default_factory=list[tuple[Variant, str]])
    """The programs that the replay confirms, in the notation."""
    findings: list[Finding] = field(default_factory=list[Finding])
    notes: list[str] = field(default_factory=list[str])


@dataclass
class Replay:
    """The replay of a library in `folder`."""

    folder: Path
    machines: Mapping[str, Machine]
    """The machine descriptions of the levels, keyed by name."""
    listener: Listener
    findings: list[Finding] = field(default_factory=list[Finding])

    def run(self, entries: Sequence[Entry]) -> list[Replayed]:
        """The variants that the replay confirms; faults are added to `findings`."""
        return self._run([_Request(self.folder, entry, entry.variants, self.machines) for entry in entries])

    def run_devices(self, manifest: Manifest) -> list[Replayed]:
        """The same for the programs of devices, in the order of the manifest."""
        entries = {entry.name: entry for entry in manifest.entries}
        devices = manifest.devices
        return self._run([_Request(self.folder, entries[d.entry], (d.variant,), self.machines) for d in devices])

    def _run(self, requests: Sequence[_Request]) -> list[Replayed]:
        found: list[Replayed] = []
        outcomes = shared_map(_Request.replay, requests)
        for number, request in enumerate(requests, 1):
            self.listener.step(f"replaying {number} of {len(requests)}, {request.entry.name}")
            outcome = next(outcomes)
            self.findings += outcome.findings
            for note in outcome.notes:
                self.listener.note(note)
            if outcome.programs:
                plain = plain_kernel(self.folder, request.entry)
                for variant, text in outcome.programs:
                    (program,) = parse_notation(text)
                    found.append(Replayed(request.entry, variant, plain, program))
        return found


def _compared(tuning: ScheduledKernel, source: Workload | None) -> Verification:
    """The comparison by the exact oracle: at reduced sizes, or else at the kernel's own sizes if small enough."""
    found = verify_moves(tuning, source)
    return found if found.is_exact or found.fault is not None else verify_moves(tuning, source, MOST)


def replayed(folder: Path, variant: Variant, plain: KernelOp, machine: Machine) -> ScheduledKernel:
    """The moves of a variant's trace, made on the plain kernel. Raises PdojoError for a move that does not apply."""
    trace = Trace.load(inside(folder, variant.trace))
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
