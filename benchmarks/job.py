"""One workload with one number of threads: tuned, and timed against peers in its own worker process."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

from benchmarks.origin import JSON
from benchmarks.peers import TVM_TRIALS, peers_of, ranges_of, reference_of
from benchmarks.peers.tvm_cache import trials_of
from benchmarks.peers.tvm_cache import tune as tune_tvm
from benchmarks.records import OURS
from benchmarks.runs import Listener
from benchmarks.searching import race_variants, searched_here, title_of
from benchmarks.work import Work, peak_type, roofline, work_of
from pdojo.backends.calibration.bandwidth import copy_bandwidth, read_bandwidth
from pdojo.backends.calibration.peak import Peak, arithmetic_peak
from pdojo.backends.llvm.worker import CpuWorker
from pdojo.backends.measure import (
    CompileError,
    KernelReference,
    MeasuredProgram,
    NamedReference,
    Options,
    Outcome,
    Peer,
    PhaseLimits,
    Worker,
)
from pdojo.dialect.alignment import ALIGNMENT
from pdojo.dialect.assumptions import with_alignment
from pdojo.dialect.machines.machine import Machine
from pdojo.errors import MeasurementError, PdojoError
from pdojo.kernels import Workload
from pdojo.passes.scheduled_kernel import ScheduledKernel, make_moves
from pdojo.search.tuning.run import SearchConfig
from pdojo.search.tuning.variants import Remake

LARGEST_ERROR = {"f64": 1e-9, "f32": 1e-3, "f16": 1e-2, "bf16": 5e-2}
"""Greatest error relative to magnitudes, for sums of any length."""
LIMITS = PhaseLimits(compile=900, reference=1800, run=120)


def measure(
    workload: Workload,
    machine: Machine,
    expert: str,
    libraries: Sequence[str],
    options: Options,
    tell: Listener,
    *,
    autotune: bool = False,
    tvm_trials: int = TVM_TRIALS,
    plan: SearchConfig | None = None,
    database: str | None = None,
    is_raced: bool = True,
) -> JSON:
    """A record (`benchmarks.records.Record`), including failures.

    With `is_raced`, variants of the pass race, and the fastest has its own row, as with `pdojo-tune`. With a `plan`, a
    search starts from the pass's program and stores its measurements in the file `database`.
    """
    plain = with_alignment(workload.instantiate(), ALIGNMENT)
    work = work_of(workload)
    record: JSON = {
        "label": workload.label or workload.kernel,
        "workload": workload.to_json(),
        "sizes": workload.sizes,
        "dtype": workload.element_type,
        "threads": options.threads,
        "cold": options.cold,
        "operations": work.operations,
        "read_bytes": work.read_bytes,
        "written_bytes": work.written_bytes,
    }
    tell("tuning")
    started = time.perf_counter()
    try:
        tuning = make_moves(plain, machine, None if expert == "none" else expert)
    except PdojoError as error:
        return {**record, "rows": [_row(OURS, expert, CompileError(str(error)))]}
    record |= {"tuning_seconds": time.perf_counter() - started, "trace": tuning.game.trace.dump()}
    entrants = [Entrant(MeasuredProgram.of(tuning.after, machine), {"library": OURS, "variant": expert})]
    failed: list[JSON] = []
    if plan is not None:
        _enter(entrants, failed, OURS, title_of(plan), lambda: _searched(plan, workload, tuning, database, tell))
    elif is_raced and tuning.choices:
        _enter(
            entrants,
            failed,
            OURS,
            f"{expert}, raced",
            lambda: _raced(tuning, lambda d: make_moves(plain, machine, expert, None, d), options.threads, tell),
        )
    for peer in (p for library in libraries for p in peers_of(library, workload, tvm_trials)):
        if autotune or peer.variant != "autotune":

            def ready(peer: Peer = peer) -> tuple[Peer, JSON]:
                return peer, _scheduled(peer, workload, options, tell)

            _enter(entrants, failed, peer.library, peer.variant, ready)

    def limit(worker: Worker) -> JSON:
        return {"roofline": _roofline(worker, workload, machine, work, options, tell)}

    record |= compared(entrants, options, reference_of(workload), tell, after=limit)
    record["rows"] += failed
    return record


class Entrant(NamedTuple):
    """A program or peer to measure."""

    contender: MeasuredProgram | Peer
    row: JSON
    """Its row without the outcome."""


def _enter(
    entrants: list[Entrant],
    failed: list[JSON],
    library: str,
    variant: str,
    ready: Callable[[], tuple[MeasuredProgram | Peer, JSON]],
) -> None:
    """Call `ready` and add its contender and facts to `entrants`, or the reason of its failure to `failed`."""
    try:
        contender, facts = ready()
    except MeasurementError as error:
        failed.append(_row(library, variant, CompileError(str(error))))
    else:
        entrants.append(Entrant(contender, {"library": library, "variant": variant, **facts}))


def _searched(
    plan: SearchConfig, workload: Workload, tuning: ScheduledKernel, database: str | None, tell: Listener
) -> tuple[MeasuredProgram, JSON]:
    found = searched_here(plan, workload, tuning, database, tell)
    game = found.best.game
    return MeasuredProgram.of(game.kernel, game.machine), {"tuning_seconds": found.seconds, "trace": game.trace.dump()}


def _raced(tuning: ScheduledKernel, remake: Remake, threads: int, tell: Listener) -> tuple[MeasuredProgram, JSON]:
    raced = race_variants(tuning, remake, tell, processors(threads))
    game = raced.best.tuning.game
    facts = {
        "tuning_seconds": raced.seconds,
        "trace": game.trace.dump(),
        "decisions": dict(raced.best.decisions),
        "variants": 1 + len(raced.others),
    }
    return MeasuredProgram.of(game.kernel, game.machine), facts


def _scheduled(peer: Peer, workload: Workload, options: Options, tell: Listener) -> JSON:
    """Seconds spent on finding a schedule; empty for libraries without schedules."""
    if peer.library != "tvm":
        return {}
    return {
        "tuning_seconds": tune_tvm(
            workload, options.threads, trials_of(peer.variant), processors(options.threads), tell
        )
    }


def compared(
    entrants: Sequence[Entrant],
    options: Options,
    reference: NamedReference | KernelReference,
    tell: Listener,
    *,
    peers: str = "benchmarks.peers:build",
    after: Callable[[Worker], JSON] | None = None,
) -> JSON:
    """The rows of entrants, measured in turns by a worker process, and what `after` measures with that worker.

    If the worker fails, the first entrant's row has the error, which is also in `error`.
    """
    names = [f"{row['library']}: {row['variant']}" for _, row in entrants]
    found: JSON = {}
    with CpuWorker(
        limits=LIMITS,
        processors=processors(options.threads),
        peers=peers,
        references="benchmarks.peers:reference",
    ) as worker:
        try:
            outcomes = worker.compare(
                [entrant.contender for entrant in entrants],
                options,
                reference,
                lambda event: tell(f"{event.phase}: {names[event.index]}"),
            )
            found["rows"] = [
                {**entrant.row, "outcome": outcome.to_json()}
                for entrant, outcome in zip(entrants, outcomes, strict=True)
            ]
            if after is not None:
                # Last, because the first user of an OpenMP runtime decides which runtime the process uses.
                found |= after(worker)
        except MeasurementError as error:
            row = entrants[0].row
            found.setdefault("rows", [_row(row["library"], row["variant"], CompileError(str(error)))])
            found["error"] = str(error)
    return found


def processors(threads: int) -> list[int]:
    """As many processors as threads, on different cores if possible."""
    by_core: dict[object, list[int]] = {}
    for number in sorted(os.sched_getaffinity(0)):
        by_core.setdefault(_core(number), []).append(number)
    ranked = sorted((place, number) for core in by_core.values() for place, number in enumerate(core))
    return sorted(number for _, number in ranked[:threads])


def _core(processor: int) -> object:
    """The processors of a processor's core, as the system names them; the processor alone if the system names none."""
    path = Path(f"/sys/devices/system/cpu/cpu{processor}/topology/thread_siblings_list")
    try:
        return path.read_text()
    except OSError:
        return processor


