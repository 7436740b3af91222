"""`docs/onnx.md`: the operators of ONNX with their status, from results of the conformance suite.

python -m qa.conformance --json results.jsonl
python -m qa.conformance --compiled --json results.jsonl
python -m qa.onnx_page results.jsonl
"""

from __future__ import annotations

import csv
import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGE, OPERATORS = ROOT / "docs" / "onnx.md", ROOT / "docs" / "onnx_operators.csv"
BEGIN, END = "<!-- python -m qa.onnx_page -->\n", "<!-- end -->\n"
ENGINES = {"interpreter": "interpreter", "pass": "compiled"}
CLASSES = {
    "E1": "affine accesses and arithmetic",
    "E2": "also comparisons, selections, casts, bits",
    "E3": "operands that must be known",
    "M": "indirection",
    "R": "recurrences",
    "X": "shapes that depend on data",
    "N": "no numeric kernel",
}


@dataclass(frozen=True)
class Row:
    """An operator in the table."""

    operator: str
    kind: str
    status: str
    passed: int
    tests: int
    reason: str

    def __str__(self) -> str:
        tests = f"{self.passed} of {self.tests}" if self.tests else ""
        return f"| {self.operator} | {self.kind} | {self.status} | {tests} | {self.reason} |"


def operators() -> list[Mapping[str, str]]:
    """The operators of ONNX's default domain that are not deprecated."""
    with OPERATORS.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return [row for row in rows if row["domain"] == "ai.onnx" and "deprecated" not in row["class"]]


def rows(tests: Sequence[Mapping[str, Any]]) -> list[Row]:
    """The table for the results of tests."""
    from pdojo.onnx.control_flow import STRUCTURES
    from pdojo.onnx.operators.registry import registered

    known = {name for domain, name in registered() if not domain}
    found: list[Row] = []
    for row in operators():
        name = row["op"]
        own = [t for t in tests if t["category"] == "Node" and name in t["operators"]]
        own = [t for t in own if not t["name"].endswith("_expanded") and "_expanded_ver" not in t["name"]]
        passed = sum(test["outcome"] == "passed" for test in own)
        function = bool(row["function_body"]) and passed > 0
        status = "kernel" if name in known else "known values" if name in STRUCTURES else "function" if function else ""
        reasons = Counter(_reason(test["reason"]) for test in own if test["outcome"] != "passed")
        said = "; ".join(reason for reason, _ in reasons.most_common(2))
        found.append(Row(name, row["class"], status or "no", passed, len(own), said or _unsupported(status, row)))
    return found


def _reason(text: str) -> str:
    """A reason without the name of the node, in a cell of a table."""
    _, found, rest = text.partition("): ")
    return " ".join((rest if found and text.startswith("node ") else text).replace("|", "/").split())[:120]


def _unsupported(status: str, row: Mapping[str, str]) -> str:
    return "" if status else row["excluded_feature"] or row["class_text"]


def suite(results: Sequence[Mapping[str, Any]]) -> list[str]:
    """The numbers of tests by category, outcome and engine, and the failures."""
    lines = [
        "| category | engine | tests run | passed | failed | refused |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
    ]
    for category in [*dict.fromkeys(test["category"] for test in results), "all"]:
        for engine, title in ENGINES.items():
            own = [test for test in results if test["engine"] == engine and category in (test["category"], "all")]
            counts = Counter(test["outcome"] for test in own)
            numbers = " | ".join(str(counts[outcome]) for outcome in ("passed", "failed", "skipped"))
            lines.append(f"| {category} | {title} | {len(own)} | {numbers} |")
    lines += ["", "| failed test | engine | reason |", "| --- | --- | --- |"]
    failed = [test for test in results if test["outcome"] == "failed"]
    return [*lines, *(f"| {t['name']} | {ENGINES[t['engine']]} | {_reason(t['reason'])} |" for t in failed)]


def body(results: Sequence[Mapping[str, Any]]) -> str:
    """The generated part of the page."""
    tests = [test for test in results if test["engine"] == "interpreter"]
    lines = ["## The suite", "", *suite(results)]
    listed = rows(tests)
    kernels = [row for row in listed if row.kind != "N"]
    supported = sum(row.status != "no" and (row.passed > 0 or not row.tests) for row in kernels)
    lines += ["", "## The operators", ""]
    share = f"{supported / len(kernels):.1%}"
    lines += [f"{supported} of {len(kernels)} operators that are numeric kernels are supported: {share}."]
    lines += [
        "A *kernel* is lowered by pdojo, a *function* is computed by the nodes of its definition, and operators of"
    ]
    lines += ["*known values* decide which nodes there are."]
    lines += ["", "| class | its operators have |", "| --- | --- |"]
    lines += [*(f"| {name} | {text} |" for name, text in CLASSES.items()), ""]
    lines += ["| operator | class | status | tests passed | otherwise |", "| --- | --- | --- | --- | --- |"]
    return "\n".join([*lines, *map(str, listed)]) + "\n"


def replaced(text: str, begin: str, generated: str, end: str) -> str:
    """A page with its generated part, between two lines, replaced."""
    before, _, rest = text.partition(begin)
    return f"{before}{begin}\n{generated}\n{end}{rest.partition(end)[2]}"


def main(args: Sequence[str] | None = None) -> int:
    """Write the page for a file of results."""
    (path,) = sys.argv[1:] if args is None else args
    results = [json.loads(line) for line in Path(path).read_text().splitlines()]
    PAGE.write_text(replaced(PAGE.read_text(), BEGIN, body(results), END))
    return 0


if __name__ == "__main__":
    sys.exit(main())
