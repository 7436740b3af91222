"""The target `dot`: a kernel as a Graphviz graph, scopes as nested boxes, statements and the arrays they touch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.target import Target

from pdojo.dialect.attributes import Mapping
from pdojo.dialect.functions import ACCUMULATIONS
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.view.build import nest_of
from pdojo.dialect.view.nest import Access, Array, Constant, Index, Leaf, Nest, Node, Scope


@dataclass(frozen=True)
class DotTarget(Target):
    """Print one directed graph with a cluster per kernel."""

    name = "dot"

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        """Write the graph."""
        output.write('digraph pdojo {\n  node [fontname="monospace"];\n')
        kernels = [op for op in module.walk() if isinstance(op, KernelOp)]
        for number, kernel in enumerate(kernels):
            for line in _kernel(nest_of(kernel), f"k{number}"):
                output.write(f"  {line}\n")
        output.write("}\n")


def _kernel(nest: Nest, prefix: str) -> Iterator[str]:
    yield f"subgraph cluster_{prefix} {{"
    yield f"  label={_quoted(nest.name)};"
    for position, array in enumerate(nest.arrays.values()):
        shape = ", ".join(map(str, array.shape))
        style = "" if array.intent is None else ", style=bold"
        label = _quoted(f"{array.name} {array.dtype}[{shape}]")
        yield f"  {prefix}_a{position} [shape=ellipse{style}, label={label}];"
    yield from _nodes(nest.children, prefix)
    numbers = {array: position for position, array in enumerate(nest.arrays.values())}
    for leaf in nest.leaves:
        yield from _edges(leaf, numbers, prefix)
    yield "}"


def _nodes(nodes: Sequence[Node], prefix: str) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, Leaf):
            yield f"  {prefix}_s{node.order} [shape=box, label={_quoted(_statement(node))}];"
            continue
        path = "_".join(str(s.position) for s in node.chain)
        yield f"  subgraph cluster_{prefix}_{path} {{"
        yield f"    label={_quoted(_scope(node))};"
        yield from (f"  {line}" for line in _nodes(node.children, prefix))
        yield "  }"


def _edges(leaf: Leaf, numbers: dict[Array, int], prefix: str) -> Iterator[str]:
    statement = f"{prefix}_s{leaf.order}"
    for array in dict.fromkeys(a.array for a in leaf.reads):
        yield f"  {prefix}_a{numbers[array]} -> {statement};"
    both = ", dir=both" if leaf.accumulate is not None else ""
    yield f"  {statement} -> {prefix}_a{numbers[leaf.output.array]} [style=bold{both}];"


def _name(depth: int) -> str:
    return f"{{{depth}}}"


def _scope(scope: Scope) -> str:
    suffix = "" if scope.mapping is Mapping.SEQUENTIAL else f":{scope.mapping.value}"
    guard = ", ".join(f"{e.render(_name)} >= 0" for e in scope.guard)
    return f"{_name(scope.depth)} = {scope.extent}{suffix}" + (f" where {guard}" if guard else "")


def _statement(leaf: Leaf) -> str:
    inputs = ", ".join(map(_input, leaf.inputs))
    value = inputs if leaf.function is None else f"{leaf.function}({inputs})"
    sign = "" if leaf.accumulate is None else ACCUMULATIONS[leaf.accumulate].spelling
    return f"{_access(leaf.output)} {sign}= {value}"


def _input(value: Access | Constant | Index) -> str:
    match value:
        case Access():
            return _access(value)
        case Constant():
            return str(value.value)
        case Index():
            return value.expression.render(_name)


def _access(access: Access) -> str:
    return f"{access.array.name}[{', '.join(e.render(_name) for e in access.index)}]"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
