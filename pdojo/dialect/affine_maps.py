"""Index expressions as affine expressions of xDSL, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineSymExpr,
)

from pdojo.dialect.affine import (
    MOST_ATOMS,
    Atom,
    Div,
    Expr,
    Extents,
    Size,
    const,
    floordiv,
    modulo,
    split_remainders,
)


def from_affine(expression: AffineExpr, dims: Sequence[Expr], extents: Extents, symbols: Sequence[Expr] = ()) -> Expr:
    """Canonical form of an xDSL affine expression; dimension k stands for `dims[k]`, symbol k for `symbols[k]`.

    Raises ValueError for more than `MOST_ATOMS`, and for division by anything but a positive constant.
    """
    match expression:
        case AffineConstantExpr(value):
            return const(value)
        case AffineDimExpr(position):
            return dims[position]
        case AffineSymExpr(position) if position < len(symbols):
            return symbols[position]
        case AffineBinaryOpExpr(kind, lhs, rhs):
            left = from_affine(lhs, dims, extents, symbols)
            right = from_affine(rhs, dims, extents, symbols)
            found = _combine(kind, left, right, extents)
            if found.size > MOST_ATOMS:
                raise ValueError("an index expression is too large once its remainders are written as divisions")
            return found
        case _:
            raise ValueError(f"'{expression}' has a symbol that stands for no size")


def _combine(kind: AffineBinaryOpKind, left: Expr, right: Expr, extents: Extents) -> Expr:
    if kind is AffineBinaryOpKind.Add:
        return left + right
    if kind is AffineBinaryOpKind.Mul:
        if right.is_constant:
            return left * right.constant
        if left.is_constant:
            return right * left.constant
        raise ValueError("a product of two induction variables is not quasi-affine")
    if not right.is_constant or right.constant <= 0:
        raise ValueError("floordiv, ceildiv and mod need a positive constant divisor")
    match kind:
        case AffineBinaryOpKind.FloorDiv:
            return floordiv(left, right.constant, extents)
        case AffineBinaryOpKind.CeilDiv:
            return floordiv(left + (right.constant - 1), right.constant, extents)
        case _:
            return modulo(left, right.constant, extents)


def to_affine(expression: Expr, dims: Mapping[Atom, int]) -> AffineExpr:
    """An xDSL affine expression; `dims` has the dimension that stands for each variable, by depth, and each lookup.

    For a size, `dims` has the symbol that stands for it; the atom is then the symbol divided by the size's step.

    Remainders, which are the pattern `e - c * (e floordiv c)`, are written as `mod` again.
    """
    rest, remainders = split_remainders(expression)
    result: AffineExpr | None = None
    parts: list[tuple[AffineExpr, int]] = []
    for atom, coefficient in rest.terms:
        if isinstance(atom, Size):
            factor, divisor = atom.multiple(coefficient)
            symbol: AffineExpr = AffineExpr.symbol(dims[atom])
            parts.append((symbol if divisor == 1 else symbol // divisor, factor))
        elif not isinstance(atom, Div):
            parts.append((AffineExpr.dimension(dims[atom]), coefficient))
        else:
            parts.append((to_affine(atom.numerator, dims) // atom.divisor, coefficient))
    parts.extend((to_affine(numerator, dims) % divisor, c) for numerator, divisor, c in remainders)
    for part, coefficient in parts:
        term = part if coefficient == 1 else part * coefficient
        result = term if result is None else result + term
    if result is None:
        return AffineExpr.constant(rest.constant)
    return result + rest.constant if rest.constant else result
