"""Whole models beside ONNX Runtime, in turns: `python -m benchmarks.models`.

The models are the nine networks for images in the wheel of `onnx`, whose weights are constants, or the given files. In
each round pdojo and ONNX Runtime run once each, with the same inputs and the same number of threads. The ratio of a
model is the median of the rounds' ratios.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from pdojo_tools.command import Arguments, positive, run_tool
from pdojo_tools.onnx_models import check, in_turns, onnx_runtime, random_inputs
from pdojo_tools.outputs import check_writable, write_output

from benchmarks.origin import JSON, commit, installed, kind_of
from pdojo.backends.measure.environment import environment
from pdojo.dialect.machines.registry import host

RESULTS = Path(__file__).parent / "results" / "programs"


def main(args: Sequence[str] | None = None) -> int:
    """Run the comparison; returns the exit code."""
    return run_tool(_run, args)


def models() -> list[Path]:
    """The files of the wheel's networks, small ones first."""
    import onnx

    folder = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
    return sorted(folder.glob("*.onnx"), key=lambda file: file.stat().st_size)


def _arguments() -> Arguments:
    parser = Arguments(prog="python -m benchmarks.models", description=__doc__.splitlines()[0] if __doc__ else "")
    add = parser.add_argument
    add("models", nargs="*", metavar="MODEL", help="ONNX files, or names among the wheel's: squeezenet resnet50")
    add("--threads", type=positive, default=host().threads, metavar="N", help="threads of both; by default all")
    add("--seconds", type=positive, default=10, metavar="S", help="most seconds of turns for each model")
    add("--check", action="store_true", help="compare the outputs with ONNX's reference evaluator, which takes minutes")
    add("--by-kernel", action="store_true", help="the time of each kernel of pdojo too")
    add("-o", "--output", metavar="FILE.json", help="store the results")
    keep = "store the results as those of this processor and this number of threads"
    add("--keep", action="store_true", help=keep)
    return parser


def _run(args: Sequence[str] | None) -> None:
    given = _arguments().parse_args(args)
    kept = RESULTS / f"models-{given.threads}-threads-{kind_of(environment()['processor'])}.json"
    output = given.output or (str(kept) if given.keep else None)
    if output is not None:
        check_writable(output)
    settings = {
        "command": " ".join(["python -m benchmarks.models", *(sys.argv[1:] if args is None else args)]),
        "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "environment": environment(),
        "commit": commit(),
        "threads": given.threads,
        "onnxruntime": installed("onnxruntime"),
    }
    sys.stdout.write(f"{environment()['processor']}, {given.threads} threads each\n")
    sys.stdout.write(f"{'model':16}{'compile':>9}{'pdojo':>10}{'ORT':>10}{'ratio':>8}{'rounds':>8}\n")
    records: list[JSON] = []
    for path in _chosen(given.models):
        records.append(_compared(path, given))
        sys.stdout.write(_line(records[-1]))
        sys.stdout.flush()
    if output is not None:
        write_output(json.dumps({"settings": settings, "models": records}, indent=1) + "\n", output)


def _chosen(names: Sequence[str]) -> list[Path]:
    known = {path.stem.removeprefix("light_"): path for path in models()}
    return [known.get(name, Path(name)) for name in names] if names else list(known.values())


def _compared(path: Path, given: argparse.Namespace) -> JSON:
    """The times of one model. Raises PdojoError if it cannot be read or compiled."""
    from pdojo import onnx

    started = time.perf_counter()
    model = onnx.load(path)
    inputs = random_inputs(model, None, 0)
    compiled, arrays = model.compile(threads=given.threads).prepare(**inputs)
    seconds = time.perf_counter() - started
    if given.check:
        found: Any = compiled(**arrays)
        check(model, inputs, found if len(model.outputs) > 1 else [found])
    calls = {"pdojo": lambda: compiled(**arrays), "ONNX Runtime": onnx_runtime(str(path), inputs, given.threads)}
    times = in_turns(calls, given.seconds)
    ours, theirs = times.values()
    record: JSON = {
        "model": path.stem.removeprefix("light_"),
        "compile_seconds": seconds,
        "kernels": len(compiled.model.kernels),
        "calls": len(compiled.model.calls),
        "pdojo": ours,
        "onnxruntime": theirs,
    }
    if given.by_kernel:
        rounds = [compiled.profile(**arrays) for _ in range(5)]
        names = [step.kernel.sym_name.data for step in compiled.model.calls]
        record["steps"] = [[name, median(each)] for name, each in zip(names, zip(*rounds, strict=True), strict=True)]
    return record


def ratio(record: JSON) -> float:
    """The time of pdojo, as a multiple of the time of ONNX Runtime."""
    return median(a / b for a, b in zip(record["pdojo"], record["onnxruntime"], strict=True))


def _line(record: JSON) -> str:
    ours, theirs = (f"{median(record[name]) * 1e3:7.4g} ms" for name in ("pdojo", "onnxruntime"))
    seconds = f"{record['compile_seconds']:.1f} s"
    line = f"{record['model']:16}{seconds:>9}{ours:>10}{theirs:>10}{ratio(record):8.3f}{len(record['pdojo']):8}\n"
    steps: list[tuple[str, float]] = record.get("steps", [])
    rows = (f"    {number:3} {name:40}{seconds * 1e3:9.4f} ms\n" for number, (name, seconds) in enumerate(steps))
    return line + "".join(rows)


if __name__ == "__main__":
    sys.exit(main())
