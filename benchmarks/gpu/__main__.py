"""Library kernels checked on a GPU, and the paper's Table 3 timed there against PyTorch.

`prepare FILE` makes the programs on any computer; it needs no GPU. `run FILE` runs them on a computer with a GPU: small
programs first, then Table 3 with every variant of the heuristic pass, hardware counters if `ncu` is available, and a
check of all library kernels. Results are compared with float64 on poisoned outputs. Times are of CUDA graphs, in turns,
on arrays in the last-level cache (warm) and on arrays outside of it (cold). A kernel that crashes or hangs ends only
its own process.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from time import monotonic, strftime

from pdojo_tools.command import Arguments, positive, tool
from rich.console import Console

from benchmarks.gpu.counters import counters
from benchmarks.gpu.parent import Job, Results, Runner
from benchmarks.gpu.programs import Programs, Task, compiler_of, prepare, tasks
from benchmarks.gpu.tables import OURS, best, print_results
from benchmarks.tables import progress_bar
from pdojo.dialect.machines.registry import known_machine
from pdojo.errors import MeasurementError, UsageError
from pdojo.kernels import TABLE_3, workload

FOLDER = Path("benchmarks/results/gpu")
PROFILED = 60.0
"""Limit of seconds for the profiler."""


@tool
def main(arguments: Sequence[str] | None) -> None:
    """The command, 1 if a kernel failed."""
    given = _parser().parse_args(arguments)
    given.command(given, Console())


def _prepare(given: argparse.Namespace, console: Console) -> None:
    timed = [workload(text) for text in given.workloads or TABLE_3]
    work = tasks(timed, everything=not given.workloads)
    compiler = compiler_of(known_machine(given.machine))
    with progress_bar(console, len(work)) as (tell, advance):

        def made(task: Task, count: int) -> None:
            tell(f"{task.group} {task.workload.label}: {count}")
            advance()

        programs = prepare(work, compiler, given.file, given.jobs or os.cpu_count() or 1, made)
    size = given.file.stat().st_size
    console.print(f"{given.file}: {len(programs.rows)} programs for {programs.machine}, {size / 1e6:.1f} MB")


def _run(given: argparse.Namespace, console: Console) -> None:
    programs = Programs.read(given.file)
    target = given.resume or given.output or FOLDER / f"{strftime('%Y-%m-%d-%H%M')}.json"
    started = strftime("%Y-%m-%d %H:%M")
    results = Results.read(target) if given.resume else Results(target, programs.digest, started=started)
    if results.digest != programs.digest:
        raise UsageError(f"{target} has results of other programs than those of {given.file}")
    with Runner.of(given.file) as runner:
        results.device = runner.device()
        run(programs, given.file, runner, results, console, _deadline(given), _jobs(programs, given))
    print_results(results, console)
    console.print(f"results: {target}")
    if results.failures:
        raise MeasurementError(f"{len(results.failures)} of {len(results.done)} jobs failed")


def _deadline(given: argparse.Namespace) -> float:
    return float("inf") if given.limit is None else monotonic() + given.limit


def _jobs(programs: Programs, given: argparse.Namespace) -> list[Job]:
    """A job for each workload of each group; small programs first, checks last."""
    rows: dict[tuple[str, str], list[int]] = {}
    for number, row in enumerate(programs.rows):
        rows.setdefault((row.group, row.workload.label), []).append(number)
    found: list[Job] = []
    for kind in ("small", "time", "check"):
        for (group, name), numbers in rows.items():
            if group == kind:
                is_timed = kind == "time"
                compiled = is_timed and not given.no_compile
                found.append(Job(kind, name, tuple(numbers), compiled, is_timed and given.autotune))
    return found


def run(
    programs: Programs,
    file: Path,
    runner: Runner,
    results: Results,
    console: Console,
    deadline: float,
    jobs: Sequence[Job],
) -> None:
    """Run the jobs without a result; none begins after the deadline, and the missing ones are named."""
    left = [job for job in jobs if job.key not in results.done]
    with progress_bar(console, len(left)) as (tell, advance):
        while left and monotonic() < deadline:
            job = left.pop(0)
            tell(job.key)
            results.add(job, runner.run(job))
            advance()
            if job.kind == "time" and not any(each.kind == "time" for each in left):
                tell("counters")
                runner.close()
                _profile(programs, file, results, min(PROFILED, deadline - monotonic()))
    if left:
        console.print(f"the time was over before {len(left)} jobs: {', '.join(job.key for job in left)}")


def _profile(programs: Programs, file: Path, results: Results, seconds: float) -> None:
    """Add the counters of the fastest program of each row."""
    numbers: list[int] = []
    for row in results.of("time").values():
        if "warm" in row:
            name, _ = best(row["warm"])
            numbers += [n for n in row["rows"] if programs.rows[n].title == name.removeprefix(OURS)]
    try:
        found = counters(file, numbers, seconds)
        results.counters = {programs.rows[number].name: each for number, each in found.items()}
    except MeasurementError as error:
        results.counters = {"error": {"error": str(error)}}
    results.write()


def _show(given: argparse.Namespace, console: Console) -> None:
    print_results(Results.read(given.results), console)


def _parser() -> argparse.ArgumentParser:
    parser = Arguments(prog="python -m benchmarks.gpu", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    made = commands.add_parser("prepare", help="compile the programs; needs no GPU")
    made.add_argument("file", type=Path, metavar="FILE", help="where to write them; what it has already is kept")
    made.add_argument("workloads", nargs="*", metavar="WORKLOAD", help="time these only; everything if none")
    made.add_argument("--machine", default="nvidia-sm90", help="the GPU: nvidia-sm90 by default, or amd-gfx942")
    made.add_argument("-j", "--jobs", type=positive, metavar="N", help="processes; one for each processor by default")
    made.set_defaults(command=_prepare)
    ran = commands.add_parser("run", help="run prepared programs on the GPU of this computer")
    ran.add_argument("file", type=Path, metavar="FILE", help="programs that `prepare` wrote")
    ran.add_argument("--no-compile", action="store_true", help="without torch.compile")
    ran.add_argument(
        "--autotune", action="store_true", help="also torch.compile in mode max-autotune, which takes long"
    )
    ran.add_argument("--limit", type=positive, metavar="SECONDS", help="begin no job later than this")
    ran.add_argument("-o", "--output", type=Path, metavar="FILE.json", help=f"results; by default in {FOLDER}")
    ran.add_argument("--resume", type=Path, metavar="FILE.json", help="go on with an interrupted run")
    ran.set_defaults(command=_run)
    shown = commands.add_parser("show", help="print the tables of a run")
    shown.add_argument("results", type=Path, metavar="FILE.json")
    shown.set_defaults(command=_show)
    return parser


if __name__ == "__main__":
    sys.exit(main())
