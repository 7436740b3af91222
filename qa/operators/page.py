"""The table of operators in `docs/build.md`: `python -m qa.operators.page` renews it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pdojo.build.operator import Operator
from pdojo.build.records import OPERATORS
from qa.onnx_page import replaced
from qa.operators.peers import AbsentError, Table, asked, operands_of
from qa.operators.tables import CALLS, NODES

PAGE = Path(__file__).parents[2] / "docs" / "build.md"
BEGIN, END = "<!-- python -m qa.operators.page -->\n", "<!-- end -->\n"


def body() -> str:
    """The rows: each operator with its results, the type of its computation, and the operators that compute it."""
    lines = ["| function | results | f16, bf16 | samples | ATen | ONNX |", "| --- | --- | --- | ---: | --- | --- |"]
    for record in sorted(OPERATORS.values(), key=lambda record: record.name):
        computed = "in f32" if record.computes_in("f16") == "f32" else "as they are" if "f16" in record.types else ""
        cells = [", ".join(record.results), computed, len(record.samples), _peers(record, CALLS), _peers(record, NODES)]
        lines.append(f"| `{record.name}` | {' | '.join(map(str, cells))} |")
    return "\n".join(lines) + "\n"


def _peers(record: Operator, table: Table) -> str:
    """The operators that compute some sample."""
    found: dict[str, None] = {}
    for sample in record.samples:
        arguments, keywords = operands_of(sample, (sample.types or record.types)[0])
        for peer in table.get(record.name, []):
            try:
                call: Any = asked(peer, arguments, keywords)
            except AbsentError:
                continue
            found[f"`{call.operator.removesuffix('.default')}`"] = None
    return ", ".join(sorted(found))


def main(args: Sequence[str] | None = None) -> int:
    """Write the page."""
    PAGE.write_text(replaced(PAGE.read_text(), BEGIN, body(), END))
    return 0


if __name__ == "__main__":
    sys.exit(main())
