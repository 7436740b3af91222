"""The exact path of every question: integer sets and relations of islpy, in its textual form.

islpy is imported on first use: most questions are settled without it (`collision.py`).

Some questions never end: relations of statements with divisions in their indices break into more and more pieces. So
every question has a budget in isl's own unit, which depends neither on the machine nor on earlier questions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Hashable, Iterable, Sequence
from contextlib import contextmanager
from functools import lru_cache, reduce
from itertools import combinations
from threading import RLock
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

from pdojo.dialect.affine import Atom, Div, Expr, IndexArray, Size, atom_variables, const, floordiv, var
from pdojo.dialect.flow.shortcut import is_used
from pdojo.dialect.lookups import lookups_in, sizes_in
from pdojo.errors import Undecided, UnknownSize

if TYPE_CHECKING:
    import islpy as isl

OPERATIONS = 1_000_000
"""isl's operation budget for one question."""

_TURN = RLock()
"""Lock of the asking thread: searches of several kernels share one context, which counts operations."""

QuestionT = TypeVar("QuestionT", bound=Hashable)
AnswerT = TypeVar("AnswerT")


class Answers(Generic[QuestionT, AnswerT]):
    """Memo of answers by question, and of the questions that were not settled."""

    def __init__(self) -> None:
        self._known: dict[QuestionT, AnswerT | _Open] = {}

    def of(self, question: QuestionT, decide: Callable[[], AnswerT]) -> AnswerT:
        """The answer to a question, which includes all data that the answer depends on. Raises Undecided."""
        if not is_used("memo"):
            return decide()
        # A question is large: hashing it twice would take as long as some answers.
        try:
            found = self._known[question]
        except KeyError:
            try:
                found = decide()
            except Undecided as undecided:
                found = _Open(str(undecided))
            self._known[question] = found
        if isinstance(found, _Open):
            raise Undecided(found.why)
        return found


class _Open:
    """An unsettled answer; the exception is not kept, because it refers to its whole call stack."""

    def __init__(self, why: str) -> None:
        self.why = why


@lru_cache(maxsize=1)
def context() -> isl.Context:
    """The isl context that all sets of the process share."""
    import islpy

    return islpy.Context()


@contextmanager
def bounded(operations: int | None = None) -> Generator[None]:
    """Limit isl's work on one question to `operations` (None: `OPERATIONS`). Raises Undecided beyond that.

    A nested limit shares the budget of the outer one.
    """
    with _TURN:
        shared = context()
        if shared.get_max_operations():
            yield
            return
        with limited(shared, operations or OPERATIONS):
            yield


@contextmanager
def limited(isl_context: isl.Context, operations: int) -> Generator[None]:
    """Limit a context without a limit to `operations`. Raises Undecided beyond that."""
    import islpy as isl

    isl_context.reset_operations()
    isl_context.set_max_operations(operations)
    try:
        yield
    except (isl.Error, TypeError):
        # Once the operations are spent, isl returns null numbers, for which islpy raises no isl.Error.
        if not _is_spent(isl_context):
            raise
        raise Undecided(f"integer sets do not settle it within {operations} operations") from None
    finally:
        isl_context.set_max_operations(0)


def _is_spent(isl_context: isl.Context) -> bool:
    """Whether a context cannot do even the smallest operation any more; isl's messages do not always name the cause."""
    import islpy as isl

    try:
        isl.Set.read_from_str(isl_context, "{ [i] : 0 <= i < 2 }")
    except isl.Error:
        return True
    return False


def spell(expression: Expr, names: Sequence[str]) -> str:
    """An expression in isl's syntax; the variable at depth d is `names[d]`."""
    parts = [str(expression.constant)]
    parts += (f"{coefficient}*{_spell_atom(atom, names)}" for atom, coefficient in expression.terms)
    return " + ".join(parts)


def _spell_atom(atom: Atom, names: Sequence[str]) -> str:
    if isinstance(atom, int):
        return names[atom]
    if isinstance(atom, Size):
        return f"@{atom.name}_{atom.low}_{atom.high}_{atom.step}@"
    place = ", ".join(spell(operand, names) for operand in atom.operands)
    if isinstance(atom, Div):
        return f"floor(({place})/{atom.divisor})"
    if isinstance(atom.table, IndexArray):
        last = spell(atom.table.last, ())
        if atom_variables(atom):
            return f"<<{atom.table.name}: {place}|?{atom.table.low},{last}>>"
        return f"@{atom.table.name}_{place.encode().hex()}_{atom.table.low}_{last.encode().hex()}_@"
    runs = " ".join(",".join(map(str, run)) for run in atom.table.runs)
    return f"<<{place}|{runs}>>"


