"""`docs/math.md`: the composite functions, from their records (`python -m qa.math_page`)."""

from __future__ import annotations

from pathlib import Path

from pdojo_tools.outputs import replaced

from pdojo.math.composites import COMPOSITES, Composite

PAGE = Path(__file__).parents[1] / "docs" / "math.md"
BEGIN, END = "<!-- python -m qa.math_page -->\n", "<!-- end -->\n"


def _row(record: Composite) -> str:
    parameters = [f"{name}={value:.4g}" if isinstance(value, float) else f"{name}={value}"
                  for name, value in record.parameters.items()]  # fmt: skip
    types = "f32, f16, bf16" if record.computing("f64") is None else "all" if record.integers else "floats"
    error, beside = record.accuracy.ulps, record.accuracy.beside
    shown = f"{error:g}" + (f" + {beside:g}" if beside else "")
    summary = record.summary.removesuffix(".").replace("|", "\\|")
    called = f"{record.name}({', '.join([*record.operands, *parameters])})"
    return f"| `{called}` | {summary} | {types} | {shown} |"


def with_table(text: str) -> str:
    """The page with the table of all records."""
    rows = ["| function | result | types | error |", "| --- | --- | --- | --- |", *map(_row, COMPOSITES.values())]
    return replaced(text, BEGIN, "\n".join(rows) + "\n", END)


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text()))
