"""Whole programs beside PyTorch or ONNX Runtime: random functions, models of PyTorch, models of ONNX.

`functions` are the sixty of `torch_fusions.txt`, `models` those of `torch_models.py`, beside PyTorch (eager) and
`torch.compile` (Inductor; models also with frozen weights), in a process for each case with empty caches on disk.
Models are compiled again in a second process. `sizes` are the functions of `torch_sizes.py`, compiled once for nine
sizes. `onnx` takes the nine networks for images in the wheel of `onnx`, whose weights are constants, or files, beside
ONNX Runtime; `public` takes files of packages (`public_models.toml`). All implementations of a case are called in turns
with the same arguments, on the same number of threads; ratios are medians over pairs of samples of one turn.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from importlib import import_module
from pathlib import Path

from pdojo_tools.command import Arguments, positive, tool
from rich.console import Console

from benchmarks import runs
from benchmarks.contests import means_of, print_contests
from benchmarks.origin import JSON, installed, kind_of
from benchmarks.records import OURS
from benchmarks.report import print_record
from benchmarks.tables import console_for
from pdojo.backends.measure import CompileError
from pdojo.dialect.machines.registry import host
from pdojo.errors import UsageError

SUITES: Mapping[str, str] = {
    "functions": "benchmarks.torch_fusions",
    "models": "benchmarks.torch_models",
    "sizes": "benchmarks.torch_sizes",
    "onnx": "benchmarks.onnx_models",
    "public": "benchmarks.public_models",
}
"""Modules with `names`, the cases for words of the command line, and `measure`, which makes the record of a case."""
KEPT = {
    "functions": "torch-fusions",
    "models": "torch-models",
    "sizes": "torch-sizes",
    "onnx": "models",
    "public": "public",
}
"""The beginnings of stored files' names."""
OF_ONNX = ("onnx", "public")
RESULTS = Path(__file__).parent / "results" / "programs"
ROOT = Path(__file__).parents[1]
LIMIT = 560
"""Most seconds of a process."""


def _jobs(settings: JSON, _: ExitStack) -> list[runs.Job]:
    return [runs.Job(case, settings["threads"], partial(_measure, settings, case)) for case in settings["cases"]]


def _measure(settings: JSON, case: str, tell: runs.Listener) -> JSON:
    """The record of a case, from a process of its own; models are compiled a second time, with filled caches."""
    with tempfile.TemporaryDirectory() as caches:
        tell("compiling and timing")
        found = _in_process({**settings, "case": case}, caches)
        if settings["suite"] == "models" and "error" not in found:
            tell("compiling again")
            again = _in_process({**settings, "case": case, "rounds": 0}, caches)
            found["notes"] += [f"again {note}" for note in again.get("notes", []) if note.startswith("compiled")]
    return {"label": case, "threads": settings["threads"], "cold": False, **found}


def _in_process(asked: JSON, caches: str) -> JSON:
    places = {} if asked["suite"] in OF_ONNX else {"TORCHINDUCTOR_CACHE_DIR": f"{caches}/inductor"}
    if places:
        places["XDG_CACHE_HOME"] = f"{caches}/pdojo"
    try:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.programs", "--case", json.dumps(asked)],
            env={**os.environ, **places},
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return _failed(f"no result within {LIMIT} seconds")
    if done.returncode:
        return _failed(done.stderr.strip()[-2000:])
    found: JSON = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def _failed(reason: str) -> JSON:
    row = {"library": OURS, "variant": "", "outcome": CompileError(reason).to_json()}
    return {"rows": [row], "error": reason, "notes": []}


BENCHMARK = runs.Benchmark(_jobs, print_contests, means_of, print_record)


def _arguments() -> Arguments:
    parser = Arguments(prog="python -m benchmarks.programs", description=__doc__)
    add = parser.add_argument
    add("suite", nargs="?", metavar="SUITE", help=f"one of {', '.join(SUITES)}")
    add("cases", nargs="*", metavar="WORD", help="words, of which a case's name contains one, or ONNX files; else all")
    add("--threads", type=positive, metavar="N", help="threads, for everyone; by default the machine's")
    add("--seconds", type=positive, default=10, metavar="S", help="most seconds of turns for a model of ONNX")
    add("--check", action="store_true", help="compare with ONNX's reference evaluator, which takes minutes")
    add("--by-kernel", action="store_true", help="the time of each kernel of pdojo too, for models of ONNX")
    add("--keep", action="store_true", help="store the results as those of this processor and this number of threads")
    add("--case", help=argparse.SUPPRESS)
    runs.add_files(parser)
    return parser


@tool
def main(args: Sequence[str] | None) -> None:
    """Run the tool."""
    parser = _arguments()
    given = parser.parse_args(args)
    if given.case is not None:
        asked = json.loads(given.case)
        sys.stdout.write(f"{json.dumps(import_module(SUITES[asked['suite']]).measure(asked))}\n")
        return
    console = console_for()
    _, records = runs.run(console, parser, given, lambda: _begin(console, given))
    if given.show is None:
        runs.require_results(records)


def _begin(_: Console, given: argparse.Namespace) -> tuple[Path, JSON]:
    """The output file and the settings of a new run. Raises UsageError."""
    if given.suite not in SUITES:
        raise UsageError(f"name what to measure: {', '.join(SUITES)}")
    if given.suite != "onnx" and (given.check or given.by_kernel):
        raise UsageError("--check and --by-kernel are for models of ONNX")
    needed = ("onnx", "onnxruntime") if given.suite in OF_ONNX else ("torch",)
    versions = {package: installed(package) for package in needed}
    missing = [package for package, version in versions.items() if version is None]
    if missing:
        raise UsageError(f"nothing to compare with: {', '.join(missing)} is not installed (make peers)")
    threads = given.threads or host().threads
    settings: JSON = {
        "benchmark": "programs",
        **runs.usual_settings(),
        "versions": versions,
        "suite": given.suite,
        "cases": import_module(SUITES[given.suite]).names(given.cases),
        "threads": threads,
    }
    settings |= {name: getattr(given, name) for name in ("seconds", "check", "by_kernel")}
    output = given.output
    if given.keep:
        processor = kind_of(settings["environment"]["processor"])
        output = str(RESULTS / f"{KEPT[given.suite]}-{threads}-threads-{processor}.json")
    return runs.output_file(output, "programs"), settings


if __name__ == "__main__":
    sys.exit(main())
