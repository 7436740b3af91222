"""ONNX's own backend tests, run with pdojo: a table by category, and every result as JSON.

    python -m qa.conformance                     all tests, with the interpreter on pdojo's kernels
    python -m qa.conformance --compiled          with compiled kernels
    python -m qa.conformance --only softmax      tests whose name contains a word
    python -m qa.conformance --json results.jsonl

A test is skipped if pdojo refuses the model with a reason. Tests of devices other than the CPU are left out. With
--json, each result is written at once, and a run goes on after the results of its engine that the file has.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
import unittest
import warnings
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from math import prod
from pathlib import Path
from time import process_time
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from pdojo.onnx.backend import Engine
    from pdojo.onnx.model import OnnxModel

LIMIT = 600
"""Time limit of a test in processor seconds."""
LARGE = 1 << 14
"""Elements of an input from which on models are compiled: the interpreter takes minutes for a model of images."""


@dataclass(frozen=True)
class TestResult:
    """The outcome of one test."""

    name: str
    category: str
    engine: Engine
    outcome: str
    """`passed`, `failed` or `skipped`."""
    reason: str
    """The reason of a failure or of a refusal."""
    operators: list[str]
    """Operators of the model, as the test has them."""
    seconds: float
    """Processor seconds."""


def results(
    words: Sequence[str], engine: Engine, names: Collection[str] = (), done: Collection[str] = ()
) -> Iterator[TestResult]:
    """Run the tests whose names contain all words; with `names`, those only; without those in `done`."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["ONNX_HOME"] = folder
        judged, suite = _suite()
        judged.engine = engine
        for category, cases, markers in suite:
            for name in sorted(cast("dict[str, object]", vars(cases))):
                title = name.removesuffix("_cpu")
                chosen = title not in done and (title in names if names else all(word in title for word in words))
                if name.startswith("test_") and title != name and chosen:
                    yield _result(cases(name), name, category, engine, markers)


@cache
def _suite() -> tuple[Any, list[tuple[str, Any, dict[str, Any]]]]:
    """The backend under test, and the categories with their test cases; onnx makes the tests once in a process."""
    import onnx.backend.test.runner as runner

    from pdojo.errors import UsageError
    from pdojo.onnx.backend import PdojoBackend, PdojoBackendRep

    class Rep(PdojoBackendRep):
        def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
            try:
                return super().run(inputs, **kwargs)
            except UsageError as error:
                raise unittest.SkipTest(str(error)) from error

    class Judged(PdojoBackend):
        @classmethod
        def prepare(cls, model: Any, device: str = "CPU", **kwargs: Any) -> PdojoBackendRep:
            try:
                prepared = super().prepare(model, device).model
                slow = cls.engine == "interpreter" and _is_large(prepared)
                return Rep(prepared, "none" if slow else cls.engine)
            except UsageError as error:
                raise unittest.SkipTest(str(error)) from error

    with warnings.catch_warnings():
        # The tests are made with casts that overflow.
        warnings.simplefilter("ignore")
        suite = runner.Runner(Judged, __name__)
    found: list[tuple[str, Any, dict[str, Any]]] = []
    items: dict[str, dict[str, Any]] = suite._test_items  # pyright: ignore[reportPrivateUsage]
    for title, cases in suite.test_cases.items():
        category = title.removeprefix("OnnxBackend").removesuffix("Test")
        found.append((category.removesuffix("Model"), cases, items[category]))
    return Judged, found


def _is_large(model: OnnxModel) -> bool:
    extents = [[e if isinstance(e, int) else 1 for e in each.shape or ()] for each in model.inputs]
    return max(map(prod, extents), default=1) > LARGE


def _result(case: unittest.TestCase, name: str, category: str, engine: Engine, markers: dict[str, Any]) -> TestResult:
    begun = process_time()
    outcome, reason = "passed", ""

    def stop(*_: object) -> None:
        raise TimeoutError(f"it takes more than {LIMIT} s")

    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, LIMIT)
    try:
        getattr(case, name)()
    except unittest.SkipTest as skip:
        outcome, reason = "skipped", str(skip)
    except Exception as error:  # noqa: BLE001  # whatever is wrong with one test, the others go on
        outcome, reason = "failed", f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    models = [proto for proto in markers[name].proto if proto is not None]
    operators = sorted({node.op_type for proto in models for node in getattr(proto, "graph", proto).node})
    seconds = process_time() - begun
    return TestResult(name.removesuffix("_cpu"), category, engine, outcome, reason, operators, seconds)


def stored(path: Path) -> list[TestResult]:
    """The results in a file, of all engines; none if there is no file."""
    lines = path.read_text().splitlines() if path.exists() else []
    return [TestResult(**json.loads(line)) for line in lines]


def table(found: Sequence[TestResult]) -> str:
    """The numbers of tests by category and outcome, then failures and reasons of refusals."""
    lines = [f"{'category':18} {'passed':>7} {'failed':>7} {'skipped':>8}"]
    for category in [*dict.fromkeys(each.category for each in found), "all"]:
        rows = [each for each in found if category in (each.category, "all")]
        counts = Counter(each.outcome for each in rows)
        lines.append(f"{category:18} {counts['passed']:7} {counts['failed']:7} {counts['skipped']:8}")
    failed = [each for each in found if each.outcome == "failed"]
    lines += ["", *(f"failed: {each.name}: {each.reason[:200]}" for each in failed)]
    reasons = Counter(_short(each.reason) for each in found if each.outcome == "skipped")
    lines += ["", *(f"skipped {count:4}: {reason}" for reason, count in reasons.most_common())]
    return "\n".join(lines)


def _short(reason: str) -> str:
    """A reason without the node's name."""
    _, found, rest = reason.partition("' (")
    return f"({rest}" if found and reason.startswith("node ") else reason


def main(args: Sequence[str] | None = None) -> int:
    """Run the tool; returns 1 if a test failed."""
    parser = argparse.ArgumentParser(prog="python -m qa.conformance", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", nargs="+", default=[], metavar="WORD", help="tests whose names contain all words")
    parser.add_argument("--compiled", action="store_true", help="run compiled kernels, made by the pass")
    parser.add_argument("--plain", action="store_true", help="run compiled kernels without the pass")
    parser.add_argument("--json", type=Path, metavar="FILE", help="append results, one line each; go on with the rest")
    given = parser.parse_args(args)
    engine: Engine = "pass" if given.compiled else "none" if given.plain else "interpreter"
    found = [each for each in stored(given.json) if each.engine == engine] if given.json else []
    for each in results(given.only, engine, done={each.name for each in found}):
        found.append(each)
        print(f"{each.outcome} {each.seconds:.2f} s {each.category} {each.name}", file=sys.stderr, flush=True)
        if given.json:
            with given.json.open("a") as file:
                file.write(json.dumps(asdict(each)) + "\n")
    print(table(found))
    return int(any(each.outcome == "failed" for each in found))


if __name__ == "__main__":
    sys.exit(main())