def _row(library: str, variant: str, outcome: Outcome) -> JSON:
    return {"library": library, "variant": variant, "outcome": outcome.to_json()}


_PEAKS: dict[tuple[str, int, str], Peak] = {}
"""The peaks that this process measured, by element type, threads and machine."""


def _roofline(
    worker: Worker, workload: Workload, machine: Machine, work: Work, options: Options, tell: Listener
) -> JSON:
    tell("bandwidth and peak")
    threads, dtype = options.threads, peak_type(workload)
    cold, samples = options.cold, options.samples
    copy = copy_bandwidth(work.bytes, threads, worker, machine, cold=cold, samples=samples)
    read = read_bandwidth(work.bytes, threads, worker, machine, cold=cold, samples=samples)
    if dtype is not None and (dtype, threads, machine.name) not in _PEAKS:
        _PEAKS[dtype, threads, machine.name] = arithmetic_peak(dtype, threads, worker, machine, samples=samples)
    peak = None if dtype is None else _PEAKS[dtype, threads, machine.name]
    limit = roofline(
        work, None if peak is None else peak.flops_per_second, copy.bytes_per_second, read.bytes_per_second
    )
    return {
        "seconds": limit.seconds,
        "bound": limit.bound,
        "copy": asdict(copy),
        "read": asdict(read),
        "peak": None if peak is None else asdict(peak),
    }


def options_for(workload: Workload, threads: int, *, samples: int, budget: float, cold: bool, seed: int) -> Options:
    """The options for measuring a workload."""
    return Options(
        threads=threads,
        samples=samples,
        budget=budget,
        cold=cold,
        seed=seed,
        steady=True,
        ranges=ranges_of(workload),
        largest_error=LARGEST_ERROR.get(workload.element_type or "", LARGEST_ERROR["f32"]),
    )
