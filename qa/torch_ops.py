"""PyTorch's own samples of every operator (`op_db`), run through the backend of `torch.compile`.

python -m qa.torch_ops --samples 10
python -m qa.torch_ops --only softmax --only nn.functional.gelu --compiled
python -m qa.torch_page

The results of each operator are appended to a file of JSON lines; a later call goes on after them. Without
`--compiled`, the reference interpreter runs the kernels.
"""

# PyTorch need not be installed, and its functions take anything.
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

from qa.torch_samples import DTYPES, Outcome, Settings, operators, run_sample, samples_of, title

STATUSES = ("wrong", "crash", "whole", "partial", "PyTorch only", "skipped")
"""The status of an operator is the first of `wrong` and `crash` that a sample has, else that of all, or partial."""


@dataclass
class Row:
    """The results of an operator."""

    operator: str
    dtype: str
    mode: str
    samples: int = 0
    counts: dict[str, int] = field(default_factory=dict[str, int])
    """Samples by status."""
    failures: list[str] = field(default_factory=list[str])
    """The first wrong results and crashes, with their samples."""
    reasons: dict[str, int] = field(default_factory=dict[str, int])
    """Why PyTorch runs parts, with the number of samples."""
    seconds: float = 0.0

    @property
    def status(self) -> str:
        """The status of the operator."""
        found = [status for status in STATUSES if self.counts.get(status)]
        kinds = [status for status in found if status != "skipped"]
        if not kinds:
            return "skipped"
        return kinds[0] if kinds[0] in ("wrong", "crash") or len(kinds) == 1 else "partial"

    @property
    def key(self) -> tuple[str, str, str]:
        """The rows of other runs with this key are of the same samples."""
        return self.operator, self.dtype, self.mode

    def add(self, number: int, outcome: Outcome) -> None:
        """Count a sample."""
        self.samples += 1
        self.counts[outcome.status] = self.counts.get(outcome.status, 0) + 1
        if outcome.status in ("wrong", "crash") and len(self.failures) < 8:
            self.failures.append(f"sample {number}: {outcome.message}")
        for reason in outcome.reasons:
            self.reasons[reason] = self.reasons.get(reason, 0) + 1

    def __str__(self) -> str:
        counts = ", ".join(f"{self.counts[s]} {s}" for s in STATUSES if self.counts.get(s))
        return f"{self.operator:44} {self.dtype:5} {self.status:12} {counts} ({self.seconds:.1f} s)"


def run(name: str, op: Any, settings: Settings, most: int | None) -> Row:
    """Run the samples of an operator."""
    row = Row(name, settings.dtype, settings.mode)
    start = time.perf_counter()
    for number, sample in _spread(samples_of(op, settings), most):
        row.add(number, run_sample(op, sample, settings))
    row.seconds = time.perf_counter() - start
    return row


def _spread(samples: Sequence[Any], most: int | None) -> Iterator[tuple[int, Any]]:
    """At most so many samples, evenly spread, with their numbers."""
    count = len(samples)
    for k in range(count if most is None else min(most, count)):
        number = k if most is None or count <= most else k * count // most
        yield number, samples[number]


def stored(path: Path) -> dict[tuple[str, str, str], Row]:
    """The latest row of each operator in a file of results."""
    if not path.exists():
        return {}
    rows = [Row(**json.loads(line)) for line in path.read_text().splitlines() if line.strip()]
    return {row.key: row for row in rows}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run operators and print a table; 1 if a sample is wrong or crashes."""
    parser = argparse.ArgumentParser(prog="python -m qa.torch_ops", description=__doc__)
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="this operator; several times")
    parser.add_argument("--samples", type=int, metavar="N", help="at most N samples of each operator")
    parser.add_argument("--sample", type=int, metavar="N", help="only sample number N, with the whole error")
    parser.add_argument("--dtype", choices=tuple(DTYPES), default="f32", help="the element type of the samples")
    parser.add_argument("--gradients", action="store_true", help="gradients of the samples too")
    parser.add_argument("--compiled", action="store_true", help="compile the kernels instead of interpreting them")
    parser.add_argument("--tune", choices=("none", "pass"), default="none", help="moves of compiled kernels")
    parser.add_argument("--dynamo", action="store_true", help="torch.compile instead of tracing the operator alone")
    parser.add_argument("--again", action="store_true", help="also operators with stored results")
    parser.add_argument("--shard", default="0/1", metavar="K/N", help="every Nth operator, from the Kth")
    parser.add_argument("--store", type=Path, default=Path("torch-ops.jsonl"), help="the file of results")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    settings = Settings(
        options.dtype, options.gradients, options.compiled, options.tune, options.dynamo, options.sample is not None
    )
    if not settings.compiled:
        torch.set_num_threads(1)  # the samples are small
    known = {} if options.again or options.only else stored(options.store)
    first, every = map(int, options.shard.split("/"))
    chosen = [op for op in operators(settings.dtype) if not options.only or {title(op), op.name} & {*options.only}]
    if not chosen:
        parser.error(f"op_db has no operator {' or '.join(options.only)} with {settings.dtype} samples")
    rows: list[Row] = []
    for op in chosen[first::every]:
        row = known.get((title(op), settings.dtype, settings.mode))
        if row is None and options.sample is not None:
            outcome = run_sample(op, samples_of(op, settings)[options.sample], settings)
            print(outcome.status, outcome.message, *outcome.reasons, sep="\n")
            continue
        if row is None:
            row = run(title(op), op, settings, options.samples)
            print(row, flush=True)
            for failure in row.failures[: 8 if options.only else 1]:
                print(f"    {failure}", flush=True)
            with options.store.open("a") as file:
                file.write(json.dumps(asdict(row)) + "\n")
        rows.append(row)
    print(_summary(rows))
    return int(any(row.status in ("wrong", "crash") for row in rows))


def _summary(rows: Sequence[Row]) -> str:
    operators_, samples = Counter(row.status for row in rows), Counter[str]()
    for row in rows:
        samples.update(row.counts)
    lines = [f"{'status':14}{'operators':>10}{'samples':>10}"]
    lines += [f"{status:14}{operators_[status]:10}{samples[status]:10}" for status in STATUSES]
    lines += [f"{'all':14}{len(rows):10}{sum(samples.values()):10}"]
    return "\n".join(lines)


if __name__ == "__main__":
    raise SystemExit(main())
