"""Tables of operators in the pages of `pdojo.build`, ONNX and PyTorch: `python -m qa.operators.page` renews them."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pdojo_tools.outputs import replaced

from pdojo.build.operator import Operator
from pdojo.build.records import OPERATORS
from qa.operators.peers import AbsentError, Table, asked, operands_of
from qa.operators.tables import CALLS, NODES

DOCS = Path(__file__).parents[2] / "docs"
BEGIN, END = "<!-- python -m qa.operators.page -->\n", "<!-- end -->\n"


def records() -> str:
    """Each operator of the table with its results, the type of its computation, and its peers."""
    lines = ["| function | results | f16, bf16 | samples | ATen | ONNX |", "| --- | --- | --- | ---: | --- | --- |"]
    for record in sorted(OPERATORS.values(), key=lambda record: record.name):
        computed = "in f32" if record.computes_in("f16") == "f32" else "as they are" if "f16" in record.types else ""
        peers = [", ".join(f"`{_short(name)}`" for name in _peers(record, table)) for table in (CALLS, NODES)]
        cells = [", ".join(record.results), computed, len(record.samples), *peers]
        lines.append(f"| `{record.name}` | {' | '.join(map(str, cells))} |")
    return "\n".join(lines) + "\n"


def _short(name: str) -> str:
    plain = name.removeprefix("aten.").removesuffix(".default")
    return f"torch.ops.{plain}" if plain.startswith("pdojo.") else plain


def _peers(record: Operator, table: Table) -> list[str]:
    """The operators that compute some sample; those of PyTorch with namespace and overload."""
    found: dict[str, None] = {}
    for sample in record.samples:
        arguments, keywords = operands_of(sample, (sample.types or record.types)[0])
        for peer in table.get(record.name, []):
            try:
                call: Any = asked(peer, arguments, keywords)
            except AbsentError:
                continue
            found[call.full if table is CALLS else call.operator] = None
    return sorted(found)


def functions_of(table: Table) -> Mapping[str, Sequence[str]]:
    """The functions of `pdojo.build` whose samples an operator computes too; of PyTorch's the key is the full name."""
    found: dict[str, list[str]] = {}
    for record in sorted(OPERATORS.values(), key=lambda record: record.name):
        for name in _peers(record, table):
            found.setdefault(name, []).append(f"`{record.name}`")
    return found


def onnx_operators() -> str:
    """The operators of ONNX with what pdojo makes of their nodes."""
    from onnx import defs

    from pdojo.onnx.operators.registry import registered
    from pdojo.onnx.protos import UNDEFINED

    functions = functions_of(NODES)
    known = {name for domain, name in registered() if domain != "com.microsoft" and name not in UNDEFINED}
    names = {each.name for each in defs.get_all_schemas() if not each.domain and not each.deprecated} | known
    status = {name: _status(name, lowered=name in known) for name in sorted(names)}
    counts = Counter(status.values())
    lowered = counts["kernel"] + counts[_EITHER]
    lines = [
        f"{lowered} operators are lowered, {counts[_EITHER]} of which NumPy computes at indices that are computed, "
        f"as it does {counts['NumPy']} others.",
        f"{counts['step']} choose or repeat graphs, {counts['known values']} take known values, {counts['function']} "
        f"is a function of others, and {counts['no']} are not supported.",
        "",
        "| operator | status | functions |",
        "| --- | --- | --- |",
    ]
    lines += [f"| {name} | {each} | {', '.join(functions.get(name, []))} |" for name, each in status.items()]
    return "\n".join(lines) + "\n"


_EITHER = "kernel, or NumPy"


def _status(name: str, *, lowered: bool) -> str:
    """The treatment of an operator of ONNX."""
    from onnx import defs

    from pdojo.onnx.control_flow import STRUCTURES
    from pdojo.onnx.definitions import definition
    from pdojo.onnx.steps import AT_RUN_TIME, RANDOM

    if lowered:
        return _EITHER if name in AT_RUN_TIME else "kernel"
    if name in STRUCTURES:
        return "step" if name in ("If", "Loop", "Scan") else "known values"
    schema = definition(name, defs.onnx_opset_version(), "")
    is_function = schema.has_function or schema.has_context_dependent_function
    return "no" if name in RANDOM else "function" if is_function else "NumPy"


def torch_operators() -> str:
    """The operators of PyTorch that have rules."""
    from pdojo.torch import operators, recurrent_layers
    from pdojo.torch.operators.registry import RULES

    assert operators
    assert recurrent_layers
    functions = functions_of(CALLS)
    lines = ["| operator | known operands | functions |", "| --- | --- | --- |"]
    for name in sorted(RULES):
        positions = ", ".join(str(each) for each in sorted(RULES[name].static))
        lines.append(f"| `{_short(name)}` | {positions} | {', '.join(functions.get(name, []))} |")
    return "\n".join(lines) + "\n"


PAGES: Mapping[str, Callable[[], str]] = {
    "build.md": records,
    "onnx.md": onnx_operators,
    "torch-operators.md": torch_operators,
}
"""Pages with a generated part, and what prints it."""


def main(args: Sequence[str] | None = None) -> int:
    """Write the pages."""
    for name, printed in PAGES.items():
        page = DOCS / name
        page.write_text(replaced(page.read_text(), BEGIN, printed(), END))
    return 0


if __name__ == "__main__":
    sys.exit(main())
