"""All library kernels checked, then the paper's Table 3 timed, on the GPU of this computer, in one run of minutes.

`python -m benchmarks.gpu` is what anybody with a GPU runs first; it needs PyTorch built for that GPU. The heuristic
pass tunes the kernels, and its open choices are timed. Results are compared with float64 on poisoned outputs. Times are
those of CUDA graphs, in turns, on arrays that are in the last cache (warm) and on arrays that are not (cold). A kernel
that crashes or hangs ends its process only. Results are written as they arrive; --resume FILE goes on with them.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from time import strftime

from pdojo_tools.command import Arguments, run_tool
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks.gpu.parent import Job, Results, Runner
from benchmarks.gpu.tables import print_tables
from pdojo.errors import MeasurementError
from pdojo.kernels import TABLE_3, kernel_names, workload

FOLDER = Path("benchmarks/results")


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns the exit code, 1 if a kernel failed."""
    return run_tool(_main, arguments)


def _main(arguments: Sequence[str] | None) -> None:
    given = _parser().parse_args(arguments)
    console = Console()
    if given.show is not None:
        print_tables(Results.read(given.show), console)
        return
    target = given.resume or given.output or FOLDER / f"gpu-{strftime('%Y-%m-%d-%H%M')}.json"
    results = Results.read(target) if given.resume else Results(target)
    _run(given, results, console)
    print_tables(results, console)
    console.print(f"results: {target}")
    if results.failures:
        raise MeasurementError(f"{len(results.failures)} of {len(results.done)} jobs failed")


def _run(given: argparse.Namespace, results: Results, console: Console) -> None:
    times = [workload(text) for text in given.workloads or TABLE_3]
    jobs = [] if given.workloads else [Job("check", workload(name)) for name in kernel_names()]
    jobs += [Job("time", each, compiled=not given.no_compile, autotune=given.autotune) for each in times]
    left = [job for job in jobs if job.key not in results.done]
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Runner() as runner:
        results.device = runner.device()
        with Progress(*columns, console=console) as progress:
            task = progress.add_task("", total=len(left))
            for job in left:
                progress.update(task, description=f"{job.kind} {job.workload}")
                results.add(job, runner.run(job))
                progress.advance(task)


def _parser() -> argparse.ArgumentParser:
    parser = Arguments(prog="python -m benchmarks.gpu", description=__doc__)
    add = parser.add_argument
    add("workloads", nargs="*", metavar="WORKLOAD", help="time these only; all checks and Table 3 if none")
    add("--no-compile", action="store_true", help="without torch.compile")
    add("--autotune", action="store_true", help="also torch.compile in mode max-autotune, which takes long")
    add("-o", "--output", type=Path, metavar="FILE.json", help="results; by default in benchmarks/results")
    add("--resume", type=Path, metavar="FILE.json", help="go on with an interrupted run")
    add("--show", type=Path, metavar="FILE.json", help="print the tables of a run")
    return parser


if __name__ == "__main__":
    sys.exit(main())
