"""Rewriting steps that several families use: substituting induction variables in a subtree, moving nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from xdsl.dialects.builtin import (
    AnyFloat,
    ArrayAttr,
    DictionaryAttr,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    StringAttr,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter
from xdsl.rewriter import InsertPoint

from pdojo.dialect.affine import Div, Expr, floordiv, var
from pdojo.dialect.attributes import IndexValueAttr
from pdojo.dialect.functions import DTYPES
from pdojo.dialect.index_maps import GuardMaps, IndexMaps
from pdojo.dialect.lookups import sizes_in
from pdojo.dialect.ops import ScopeOp, StatementOp, guard_attr
from pdojo.dialect.view.nest import Access, Array, Constant, Index, Input, Leaf, Node


def constant_attr(constant: Constant) -> IntegerAttr[IntegerType] | FloatAttr[AnyFloat]:
    """The attribute of a typed constant."""
    element = DTYPES[constant.dtype]
    if isinstance(element, IntegerType):
        return IntegerAttr(int(constant.value), element, truncate_bits=True)
    return FloatAttr(float(constant.value), element)


def build_op(
    output: tuple[Array, Sequence[Expr]],
    inputs: Sequence[Input],
    chain: Sequence[ScopeOp],
    *,
    function: str | None = None,
    accumulate: str | None = None,
    hints: Sequence[DictionaryAttr] | None = None,
    identifier: str = "",
    contracted: bool = False,
    asynchronous: bool = False,
) -> StatementOp:
    """A statement with index expressions over `chain`, the scopes around it, outermost first."""
    expressions = [*output[1]]
    for value in inputs:
        expressions += value.index if isinstance(value, Access) else ()
        expressions += [value.expression] if isinstance(value, Index) else []
    maps = IndexMaps(expressions)
    attributes: list[Attribute] = []
    for value in inputs:
        match value:
            case Access():
                attributes.append(maps.of(value.index))
            case Index():
                attributes.append(IndexValueAttr(maps.of([value.expression]), DTYPES[value.dtype]))
            case Constant():
                attributes.append(constant_attr(value))
    return StatementOp(
        output[0].value,
        maps.of(output[1]),
        attributes,
        [i.array.value for i in inputs if isinstance(i, Access)],
        [chain[depth].iv for depth in maps.used],
        function,
        accumulate,
        hints,
        identifier or None,
        contracted=contracted,
        asynchronous=asynchronous,
        lookups=maps.lookups,
        sizes=maps.sizes,
    )


def rebuilt(leaf: Leaf, chain: Sequence[ScopeOp], output: Sequence[Expr], inputs: Sequence[Input]) -> StatementOp:
    """A copy of the statement with other inputs, and with index expressions over other scopes."""
    reads = [i.hints for i in inputs if isinstance(i, Access)]
    return build_op(
        (leaf.output.array, output),
        inputs,
        chain,
        function=leaf.function,
        accumulate=leaf.accumulate,
        hints=[leaf.output.hints, *reads],
        identifier=leaf.id,
        contracted=leaf.contracted,
        asynchronous=leaf.asynchronous,
    )


def substitute_input(value: Input, replacements: Mapping[int, Expr], extents: Sequence[int]) -> Input:
    """An input with the induction variables in `replacements` replaced."""
    match value:
        case Access(array, index, hints):
            return Access(array, tuple(e.substitute(replacements, extents) for e in index), hints)
        case Index(expression, dtype):
            return Index(expression.substitute(replacements, extents), dtype)
        case _:
            return value


def set_guard(op: ScopeOp, guard: Sequence[Expr], chain: Sequence[ScopeOp], rewriter: PatternRewriter) -> None:
    """Give a scope a guard (`e >= 0` each) over `chain`, whose last member is the scope itself.

    Guards that always hold are dropped and the others sorted, as the canonical form requires.
    """
    own = len(chain) - 1
    extents = [scope.count for scope in chain]
    plain = {g.substitute({}, extents) for g in guard}
    guard = sorted((g for g in plain if g.bounds(extents)[0] < 0), key=lambda g: g.key)
    expressions, used, lookups, sizes = GuardMaps.of(guard, own)
    op.operands = [chain[depth].iv for depth in used]
    attribute = guard_attr(expressions, len(used) + 1 + len(lookups), len(sizes))
    rest = [("lookups", ArrayAttr(lookups) if lookups else None), ("sizes", ArrayAttr(sizes) if sizes else None)]
    for name, value in (("guard", attribute), *rest):
        if value is None:
            op.properties.pop(name, None)
        else:
            op.properties[name] = value
    rewriter.notify_op_modified(op)


def reindex(
    nodes: Iterable[Node], replacements: Mapping[int, Expr], chain: Sequence[ScopeOp], rewriter: PatternRewriter
) -> None:
    """Rewrite nodes that now stand inside `chain`: replace the variables of their former ancestors.

    Variables at depths that are not in `replacements` keep their depth.
    """
    for node in nodes:
        extents = tuple(op.count for op in chain)
        if isinstance(node, Leaf):
            output = tuple(e.substitute(replacements, extents) for e in node.output.index)
            inputs = [substitute_input(i, replacements, extents) for i in node.inputs]
            rewriter.replace(node.op, rebuilt(node, chain, output, inputs))
            continue
        inner = (*chain, node.op)
        inner_replacements = {**replacements, node.depth: var(len(chain))}
        guard = [g.substitute(inner_replacements, (*extents, node.extent)) for g in node.guard]
        set_guard(node.op, guard, inner, rewriter)
        reindex(node.children, inner_replacements, inner, rewriter)


def replace_variable(scope: ScopeOp, old: SSAValue, rewriter: PatternRewriter) -> None:
    """Replace the variable `old` inside a scope by the scope's own; both scopes have the same depth."""
    for op in scope.body.walk():
        operands = tuple(op.operands)
        if old in operands:
            op.operands = [scope.iv if value is old else value for value in operands]
            rewriter.notify_op_modified(op)


