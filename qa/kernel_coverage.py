"""Features of the dialect in kernels, counted over a run."""

from __future__ import annotations

from collections.abc import Iterator

from pdojo.dialect.affine import Expr
from pdojo.dialect.attributes import Intent, Mapping
from pdojo.dialect.lookups import lookups_in
from pdojo.dialect.view.nest import Access, Constant, Index, Input, Leaf, Nest

TABLE_2 = (
    "element-wise",
    "broadcast",
    "constant as value",
    "index as value",
    "reduction",
    "expression as location",
)
"""The features of the paper's Table 2, by its names."""

_CASTS = ("sitofp", "uitofp", "fptosi", "fptoui", "extsi", "extui", "trunci", "extf", "truncf", "bitcast")


def features_of(nest: Nest) -> frozenset[str]:
    """The features of one kernel, including those of Table 2."""
    found = {name for leaf in nest.leaves for name in _of_leaf(leaf)}
    found |= {f"mapping :{s.mapping.value}" for s in nest.scopes if s.mapping is not Mapping.SEQUENTIAL}
    if any(s.guard for s in nest.scopes):
        found.add("guard")
    if any(s.extent & (s.extent - 1) for s in nest.scopes):
        found.add("size that is no power of two")
    if any(len(writers) > 1 for writers in nest.writers.values()):
        found.add("several writers of an array")
    if len({array.dtype for array in nest.arrays.values()}) > 1:
        found.add("mixed element types")
    for buffer in nest.buffers:
        found |= {f"slots :{'N' if slots == 1 else 'Nk'}" for slots in buffer.reuse if slots}
        if len([a for a in nest.arrays.values() if a.buffer is buffer]) > 1:
            found.add("shared buffer" if buffer.intent is None else "buffer shared with the caller")
        if buffer.intent is Intent.INOUT:
            found.add("inout array")
        if buffer.constant:
            found.add("constant input" if buffer.op is None else "constant temporary")
    return frozenset(found)


def _of_leaf(leaf: Leaf) -> Iterator[str]:
    shown = {depth for e in leaf.output.index for depth in e.variables()}
    yield from (name for value in leaf.inputs for name in _of_input(leaf, value, shown))
    if lookups_in(leaf.expressions):
        yield "table"
    if any(not e.is_constant and not _is_variable(e) for a in leaf.accesses for e in a.index):
        yield "expression as location"
    if leaf.accumulate is not None:
        yield f"accumulation {leaf.accumulate}"
        if any(d not in shown and s.extent > 1 for d, s in enumerate(leaf.chain)):
            yield "reduction"
    name = (leaf.function or "").partition(".")[2]
    marks = {
        "cast": name in _CASTS,
        "comparison or select": name == "select" or name.startswith("cmp"),
        "contraction": leaf.contracted,
        "asynchronous copy": leaf.asynchronous,
        "hint": any(access.hints.data for access in leaf.accesses),
    }
    yield from (mark for mark, present in marks.items() if present)


def _of_input(leaf: Leaf, value: Input, shown: set[int]) -> Iterator[str]:
    match value:
        case Constant():
            yield "constant as value"
        case Index():
            yield "index as value"
        case Access():
            used = {depth for e in value.index for depth in e.variables()}
            if used == shown and leaf.accumulate is None:
                yield "element-wise"
            if used < shown:
                yield "broadcast"


def _is_variable(expression: Expr) -> bool:
    match expression:
        case Expr(0, ((int(), 1),)):
            return True
        case _:
            return False