_LOOKUP = re.compile(r"<<([^<>|]*)\|([^<>|]*)>>")
"""A lookup in a text: its place, and the runs of the table; or "?" and the range of an array of indices."""

_SIZE = re.compile(r"@(\w+)@")
"""A parameter in a text. The name of a size has its name, least and greatest value, and step; that of an entry at a
place that no iteration changes has the array, the place, the least and the greatest index."""

SetT = TypeVar("SetT", "isl.Set", "isl.Map", "isl.UnionSet", "isl.UnionMap")


def read_set(kind: type[SetT], text: str, *, loose: bool = False) -> SetT:
    """The set or relation that a text describes; expressions in the text are results of `spell`.

    Sizes are parameters of the result, within their ranges, and so are entries of arrays of indices at places that no
    iteration changes. isl's syntax has no lookups: each one becomes a parameter whose value the cases of its table
    determine, and which is projected out. An entry that iterations choose is any index of its range if `loose`, one for
    each place: the result then has all elements for all indices. Raises UnknownSize for such an entry otherwise.
    """
    if not loose and "|?" in text:
        raise UnknownSize("it depends on indices that are known at run time only")
    parameters = sorted(set(_SIZE.findall(text)))
    if not parameters:
        return _read(kind, text, "")
    names = f"[{', '.join(f'n_{name}' for name in parameters)}]"
    return within_sizes(_read(kind, _SIZE.sub(r"n_\1", text), names))


def within_sizes(found: SetT) -> SetT:
    """The set or relation for sizes and entries within their ranges.

    Differences of sets of which one has no sizes have others, too.
    """
    import islpy as isl

    names = _parameters(found.get_space())
    if not names:
        return found
    bounds = [_range_of(name) for name in names]
    others = sorted({other for bound in bounds for other in re.findall(r"\bn_\w+", bound)}.difference(names))
    text = " and ".join([*bounds, *map(_range_of, others)])
    return found.intersect_params(
        isl.Set.read_from_str(context(), f"[{', '.join([*names, *others])}] -> {{ : {text} }}")
    )


def _range_of(parameter: str) -> str:
    """The condition that a parameter is within its range."""
    _, low, high, step = parameter.rsplit("_", 3)
    if not step:
        last = _SIZE.sub(r"n_\1", bytes.fromhex(high).decode())
        return f"{low} <= {parameter} <= {last}"
    return f"{int(low) // int(step)} <= {parameter} <= {int(high) // int(step)}"


def _parameters(space: isl.Space) -> list[str]:
    """The names of the parameters of a space."""
    import islpy as isl

    return [str(space.get_dim_name(isl.dim_type.param, k)) for k in range(space.dim(isl.dim_type.param))]


def _size_of(parameter: str) -> Size:
    """The size that a parameter stands for. Raises UnknownSize for an entry."""
    if parameter.endswith("_"):
        raise UnknownSize("it depends on indices that are known at run time only")
    name, low, high, step = parameter.removeprefix("n_").rsplit("_", 3)
    return Size(name, int(low), int(high), int(step))


def _read(kind: type[SetT], text: str, sizes: str) -> SetT:
    """`read_set` of a text without marks of sizes; `sizes` are those parameters, as `[n_N]`, or ''."""
    import islpy as isl

    if "<<" not in text:
        return kind.read_from_str(context(), f"{sizes} -> {text}" if sizes else text)
    names: list[str] = []
    pieces = [_without_lookups(piece, names) for piece in text.strip()[1:-1].split(";")]
    head = f"[{', '.join([*names, *filter(None, [sizes[1:-1]])])}]"
    found = kind.read_from_str(context(), f"{head} -> {{ {'; '.join(pieces)} }}")
    return found.project_out(isl.dim_type.param, 0, len(names))