def move_into(nodes: Iterable[Operation], scope: ScopeOp, rewriter: PatternRewriter) -> None:
    """Move operations to the end of a scope, in order."""
    for op in tuple(nodes):
        op.detach()
        rewriter.insert(op, InsertPoint.at_end(scope.body.block))


def chain_ops(node: Node) -> tuple[ScopeOp, ...]:
    """The scopes around a node, outermost first."""
    return tuple(s.op for s in (node.parent.chain if node.parent else ()))


def set_id(op: ScopeOp | StatementOp, identifier: str) -> None:
    """Set the stable identifier of a node."""
    op.properties["id"] = StringAttr(identifier)


def place_guards(
    guards: Iterable[Expr], chain: Sequence[ScopeOp], depths: Iterable[int], rewriter: PatternRewriter
) -> None:
    """Distribute guards over the scopes at `depths` of `chain`: each goes to the scope of its deepest variable."""
    wanted = sorted(depths)
    placed: dict[int, list[Expr]] = {depth: [] for depth in wanted}
    extents = [scope.count for scope in chain]
    for guard in (simplified(guard, extents) for guard in guards):
        deepest = max(guard.variables(), default=wanted[0])
        placed[max(deepest, wanted[0])].append(guard)
    for depth, own in placed.items():
        set_guard(chain[depth], own, chain[: depth + 1], rewriter)


def simplified(guard: Expr, extents: Sequence[int]) -> Expr:
    """An equivalent constraint `e >= 0` over tiles or over iterations, whichever is shorter, if it has sizes.

    For a size M, a multiple of 8, and `j < 8`, `M - 8 * i - j > 0` is `M // 8 - i > 0`; and `M // 8 - i // 8 > 0` is
    `M - i > 0`.
    """
    if not sizes_in([guard]):
        return guard
    for atom, factor in guard.terms:
        if isinstance(atom, Div) and factor == -1:
            # q floordiv d <= rest iff q <= d * rest + d - 1.
            rest = guard + Expr(0, ((atom, 1),))
            return rest * atom.divisor + (atom.divisor - 1) - atom.numerator
    known = {atom for atom, _ in guard.terms}
    for factor in sorted({abs(c) for _, c in guard.terms if abs(c) > 1}, reverse=True):
        quotient = floordiv(guard, factor, extents)
        new = (atom for atom, _ in quotient.terms if isinstance(atom, Div) and atom not in known)
        if quotient.variables() < guard.variables() and not any(new):
            return quotient
    return guard


def fresh_id(taken: Mapping[str, object], base: str) -> str:
    """`base`, with primes appended until it is not in `taken`."""
    while base in taken:
        base += "'"
    return base
