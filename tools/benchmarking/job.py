"""One workload on one number of threads: tuned, and measured beside the peers in a worker process of its own."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any, TypeAlias

from pdojo_tools.benchmarking.results import OURS
from pdojo_tools.benchmarking.work import Work, peak_type, roofline, work_of
from pdojo_tools.peers import TVM_TRIALS, peers_of, ranges_of, reference_of
from pdojo_tools.peers.tvm_cache import trials_of
from pdojo_tools.peers.tvm_cache import tune as tune_tvm

from pdojo.backends.arrays import parameters_of
from pdojo.backends.bandwidth import copy_bandwidth, read_bandwidth
from pdojo.backends.measure import CompileError, Limits, Options, Outcome, Peer, Program, Worker
from pdojo.backends.peak import arithmetic_peak
from pdojo.dialect.machine import Machine
from pdojo.dialect.nest import nest_of
from pdojo.errors import MeasurementError, PdojoError
from pdojo.kernels import Workload
from pdojo.search.tuning import Tuning, tune, with_alignment

JSON: TypeAlias = dict[str, Any]
Listener: TypeAlias = Callable[[str], None]
"""Told what is done now."""

ALIGNMENT = 64
"""Bytes; what everybody's arrays have, and so may be relied on."""
LARGEST_ERROR = {"f64": 1e-9, "f32": 1e-3, "f16": 1e-2, "bf16": 5e-2}
"""Relative to magnitudes: what is less accurate does not count, however long the sums are."""
LIMITS = Limits(compile=900, reference=1800, run=120)


def measure(
    workload: Workload,
    machine: Machine,
    expert: str,
    libraries: Sequence[str],
    options: Options,
    processors: Sequence[int],
    tell: Listener,
    *,
    autotune: bool = False,
    tvm_trials: int = TVM_TRIALS,
) -> JSON:
    """A record (`pdojo_tools.benchmarking.results.Record`). Whatever goes wrong is part of it."""
    plain = with_alignment(workload.instantiate(), ALIGNMENT)
    work = work_of(workload, parameters_of(nest_of(plain)))
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
        tuning = tune(plain, machine, None if expert == "none" else expert)
    except PdojoError as error:
        return {**record, "rows": [_row(OURS, expert, CompileError(str(error)))]}
    record |= {"tuning_seconds": time.perf_counter() - started, "trace": tuning.game.trace.dump()}
    offered = [p for library in libraries for p in peers_of(library, workload, tvm_trials)]
    chosen = [p for p in offered if autotune or p.variant != "autotune"]
    peers, failed = _prepared(chosen, workload, options, processors, tell)
    with Worker(
        limits=LIMITS,
        processors=processors,
        peers="pdojo_tools.peers:build",
        references="pdojo_tools.peers:reference",
    ) as worker:
        try:
            record["rows"] = _rows(worker, workload, tuning, machine, expert, peers, options, tell)
            # Afterwards, because the first to need an OpenMP runtime decides which one the process has.
            record["roofline"] = _roofline(worker, workload, machine, work, options, tell)
        except MeasurementError as error:
            record.setdefault("rows", [_row(OURS, expert, CompileError(str(error)))])
            record["error"] = str(error)
    record["rows"] += failed
    return record


def _prepared(
    peers: Sequence[Peer], workload: Workload, options: Options, processors: Sequence[int], tell: Listener
) -> tuple[list[Peer], list[JSON]]:
    """The peers that can be measured, after schedules were looked for; rows of those for which there is none."""
    ready: list[Peer] = []
    failed: list[JSON] = []
    for peer in peers:
        try:
            if peer.library == "tvm":
                tune_tvm(workload, options.threads, trials_of(peer.variant), processors, tell)
            ready.append(peer)
        except MeasurementError as error:
            failed.append(_row(peer.library, peer.variant, CompileError(str(error))))
    return ready, failed


def _rows(
    worker: Worker,
    workload: Workload,
    tuning: Tuning,
    machine: Machine,
    expert: str,
    peers: Sequence[Peer],
    options: Options,
    tell: Listener,
) -> list[JSON]:
    names = [(OURS, expert), *((peer.library, peer.variant) for peer in peers)]
    outcomes = worker.compare(
        [Program.of(tuning.after, machine), *peers],
        options,
        reference_of(workload),
        lambda event: tell(f"{event.phase}: {': '.join(names[event.index])}"),
    )
    return [_row(*name, outcome) for name, outcome in zip(names, outcomes, strict=True)]


def _row(library: str, variant: str, outcome: Outcome) -> JSON:
    return {"library": library, "variant": variant, "outcome": outcome.to_json()}


def _roofline(
    worker: Worker, workload: Workload, machine: Machine, work: Work, options: Options, tell: Listener
) -> JSON:
    tell("bandwidth and peak")
    threads, dtype = options.threads, peak_type(workload)
    cold, samples = options.cold, options.samples
    copy = copy_bandwidth(work.bytes, threads, worker, machine, cold=cold, samples=samples)
    read = read_bandwidth(work.bytes, threads, worker, machine, cold=cold, samples=samples)
    peak = None if dtype is None else arithmetic_peak(dtype, threads, worker, machine, samples=samples)
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
    """How a workload is measured."""
    return Options(
        threads=threads,
        samples=samples,
        budget=budget,
        cold=cold,
        seed=seed,
        ranges=ranges_of(workload),
        largest_error=LARGEST_ERROR.get(workload.element_type or "", LARGEST_ERROR["f32"]),
    )
