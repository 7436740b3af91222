"""Quasi-affine expressions in one canonical, range-aware normal form.

An expression is a constant plus integer multiples of *atoms*. An atom is the induction variable of the enclosing
scope at some depth, or `numerator floordiv divisor` of another expression. `e mod c` is not an atom: it is held as
`e - c * (e floordiv c)`, so that `16 * (i floordiv 16) + i mod 16` is `i`, and taking a tiling back restores the
text to the letter. Simplification uses the extents of the scopes: with `j < 16`, `(16 * i + j) floordiv 16` is `i`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import gcd
from typing import TypeAlias

from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
)

Extents: TypeAlias = Sequence[int]
"""`extents[k]` is the extent of the scope at depth k; its induction variable runs over `range(extents[k])`."""

SortKey: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Div:
    """The atom `numerator floordiv divisor`, with `divisor >= 2`."""

    numerator: Expr
    divisor: int


MOST_ATOMS = 500
"""Most atoms of a written expression, including atoms inside others; each remainder counts twice."""

Atom: TypeAlias = int | Div
"""An induction variable, by the depth of its scope, or a floor division."""


def _atom_key(atom: Atom) -> SortKey:
    if isinstance(atom, int):
        return (0, atom)
    return (1, atom.divisor, *atom.numerator.key)


class _Derived:
    """Cached properties of an expression, filled on first use."""

    __slots__ = ("_hash", "_variables")
    _hash: int
    _variables: frozenset[int]


@dataclass(frozen=True, slots=True)
class Expr(_Derived):
    """`constant + sum(coefficient * atom)`, terms sorted, no zero coefficients.

    Build expressions with `const`, `var` and the functions of this module; equal forms are equal objects.
    """

    constant: int
    terms: tuple[tuple[Atom, int], ...]

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            # Most cache look-ups have expressions in their keys: hashing one visits all of its atoms.
            object.__setattr__(self, "_hash", hash((self.constant, self.terms)))
            return self._hash

    @property
    def key(self) -> SortKey:
        """A total order of expressions, used to sort terms."""
        flat = [self.constant, len(self.terms)]
        for atom, coefficient in self.terms:
            flat.extend((*_atom_key(atom), coefficient))
        return tuple(flat)

    def __add__(self, other: Expr | int) -> Expr:
        if isinstance(other, int):
            return Expr(self.constant + other, self.terms) if other else self
        return linear(self.constant + other.constant, (*self.terms, *other.terms))

    def __sub__(self, other: Expr | int) -> Expr:
        if isinstance(other, int):
            return self + -other
        return self + other * -1

    def __mul__(self, factor: int) -> Expr:
        if factor == 1:
            return self
        if factor == 0:
            return const(0)
        return Expr(self.constant * factor, tuple((a, c * factor) for a, c in self.terms))

    def __neg__(self) -> Expr:
        return self * -1

    @property
    def size(self) -> int:
        """The number of atoms, including those inside floor divisions."""
        return sum(1 if isinstance(atom, int) else 1 + atom.numerator.size for atom, _ in self.terms)

    @property
    def is_constant(self) -> bool:
        """Whether no induction variable appears."""
        return not self.terms

    @property
    def is_linear(self) -> bool:
        """Whether no floor division appears."""
        return all(isinstance(a, int) for a, _ in self.terms)

    def coefficient(self, depth: int) -> int:
        """The factor of the induction variable at `depth` (outside floor divisions)."""
        return next((c for a, c in self.terms if a == depth), 0)

    def variables(self) -> frozenset[int]:
        """The depths of all induction variables that appear, also inside floor divisions."""
        try:
            return self._variables
        except AttributeError:
            atoms = (atom for atom, _ in self.terms)
            found = ((a,) if isinstance(a, int) else a.numerator.variables() for a in atoms)
            object.__setattr__(self, "_variables", frozenset(depth for depths in found for depth in depths))
            return self._variables

    def uses(self, depth: int) -> bool:
        """Whether the induction variable at `depth` appears."""
        return depth in self.variables()

    def evaluate(self, values: Sequence[int]) -> int:
        """The value for the given induction variables, by depth."""
        total = self.constant
        for atom, coefficient in self.terms:
            if isinstance(atom, int):
                total += coefficient * values[atom]
            else:
                total += coefficient * (atom.numerator.evaluate(values) // atom.divisor)
        return total

    def bounds(self, extents: Extents) -> tuple[int, int]:
        """Least and greatest value over the box (exact for linear expressions, otherwise an enclosure)."""
        rest, remainders = (self, []) if self.is_linear else split_remainders(self)
        low = high = rest.constant
        for _, divisor, coefficient in remainders:
            low, high = low + min(0, coefficient * (divisor - 1)), high + max(0, coefficient * (divisor - 1))
        for atom, coefficient in rest.terms:
            if isinstance(atom, int):
                first, last = 0, extents[atom] - 1
            else:
                first, last = atom.numerator.bounds(extents)
                first, last = first // atom.divisor, last // atom.divisor
            if coefficient > 0:
                low, high = low + coefficient * first, high + coefficient * last
            else:
                low, high = low + coefficient * last, high + coefficient * first
        return low, high

    def substitute(self, replacements: Mapping[int, Expr], extents: Extents) -> Expr:
        """Replace the induction variables in `replacements`; `extents` are those of the variables of the result.

        The variable of a scope with one iteration becomes 0.
        """
        constant, terms = self.constant, list[tuple[Atom, int]]()
        for atom, coefficient in self.terms:
            if not isinstance(atom, int):
                value = floordiv(atom.numerator.substitute(replacements, extents), atom.divisor, extents)
            elif atom in replacements:
                value = replacements[atom]
            else:
                terms.append((atom, coefficient))
                continue
            constant += value.constant * coefficient
            terms += [(a, c * coefficient) for a, c in value.terms]
        result = linear(constant, terms)
        kept = tuple((a, c) for a, c in result.terms if not isinstance(a, int) or extents[a] != 1)
        return Expr(result.constant, kept) if len(kept) < len(result.terms) else result

    def render(self, name: Callable[[int], str], mod: str = "%", floor: str = "//") -> str:
        """Text for people; `name` spells the induction variable at a depth."""
        return render(self, name, mod, floor)


def const(value: int) -> Expr:
    """The expression that is `value` everywhere."""
    return Expr(value, ())


def var(depth: int) -> Expr:
    """The induction variable of the scope at `depth`."""
    return Expr(0, ((depth, 1),))


def linear(constant: int, terms: Iterable[tuple[Atom, int]]) -> Expr:
    """Collect equal atoms, drop zeros and sort."""
    collected: dict[Atom, int] = {}
    for atom, coefficient in terms:
        collected[atom] = collected.get(atom, 0) + coefficient
    kept = [(a, c) for a, c in collected.items() if c]
    if len(kept) > 1:
        kept.sort(key=_term_key)
    return Expr(constant, tuple(kept))


def _term_key(term: tuple[Atom, int]) -> SortKey:
    return _atom_key(term[0])


def floordiv(numerator: Expr, divisor: int, extents: Extents) -> Expr:
    """`numerator floordiv divisor`, simplified over the box; `divisor` is positive."""
    if divisor == 1:
        return numerator
    # (q * divisor + r) floordiv divisor = q + r floordiv divisor, with every coefficient of r in [0, divisor).
    quotient = linear(numerator.constant // divisor, ((a, c // divisor) for a, c in numerator.terms))
    rest = linear(numerator.constant % divisor, ((a, c % divisor) for a, c in numerator.terms))
    # Then with every coefficient of r in [-divisor / 2, divisor / 2): n - x has fewer values than n + 63 * x.
    near = linear(rest.constant, ((a, (c + divisor // 2) % divisor - divisor // 2) for a, c in rest.terms))
    far = linear(0, ((a, int(2 * c >= divisor)) for a, c in rest.terms))
    for small, carried in ((rest, const(0)), (near, far)):
        low, high = small.bounds(extents)
        if low // divisor == high // divisor:
            return quotient + carried + low // divisor
    # (x + n floordiv d) floordiv c = (d * x + n) floordiv (c * d), because x is an integer.
    for atom, coefficient in rest.terms:
        if isinstance(atom, Div) and coefficient == 1:
            whole = (rest - Expr(0, ((atom, 1),))) * atom.divisor + atom.numerator
            return quotient + floordiv(whole, atom.divisor * divisor, extents)
    # (g * x + r) floordiv (g * d) = x floordiv d if r stays within [0, g).
    for factor in sorted({gcd(c, divisor) for _, c in rest.terms} - {1}, reverse=True):
        small = linear(rest.constant % factor, ((a, c) for a, c in rest.terms if c % factor))
        low, high = small.bounds(extents)
        if low >= 0 and high < factor:
            large = linear(rest.constant // factor, ((a, c // factor) for a, c in rest.terms if c % factor == 0))
            return quotient + floordiv(large, divisor // factor, extents)
    return quotient + Expr(0, ((Div(rest, divisor), 1),))


def modulo(numerator: Expr, divisor: int, extents: Extents) -> Expr:
    """`numerator mod divisor`, in the form `numerator - divisor * (numerator floordiv divisor)`; 0 for divisor 1."""
    return numerator - floordiv(numerator, divisor, extents) * divisor


def from_affine(expression: AffineExpr, dims: Sequence[Expr], extents: Extents) -> Expr:
    """Canonical form of an xDSL affine expression whose dimension k stands for `dims[k]`.

    Raises ValueError for symbols, for more than `MOST_ATOMS`, and for division by anything but a positive constant.
    """
    match expression:
        case AffineConstantExpr(value):
            return const(value)
        case AffineDimExpr(position):
            return dims[position]
        case AffineBinaryOpExpr(kind, lhs, rhs):
            left = from_affine(lhs, dims, extents)
            right = from_affine(rhs, dims, extents)
            found = _combine(kind, left, right, extents)
            if found.size > MOST_ATOMS:
                raise ValueError("an index expression is too large once its remainders are written as divisions")
            return found
        case _:
            raise ValueError(f"'{expression}' has a symbol; index expressions use induction variables only")


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


def to_affine(expression: Expr, dims: Mapping[int, int]) -> AffineExpr:
    """An xDSL affine expression; `dims[depth]` is the dimension that stands for the variable at `depth`.

    Remainders, which are the pattern `e - c * (e floordiv c)`, are written as `mod` again.
    """
    rest, remainders = split_remainders(expression)
    result: AffineExpr | None = None
    parts: list[tuple[AffineExpr, int]] = []
    for atom, coefficient in rest.terms:
        if isinstance(atom, int):
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


Remainder: TypeAlias = tuple[Expr, int, int]
"""`coefficient * (numerator mod divisor)` as (numerator, divisor, coefficient)."""


def split_remainders(expression: Expr) -> tuple[Expr, list[Remainder]]:
    """Write an expression as rest + sum(c * (e mod d)), for printing; both sums are equal.

    A term `-c * d * (e floordiv d)` together with exactly `c * e` is a remainder.
    """
    remainders: list[Remainder] = []
    rest = expression
    for atom, coefficient in expression.terms:
        if isinstance(atom, int) or coefficient % atom.divisor:
            continue
        scale = -coefficient // atom.divisor
        scaled = dict((atom.numerator * scale).terms)
        present = dict(rest.terms)
        if scaled and all(present.get(a) == c for a, c in scaled.items()):
            remainders.append((atom.numerator, atom.divisor, scale))
            rest = rest - atom.numerator * scale - Expr(0, ((atom, coefficient),))
    return rest, remainders


def render(expression: Expr, name: Callable[[int], str], mod: str, floor: str) -> str:
    """Text of an expression: positive terms first, remainders as `mod`."""
    rest, remainders = split_remainders(expression)
    pieces: list[tuple[str, int]] = []
    for atom, coefficient in rest.terms:
        if isinstance(atom, int):
            pieces.append((name(atom), coefficient))
        else:
            pieces.append((f"{_operand(atom.numerator, name, mod, floor)}{floor}{atom.divisor}", coefficient))
    for numerator, divisor, coefficient in remainders:
        pieces.append((f"{_operand(numerator, name, mod, floor)}{mod}{divisor}", coefficient))
    # A positive term comes first if there is one: `-a//b` would be read as `(-a)//b`.
    pieces.sort(key=lambda piece: piece[1] < 0)
    text = ""
    for piece, coefficient in pieces:
        if not text and coefficient < 0 and ("/" in piece or mod in piece):
            text = f"{piece}*{coefficient}"
            continue
        sign = "-" if coefficient < 0 else "+" if text else ""
        text += sign + piece + (f"*{abs(coefficient)}" if abs(coefficient) != 1 else "")
    if rest.constant or not text:
        text += f"{rest.constant:+d}" if text else str(rest.constant)
    return text


def _operand(expression: Expr, name: Callable[[int], str], mod: str, floor: str) -> str:
    """An operand of a division: a lone variable needs no parentheses."""
    text = render(expression, name, mod, floor)
    match expression:
        case Expr(0, ((int(), 1),)):
            return text
        case _:
            return f"({text})"
