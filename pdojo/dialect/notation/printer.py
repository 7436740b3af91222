"""Printing of a kernel in the notation: one canonical text per program, without ids."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from pdojo.dialect.affine import Expr, IndexArray
from pdojo.dialect.attributes import Intent, Mapping
from pdojo.dialect.functions import ACCUMULATIONS, byte_width
from pdojo.dialect.lookups import lookups_in
from pdojo.dialect.notation.hints import spell_hints
from pdojo.dialect.notation.literals import format_constant
from pdojo.dialect.notation.spelling import ApplicationStyle, spell
from pdojo.dialect.ops import KernelOp, VersionsOp, spell_slots
from pdojo.dialect.strides import spelled
from pdojo.dialect.view.build import nest_of
from pdojo.dialect.view.nest import Access, Buffer, Constant, Index, Input, Leaf, Nest, Node, Scope
from pdojo.dialect.view.nodes import extent_and_guard

_MACHINE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:-(?:[A-Za-z_][A-Za-z0-9_]*|\d+))*")


def print_notation(kernel: KernelOp) -> str:
    """The canonical text of a kernel, ending in a newline.

    Raises NotationError for a hint whose value the notation cannot spell.
    """
    return print_nest(nest_of(kernel))


def print_versions(versions: VersionsOp) -> str:
    """The line that lists the versions of a kernel, ending in a newline."""
    return f"versions {versions.sym_name.data} = {', '.join(versions.names)}\n"


def print_nest(nest: Nest) -> str:
    """The canonical text of a kernel whose view exists already."""
    lines = [*header_lines(nest), "", *tree_lines(nest.children)]
    return "\n".join(lines) + "\n"


def header_lines(nest: Nest) -> Iterator[str]:
    """The lines above the tree: the interface, facts and declarations."""
    kernel = nest.kernel
    arguments = [b for b in nest.buffers if b.op is None]
    inputs = [b.names[0] for b in arguments if b.intent is not Intent.OUT]
    outputs = [b.names[0] for b in arguments if b.intent is not Intent.IN]
    yield f"kernel {nest.name}({', '.join(inputs)}) -> ({', '.join(outputs)})"
    names = [b.names[0] for b in arguments]
    if names != list(dict.fromkeys((*inputs, *outputs))):
        yield f"arguments {', '.join(names)}"
    if kernel.numerics is not None:
        yield f"numerics {' '.join(n.value for n in kernel.permitted) or 'none'}"
    if kernel.machine is not None:
        yield f"machine {_quoted(kernel.machine.data)}"
    for size in nest.sizes.values():
        yield f"size {size.name} in {size.low}..{size.high}" + f" multiple {size.step}" * (size.step > 1)
    aligned = _aligned(arguments) if kernel.arg_alignments is not None else set[str]()
    for buffer in nest.buffers:
        indices = nest.index_arrays.get(buffer.names[0])
        yield declaration_line(buffer, indices, aligned=buffer.names[0] in aligned)
    for table in nest.tables.values():
        yield f"{table.name} i64 [{len(table.entries)}] table {', '.join(map(str, table.entries))}"


def _aligned(arguments: list[Buffer]) -> set[str]:
    """The arrays whose alignment is written: those above the default, or all if none is above it."""
    more = {b.names[0] for b in arguments if b.alignment != byte_width(b.dtype)}
    return more or {b.names[0] for b in arguments}


def declaration_line(buffer: Buffer, indices: IndexArray | None = None, *, aligned: bool = False) -> str:
    """The declaration of a buffer; `indices` is the range of an array of indices."""
    swizzles = {d: f"^{s.by}" + f"*{s.granule}" * (s.granule != 1) for d, s in buffer.swizzles.items()}
    extents = enumerate(zip(buffer.extents, buffer.reuse, strict=True))
    shape = ", ".join(f"{_extent(e)}{swizzles.get(d, '')}{spell_slots(slots)}" for d, (e, slots) in extents)
    text = f"{buffer.names[0]} {buffer.dtype} [{shape}] {buffer.memory.value}{spell_hints(buffer.hints)}"
    if buffer.constant:
        text += " const"
    if buffer.strides:
        text += f" {spelled(buffer.strides)}"
    if aligned:
        text += f" align {buffer.alignment}"
    if indices is not None:
        text += f" in {indices.low}..{_index(indices.last)}" + f" {indices.outside.value}".rstrip()
    return text if len(buffer.names) == 1 else f"{text} -> {', '.join(buffer.names)}"


def _quoted(machine: str) -> str:
    """The name, in quotes if the parser would not read it as one word."""
    return machine if _MACHINE.fullmatch(machine) else f'"{machine}"'


def tree_lines(nodes: list[Node], bars: str = "") -> Iterator[str]:
    """Scopes and statements, one line each; nodes that nest perfectly share a line."""
    for line, _ in tree_rows(nodes, bars):
        yield line


def tree_rows(nodes: list[Node], bars: str = "") -> Iterator[tuple[str, list[Node]]]:
    """The lines of `tree_lines`, each with the nodes that it shows, outermost first."""
    for first in nodes:
        line: list[str] = []
        node, shown = first, [first]
        while isinstance(node, Scope):
            line.append(scope_text(node))
            if len(node.children) != 1:
                break
            node = node.children[0]
            shown.append(node)
        if isinstance(node, Leaf):
            line.append(_statement(node))
        yield bars + " ".join(line), shown
        if isinstance(node, Scope):
            yield from tree_rows(node.children, bars + "| ")


def scope_text(scope: Scope) -> str:
    """Extent, mapping and guard; a guard that bounds the scope by sizes alone is its extent."""
    extent, guard = extent_and_guard(scope)
    text = _extent(extent)
    if scope.mapping is not Mapping.SEQUENTIAL:
        text += f":{scope.mapping.value}"
    if scope.intrinsic:
        text += f"({scope.intrinsic})"
    text += spell_hints(scope.hints)
    return f"{text} where ({', '.join(guard_texts(guard))})" if guard else text


def _extent(extent: Expr) -> str:
    """An integer, a size, or an expression of sizes in parentheses."""
    text = _index(extent)
    return text if extent.is_constant or extent.is_primary else f"({text})"


def guard_texts(guard: tuple[Expr, ...]) -> Iterator[str]:
    """`e >= 0` as a comparison with a constant; a pair `e >= 0`, `-e >= 0` as an equality."""
    constraints = iter(enumerate(guard))
    for position, expression in constraints:
        side = expression - expression.constant
        if position + 1 < len(guard) and guard[position + 1] == -expression:
            yield f"{_index(side)} == {-expression.constant}"
            next(constraints)
        elif side.terms and all(c < 0 for _, c in side.terms):
            yield f"{_index(-side)} < {expression.constant + 1}"
        else:
            yield f"{_index(side)} >= {-expression.constant}"


@lru_cache(maxsize=1 << 14)
def _index(expression: Expr) -> str:
    return expression.render("{{{}}}".format)


def access_text(access: Access) -> str:
    """An access with its hints."""
    text = f"{access.array.name}[{','.join(map(_index, access.index))}]"
    return text + spell_hints(access.hints)


def _statement(leaf: Leaf) -> str:
    accumulation = "" if leaf.accumulate is None else ACCUMULATIONS[leaf.accumulate].spelling
    if leaf.contracted:
        accumulation = "fma"
    if leaf.asynchronous:
        accumulation = "async"
    return f"{access_text(leaf.output)} {accumulation}= {_value(leaf)}"


def _value(leaf: Leaf) -> str:
    inputs = leaf.inputs
    dtypes = tuple(i.array.dtype if isinstance(i, Access) else i.dtype for i in inputs)
    spelling = spell(leaf.function, dtypes, tuple(isinstance(i, Access) for i in inputs), leaf.output.array.dtype)
    compound = spelling.style in (ApplicationStyle.INFIX, ApplicationStyle.PREFIX)
    texts = [_input(i, typed=spelling.typed, compound=compound) for i in inputs]
    match spelling.style:
        case ApplicationStyle.COPY:
            return texts[0]
        case ApplicationStyle.PREFIX:
            return spelling.text + texts[0]
        case ApplicationStyle.INFIX:
            return f"{texts[0]} {spelling.text} {texts[1]}"
        case ApplicationStyle.CALL:
            return f"{spelling.text}({', '.join(texts)})"


def _input(value: Input, *, typed: bool, compound: bool) -> str:
    """An input; an index expression of several terms gets parentheses next to a sign or a type."""
    match value:
        case Access():
            return access_text(value)
        case Constant():
            text = format_constant(value.value, value.dtype)
            return f"{text}:{value.dtype}" if typed and value.dtype != "i1" else text
        case Index():
            text = _index(value.expression)
            if value.expression.is_constant or any(
                isinstance(found.table, IndexArray) for found in lookups_in([value.expression])
            ):
                text = f"index({text})"
            elif (typed or compound) and not value.expression.is_primary:
                text = f"({text})"
            return f"{text}:{value.dtype}" if typed else text