def _without_lookups(piece: str, names: list[str]) -> str:
    """A piece of a union with names for its lookups; adds the names."""
    cases: list[str] = []
    entries: list[tuple[str, list[str], str]] = []
    while (found := _LOOKUP.search(piece)) is not None:
        names.append(f"lookup{len(names)}")
        piece = piece.replace(found[0], names[-1])
        cases.append(_cases(names[-1], found[1], found[2]))
        if found[2].startswith("?"):
            array, _, place = found[1].partition(": ")
            entries.append((array, place.split(", "), names[-1]))
    cases += (_equal_if_together(one, other) for one, other in combinations(entries, 2) if one[0] == other[0])
    head, _, condition = piece.partition(":")
    return f"{head} : {' and '.join([*cases, condition or 'true'])}"


def _equal_if_together(one: tuple[str, list[str], str], other: tuple[str, list[str], str]) -> str:
    """The condition that two entries of one array, each with its place and its name, are equal if their places are."""
    (_, first, mine), (_, second, theirs) = one, other
    apart = (f"{a} != {b}" for a, b in zip(first, second, strict=True))
    return f"({' or '.join(apart)} or {mine} = {theirs})"


def _cases(name: str, place: str, said: str) -> str:
    """The condition that `name` is the entry at a place of a table with these runs, or an index of a range."""
    if said.startswith("?"):
        low, _, last = said[1:].partition(",")
        return f"{low} <= {name} <= {last}"
    runs = [tuple(map(int, run.split(","))) for run in said.split(" ")]
    starts = [first for first, _, _ in runs]
    found: list[str] = []
    for number, (first, entry, step) in enumerate(runs):
        inside = [f"{first} <= {place}"] * (number > 0) + [f"{place} < {first}" for first in starts[number + 1 :][:1]]
        value = f"{entry - step * first} + {step}*({place})" if step else str(entry)
        found.append(f"({' and '.join([*inside, f'{name} = {value}'])})")
    return f"({' or '.join(found)})"


def domain_constraints(extents: Sequence[int], guards: Iterable[Expr], names: Sequence[str]) -> list[str]:
    """Box and guards of an iteration domain, as isl constraints."""
    box = [f"0 <= {name} < {extent}" for name, extent in zip(names, extents, strict=True)]
    return box + [f"{spell(g, names)} >= 0" for g in guards]


def place_constraints(extents: Iterable[Expr], names: Sequence[str]) -> list[str]:
    """The places of an array, whose extents are expressions of sizes, as isl constraints."""
    return [f"0 <= {name} < {spell(extent, ())}" for name, extent in zip(names, extents, strict=True)]


def variables(prefix: str, count: int) -> list[str]:
    """`prefix0, prefix1 ...`."""
    return [f"{prefix}{k}" for k in range(count)]


@bounded()
def sample(names: Sequence[str], constraints: Iterable[str]) -> tuple[int, ...] | None:
    """Some integer point that satisfies all constraints, for some indices that callers give; None if there is none."""
    import islpy as isl

    text = f"{{ [{', '.join(names)}] : {' and '.join(constraints) or 'true'} }}"
    point = read_set(isl.Set, text, loose=True).sample_point()
    if point.is_void():
        return None
    return coordinates(point)


def coordinates(point: isl.Point) -> tuple[int, ...]:
    """The coordinates of a point."""
    import islpy as isl

    count = point.get_space().dim(isl.dim_type.set)
    return tuple(point.get_coordinate_val(isl.dim_type.set, k).to_python() for k in range(count))


@lru_cache(maxsize=1 << 16)
def bounds_over_domain(expression: Expr, extents: tuple[int, ...], guards: tuple[Expr, ...]) -> tuple[int, int] | None:
    """Least and greatest value of an expression over an iteration domain; None if the domain is empty.

    The bounds hold for all indices that callers give. Cached: every move asks about all statements and changes few.
    """
    if _is_apart(expression, guards, len(extents)):
        return expression.bounds(extents)
    import islpy as isl

    text = f"{{ {_placed(extents, guards, [expression])} }}"
    with _TURN:
        values = read_set(isl.Map, text, loose=True).range()
        return None if values.is_empty() else (values.dim_min_val(0).to_python(), values.dim_max_val(0).to_python())


def _is_apart(expression: Expr, guards: Sequence[Expr], depth: int) -> bool:
    """Whether no guard restricts the values of a linear expression: other variables and sizes meet all of them."""
    atoms = {atom for atom, _ in expression.terms}
    if lookups_in(guards) or not all(isinstance(atom, int | Size) for atom in atoms):
        return False
    is_own = any(atoms & {*guard.variables(), *sizes_in([guard])} for guard in guards)
    return not is_own and all(guard.evaluate((0,) * depth, {}) >= 0 for guard in guards)


