"""Models of ONNX beside ONNX Runtime: `python -m benchmarks.programs onnx`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from pdojo_tools.onnx_models import check, in_turns, onnx_runtime, random_inputs

from benchmarks.origin import JSON
from benchmarks.records import OURS
from pdojo.backends.measure import Ok


def models() -> list[Path]:
    """The files of the wheel's networks, small ones first."""
    import onnx

    folder = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
    return sorted(folder.glob("*.onnx"), key=lambda file: file.stat().st_size)


def names(words: Sequence[str]) -> list[str]:
    """The cases that a command line names, by path or by their name in the wheel; all cases if it names none."""
    known = [path.stem.removeprefix("light_") for path in models()]
    return [word if word in known else str(Path(word).resolve()) for word in words] or known


def measure(asked: JSON) -> JSON:
    """Rows and notes of a model. Raises PdojoError if it cannot be read or compiled."""
    from pdojo import onnx

    known = {path.stem.removeprefix("light_"): path for path in models()}
    path, threads = known.get(asked["case"], Path(asked["case"])), asked["threads"]
    started = time.perf_counter()
    model = onnx.load(path)
    inputs = random_inputs(model, None, 0)
    compiled, arrays = model.compile(threads=threads).prepare(**inputs)
    seconds = time.perf_counter() - started
    if asked["check"]:
        found: Any = compiled(**arrays)
        check(model, inputs, found if len(model.outputs) > 1 else [found])
    calls = {OURS: lambda: compiled(**arrays), "ONNX Runtime": onnx_runtime(str(path), inputs, threads)}
    ours, theirs = in_turns(calls, asked["seconds"]).values()
    static = compiled.model
    notes = [f"compiled in {seconds:.1f} s; {len(static.calls)} calls of {len(static.kernels)} kernels"]
    record: JSON = {"rows": [row_of(OURS, "", ours), row_of("onnxruntime", "model", theirs)], "notes": notes}
    if asked["by_kernel"]:
        rounds = [compiled.profile(**arrays) for _ in range(5)]
        steps = [step.kernel.sym_name.data for step in static.calls]
        seconds_of = [median(each) for each in zip(*rounds, strict=True)]
        record["steps"] = [list(step) for step in zip(steps, seconds_of, strict=True)]
        notes += [f"{k:3} {steps[k]:40}{each * 1e3:9.4f} ms" for k, each in enumerate(seconds_of)]
    return record


def row_of(library: str, variant: str, seconds: Sequence[float]) -> JSON:
    """A row of samples, one in each turn."""
    outcome = Ok(tuple(seconds), 1, 1, None, 0.0, None, turns=tuple(range(len(seconds))))
    return {"library": library, "variant": variant, "outcome": outcome.to_json()}
