"""`docs/onnx.md`: the results of the conformance suite.

python -m qa.conformance --json results.jsonl
python -m qa.conformance --compiled --json results.jsonl
python -m qa.onnx_page results.jsonl
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pdojo_tools.outputs import replaced

PAGE = Path(__file__).parents[1] / "docs" / "onnx.md"
BEGIN, END = "<!-- python -m qa.onnx_page -->\n", "<!-- end -->\n"
ENGINES = {"interpreter": "interpreter", "pass": "compiled"}


def _reason(text: str) -> str:
    """A reason without the name of the node, in a cell of a table."""
    _, found, rest = text.partition("): ")
    return " ".join((rest if found and text.startswith("node ") else text).replace("|", "/").split())[:120]


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


def refusals(tests: Sequence[Mapping[str, Any]]) -> list[str]:
    """The operators of which some test of a node has not passed, with the most frequent reasons."""
    lines = ["", "| operator | tests passed | otherwise |", "| --- | --- | --- |"]
    own = [t for t in tests if t["category"] == "Node" and "_expanded" not in t["name"]]
    for name in sorted({name for test in own for name in test["operators"]}):
        mine = [test for test in own if name in test["operators"]]
        reasons = Counter(_reason(test["reason"]) for test in mine if test["outcome"] != "passed")
        if reasons:
            said = "; ".join(reason for reason, _ in reasons.most_common(2))
            lines.append(f"| {name} | {len(mine) - reasons.total()} of {len(mine)} | {said} |")
    return lines


def body(results: Sequence[Mapping[str, Any]]) -> str:
    """The generated part of the page."""
    tests = [test for test in results if test["engine"] == "interpreter"]
    return "\n".join(["## The suite", "", *suite(results), *refusals(tests)]) + "\n"


def main(args: Sequence[str] | None = None) -> int:
    """Write the page for a file of results."""
    (path,) = sys.argv[1:] if args is None else args
    results = [json.loads(line) for line in Path(path).read_text().splitlines()]
    PAGE.write_text(replaced(PAGE.read_text(), BEGIN, body(results), END))
    return 0


if __name__ == "__main__":
    sys.exit(main())