def _placed(extents: Sequence[int], guards: Sequence[Expr], place: Sequence[Expr]) -> str:
    """The relation from iterations to places, over the variables that a guard or the place uses."""
    names = variables("i", len(extents))
    used = sorted({depth for expression in (*guards, *place) for depth in expression.variables()})
    own = [names[depth] for depth in used]
    domain = domain_constraints([extents[depth] for depth in used], (), own)
    domain += [f"{spell(guard, names)} >= 0" for guard in guards]
    return f"[{', '.join(own)}] -> [{', '.join(spell(e, names) for e in place)}] : {' and '.join(domain) or 'true'}"


Reach: TypeAlias = tuple[Sequence[int], Sequence[Expr], Sequence[Expr]]
"""Extents and guards of iterations, and the place that each iteration reaches."""


@bounded()
def unreached(first: Iterable[Reach], second: Iterable[Reach]) -> tuple[int, ...] | None:
    """A place that an iteration of `first` reaches and none of `second`; None if there is none. Neither is empty.

    Iterations of `first` reach places for some indices that callers give; `second` may not depend on these.
    """
    rest = _reached(*first, loose=True)
    # One after another: the difference to a union of many pieces takes ten times as long.
    for reach in second:
        rest = within_sizes(rest.subtract(_reached(reach)))
        if rest.is_empty():
            return None
    return coordinates(rest.sample_point())


def _reached(*reaches: Reach, loose: bool = False) -> isl.Set:
    import islpy as isl

    sets = [read_set(isl.Map, f"{{ {_placed(*reach)} }}", loose=loose).range() for reach in reaches]
    return reduce(isl.Set.union, sets)


@bounded()
def projected(extents: Sequence[int], constraints: Iterable[Expr], gone: Sequence[int]) -> list[list[Expr]]:
    """Conditions on the other variables of a box, one of which holds iff values of `gone` meet all constraints.

    Each condition is a list of expressions `e >= 0`; an empty one always holds.
    """
    import islpy as isl

    names = variables("i", len(extents))
    kept = [d for d in range(len(extents)) if d not in gone]
    box, inside = domain_constraints(extents, (), names), [f"{spell(c, names)} >= 0" for c in constraints]
    head, place = ", ".join(names), ", ".join(names[d] for d in kept)
    whole = read_set(isl.Set, f"{{ [{place}] : {' and '.join(box[d] for d in kept) or 'true'} }}")
    text = f"{{ [{head}] -> [{place}] : {' and '.join([*box, *inside])} }}"
    found = read_set(isl.Map, text).range().compute_divs().coalesce().gist(whole).compute_divs()
    return [_expressions(piece, kept, extents) for piece in found.get_basic_sets()]


def _expressions(piece: isl.BasicSet, kept: Sequence[int], extents: Sequence[int]) -> list[Expr]:
    """The constraints of a basic set, `e >= 0`; its dimension k is the variable at depth `kept[k]`."""
    import islpy as isl

    local = piece.get_local_space()
    sizes = [Expr(0, ((_size_of(name), 1),)) for name in _parameters(piece.get_space())]
    divisions: list[Expr] = []

    def total(value: isl.Aff | isl.Constraint, factor: int) -> Expr:
        """`factor` times a value; the products with its coefficients are integers."""
        main = isl.dim_type.set if isinstance(value, isl.Constraint) else isl.dim_type.in_
        atoms = [(main, k, var(d)) for k, d in enumerate(kept)]
        atoms += [(isl.dim_type.div, k, division) for k, division in enumerate(divisions)]
        atoms += [(isl.dim_type.param, k, size) for k, size in enumerate(sizes)]
        whole = const((value.get_constant_val() * factor).to_python())
        for kind, k, atom in atoms:
            whole += atom * (value.get_coefficient_val(kind, k) * factor).to_python()
        return whole

    for k in range(local.dim(isl.dim_type.div)):
        division = local.get_div(k)
        divisor = division.get_denominator_val().to_python()
        divisions.append(floordiv(total(division, divisor), divisor, extents))
    found: list[Expr] = []
    for constraint in piece.get_constraints():
        expression = total(constraint, 1)
        found += [expression, -expression] if constraint.is_equality() else [expression]
    return found
