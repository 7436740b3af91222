"""Quasi-affine expressions in one canonical, range-aware normal form.

An expression is a constant plus integer multiples of *atoms*. An atom is the induction variable of the enclosing
scope at some depth, `numerator floordiv divisor` of another expression, an entry of a table or of an array of indices,
or a size that is known at run time. `e mod c` is not an atom: it is held as `e - c * (e floordiv c)`, so that
`16 * (i floordiv 16) + i mod 16` is `i`, and taking a tiling back restores the text to the letter. Simplification uses
the extents of the scopes: with `j < 16`, `(16 * i + j) floordiv 16` is `i`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import gcd
from typing import NamedTuple, NoReturn, TypeAlias

from pdojo.dialect.table import Outside, Table
from pdojo.errors import UnknownSize

Extents: TypeAlias = Sequence[int]
"""`extents[k]` is the extent of the scope at depth k; its induction variable runs over `range(extents[k])`."""

SortKey: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Div:
    """The atom `numerator floordiv divisor`, with `divisor >= 2`."""

    numerator: Expr
    divisor: int

    @property
    def operands(self) -> tuple[Expr, ...]:
        """The numerator."""
        return (self.numerator,)

    @property
    def key(self) -> SortKey:
        """A total order of divisions."""
        return (1, self.divisor, *self.numerator.key)

    def of(self, values: Sequence[int]) -> int:
        """The quotient for a numerator of this value."""
        return values[0] // self.divisor

    def bounds(self, extents: Extents) -> tuple[int, int]:
        """Least and greatest value over the box (an enclosure)."""
        first, last = self.numerator.bounds(extents)
        return first // self.divisor, last // self.divisor

    def with_operands(self, operands: Sequence[Expr], extents: Extents) -> Expr:
        """The quotient of another numerator."""
        return floordiv(operands[0], self.divisor, extents)


@dataclass(frozen=True, slots=True)
class IndexArray:
    """An integer input whose entries index expressions may use: known at run time, within a range."""

    name: str
    dtype: str
    """The element type: an integer, whose values are signed."""
    extents: tuple[Expr, ...]
    """The extents as expressions of sizes."""
    low: int
    """The least index, at least 0."""
    last: Expr
    """The greatest index, an expression of sizes, at least `low`."""
    outside: Outside = Outside.REFUSED

    @property
    def bounds(self) -> tuple[int, int]:
        """Least and greatest entry."""
        return self.low, self.last.bounds(())[1]

    def at(self, *_place: int) -> NoReturn:
        """No value, as for `known`."""
        raise UnknownSize(self._why)

    @property
    def known(self) -> NoReturn:
        """No table: programs are evaluated for given indices (`pdojo.dialect.indices`). Raises UnknownSize."""
        raise UnknownSize(self._why)

    @property
    def _why(self) -> str:
        return f"the entries of '{self.name}' are known at run time only, so they cannot be tried"


@dataclass(frozen=True, slots=True)
class Lookup:
    """The atom `table[place]`, where a table has one dimension, or an entry of an array of indices."""

    table: Table | IndexArray
    operands: tuple[Expr, ...]

    @property
    def key(self) -> SortKey:
        """A total order of lookups in the tables of one program."""
        places = (number for operand in self.operands for number in operand.key)
        return (2, len(self.table.name), *map(ord, self.table.name), *places)

    def of(self, values: Sequence[int]) -> int:
        """The entry for operands of these values. Raises UnknownSize for an entry that is known at run time."""
        return self.table.at(*values)

    def bounds(self, extents: Extents) -> tuple[int, int]:
        """Least and greatest value over the box (an enclosure)."""
        if isinstance(self.table, IndexArray):
            return self.table.bounds
        return self.table.bounds(*self.operands[0].bounds(extents))

    def with_operands(self, operands: Sequence[Expr], extents: Extents) -> Expr:
        """The entry at another place."""
        return lookup(self.table, operands, extents)


@dataclass(frozen=True, slots=True)
class Size:
    """The atom `N // step` of a size N that is known at run time: a multiple of `step` from `low` to `high`."""

    name: str
    low: int
    high: int
    step: int = 1

    @property
    def operands(self) -> tuple[Expr, ...]:
        """None: a size depends on no iteration."""
        return ()

    @property
    def key(self) -> SortKey:
        """A total order of the sizes of one program."""
        return (3, len(self.name), *map(ord, self.name))

    @property
    def values(self) -> range:
        """All values."""
        return range(self.low, self.high + 1, self.step)

    @property
    def expression(self) -> Expr:
        """The size; a constant if its range has one value."""
        return const(self.low) if self.low == self.high else Expr(0, ((self, self.step),))

    def multiple(self, coefficient: int) -> tuple[int, int]:
        """A factor and a divisor of the size whose quotient is a multiple of the atom: `factor * (N // divisor)`."""
        common = gcd(coefficient, self.step)
        return (coefficient // common, self.step // common)

    def of(self, _values: Sequence[int]) -> NoReturn:
        """No value: programs are evaluated for constant sizes (`pdojo.dialect.notation.bound`)."""
        raise UnknownSize(f"'{self.name}' is known at run time only, so its value cannot be tried")

    def bounds(self, extents: Extents) -> tuple[int, int]:
        """Least and greatest value."""
        return self.low // self.step, self.high // self.step

    def with_operands(self, operands: Sequence[Expr], extents: Extents) -> Expr:
        """The atom itself, which has no operand."""
        return Expr(0, ((self, 1),))


MOST_ATOMS = 500
"""Most atoms of a written expression, including atoms inside others; each remainder counts twice."""

Atom: TypeAlias = int | Div | Lookup | Size
"""An induction variable, by the depth of its scope, a floor division, an entry of a table, or a size."""


def _atom_key(atom: Atom) -> SortKey:
    return (0, atom) if isinstance(atom, int) else atom.key


_NONE = frozenset[int]()


def atom_variables(atom: Atom) -> frozenset[int]:
    """The depths of all induction variables in an atom."""
    return frozenset((atom,)) if isinstance(atom, int) else _NONE.union(*(e.variables() for e in atom.operands))


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
        if not other.terms:
            return self + other.constant
        if not self.terms:
            return other + self.constant
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
        """The number of atoms, including those inside others."""
        return sum(1 if isinstance(atom, int) else 1 + sum(e.size for e in atom.operands) for atom, _ in self.terms)

    @property
    def is_constant(self) -> bool:
        """Whether no induction variable appears."""
        return not self.terms

    @property
    def is_primary(self) -> bool:
        """Whether it is just a variable, a lookup or a size, which needs no parentheses among operators."""
        match self:
            case Expr(0, ((int() | Lookup(), 1),)):
                return True
            case Expr(0, ((Size(step=step), factor),)):
                return step == factor
            case _:
                return False

    @property
    def is_linear(self) -> bool:
        """Whether no floor division, lookup or size appears."""
        return all(isinstance(a, int) for a, _ in self.terms)

    def coefficient(self, depth: int) -> int:
        """The factor of the induction variable at `depth` (outside other atoms)."""
        return next((c for a, c in self.terms if a == depth), 0)

    def variables(self) -> frozenset[int]:
        """The depths of all induction variables that appear, also inside other atoms."""
        try:
            return self._variables
        except AttributeError:
            found = ((a,) if isinstance(a, int) else atom_variables(a) for a, _ in self.terms)
            object.__setattr__(self, "_variables", frozenset(depth for depths in found for depth in depths))
            return self._variables

    def uses(self, depth: int) -> bool:
        """Whether the induction variable at `depth` appears."""
        return depth in self.variables()

    def evaluate(self, values: Sequence[int], sizes: Mapping[Size, int] | None = None) -> int:
        """The value for the given induction variables, keyed by depth.

        At `sizes`, and the greatest values of others. Raises UnknownSize if they are None.
        """
        total = self.constant
        for atom, coefficient in self.terms:
            if isinstance(atom, int):
                total += coefficient * values[atom]
            elif sizes is not None and isinstance(atom, Size):
                total += coefficient * (sizes.get(atom, atom.high) // atom.step)
            else:
                total += coefficient * atom.of([e.evaluate(values, sizes) for e in atom.operands])
        return total

    def bounds(self, extents: Extents) -> tuple[int, int]:
        """Least and greatest value over the box (exact for linear expressions, otherwise an enclosure)."""
        low = high = self.constant
        for atom, coefficient in self.terms:
            if not isinstance(atom, int):
                return self._enclosure(extents)
            if coefficient > 0:
                high += coefficient * (extents[atom] - 1)
            else:
                low += coefficient * (extents[atom] - 1)
        return low, high

    def _enclosure(self, extents: Extents) -> tuple[int, int]:
        """`bounds` of an expression with divisions or lookups."""
        rest, remainders = split_remainders(self)
        low = high = rest.constant
        for _, divisor, coefficient in remainders:
            low, high = low + min(0, coefficient * (divisor - 1)), high + max(0, coefficient * (divisor - 1))
        for atom, coefficient in rest.terms:
            first, last = (0, extents[atom] - 1) if isinstance(atom, int) else atom.bounds(extents)
            if coefficient > 0:
                low, high = low + coefficient * first, high + coefficient * last
            else:
                low, high = low + coefficient * last, high + coefficient * first
        return low, high

    def substitute(self, replacements: Mapping[int, Expr], extents: Extents) -> Expr:
        """Replace the induction variables in `replacements`; `extents` belong to the variables of the result.

        The variable of a scope with one iteration becomes 0.
        """
        for atom, _ in self.terms:
            if not isinstance(atom, int) or atom in replacements or extents[atom] == 1:
                return self._substituted(replacements, extents)
        return self

    def _substituted(self, replacements: Mapping[int, Expr], extents: Extents) -> Expr:
        constant, terms = self.constant, list[tuple[Atom, int]]()
        for atom, coefficient in self.terms:
            if not isinstance(atom, int):
                value = atom.with_operands([e.substitute(replacements, extents) for e in atom.operands], extents)
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

    def render(
        self,
        name: Callable[[int], str],
        mod: str = "%",
        floor: str = "//",
        entry: Callable[[Lookup | Size, Sequence[str]], str] | None = None,
    ) -> str:
        """Text for people; `name` spells the variable at a depth, `entry` a size, or a lookup at a place."""
        return render(self, _Spelling(name, mod, floor, entry or _entry))


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


def lookup(table: Table | IndexArray, place: Sequence[Expr], extents: Extents) -> Expr:
    """The entry at `place`; a constant if the table and the place are constant over the box."""
    if isinstance(table, Table):
        low, high = place[0].bounds(extents)
        if low == high:
            return const(table.at(low))
    return Expr(0, ((Lookup(table, tuple(place)), 1),))


Remainder: TypeAlias = tuple[Expr, int, int]
"""`coefficient * (numerator mod divisor)` as (numerator, divisor, coefficient)."""


def split_remainders(expression: Expr) -> tuple[Expr, list[Remainder]]:
    """Write an expression as rest + sum(c * (e mod d)), for printing; both sums are equal.

    A term `-c * d * (e floordiv d)` together with exactly `c * e` is a remainder.
    """
    remainders: list[Remainder] = []
    rest = expression
    for atom, coefficient in expression.terms:
        if not isinstance(atom, Div) or coefficient % atom.divisor:
            continue
        scale = -coefficient // atom.divisor
        scaled = dict((atom.numerator * scale).terms)
        present = dict(rest.terms)
        if scaled and all(present.get(a) == c for a, c in scaled.items()):
            remainders.append((atom.numerator, atom.divisor, scale))
            rest = rest - atom.numerator * scale - Expr(0, ((atom, coefficient),))
    return rest, remainders


class _Spelling(NamedTuple):
    name: Callable[[int], str]
    mod: str
    floor: str
    entry: Callable[[Lookup | Size, Sequence[str]], str]


def _entry(atom: Lookup | Size, place: Sequence[str]) -> str:
    return atom.name if isinstance(atom, Size) else f"{atom.table.name}[{','.join(place)}]"


def render(expression: Expr, spelling: _Spelling) -> str:
    """Text of an expression: positive terms first, remainders as `mod`."""
    name, mod, floor, entry = spelling
    rest, remainders = split_remainders(expression)
    pieces: list[tuple[str, int]] = []
    for atom, coefficient in rest.terms:
        if isinstance(atom, int):
            pieces.append((name(atom), coefficient))
        elif isinstance(atom, Lookup):
            pieces.append((entry(atom, [render(e, spelling) for e in atom.operands]), coefficient))
        elif isinstance(atom, Size):
            factor, divisor = atom.multiple(coefficient)
            pieces.append((entry(atom, ()) + f"{floor}{divisor}" * (divisor > 1), factor))
        else:
            pieces.append((f"{_operand(atom.numerator, spelling)}{floor}{atom.divisor}", coefficient))
    for numerator, divisor, coefficient in remainders:
        pieces.append((f"{_operand(numerator, spelling)}{mod}{divisor}", coefficient))
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


def _operand(expression: Expr, spelling: _Spelling) -> str:
    """An operand of a division: a lone variable or lookup needs no parentheses."""
    text = render(expression, spelling)
    return text if expression.is_primary else f"({text})"
