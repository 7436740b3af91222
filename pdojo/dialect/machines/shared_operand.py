"""Operands that a tensor unit itself reads from shared memory, and how their rows lie there.

Such an operand is a matrix in a buffer whose rows have a fixed number of bytes. An *atom* is a number of neighbouring
rows; within it granules of row `i` are exchanged: granule `q` lies where granule `q xor i` would lie (`swizzle_dim`).
The unit computes the address of an element from the operand's start and two strides, and exchanges granules by the
bits of the address. So atoms begin at multiples of their size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pdojo.dialect.affine import Expr, atom_variables, const
from pdojo.dialect.attributes import Memory
from pdojo.dialect.functions import byte_width
from pdojo.dialect.reason import Reason
from pdojo.dialect.view.nest import Access, Buffer, Leaf, Nest
from pdojo.dialect.view.storage import physical_index, physical_shape
from pdojo.errors import UsageError


@dataclass(frozen=True)
class Atom:
    """Neighbouring rows of an operand in shared memory, whose granules are exchanged."""

    rows: int
    row_bytes: int
    granule_bytes: int
    major: int | None = None
    """The dimension of the operand whose elements must be neighbours; None if it may be any."""

    @property
    def bytes(self) -> int:
        """Size and alignment of an atom."""
        return self.rows * self.row_bytes


def atom_of(numbers: tuple[int, ...]) -> Atom:
    """The atom with these rows, bytes of a row, bytes of a granule; and perhaps a dimension. Raises UsageError."""
    sizes, dimensions = numbers[:3], numbers[3:]
    if len(sizes) != 3 or any(n < 2 or n & (n - 1) for n in sizes) or dimensions not in ((), (0,), (1,)):
        raise UsageError(
            "write three powers of two: rows, bytes of a row, bytes of a granule; and if only elements along one "
            "dimension may be neighbours, its number, 0 or 1"
        )
    atom = Atom(*sizes, *dimensions)
    if atom.rows * atom.granule_bytes != atom.row_bytes:
        raise UsageError(f"a row must have as many granules as an atom has rows, {atom.rows}")
    return atom


@dataclass(frozen=True)
class SharedLayout:
    """Where a unit finds an operand in shared memory, relative to the address of its first element."""

    start: Expr
    """Position of the first element in the buffer, in elements, before granules are exchanged."""
    major: int
    """The dimension whose elements are neighbours."""
    group_bytes: int
    """Distance from an atom's rows to those of the next atom."""
    piece_bytes: int
    """Distance from the end of a row to its continuation in the next piece; 0 if operands have no second piece."""


def shared_layout(nest: Nest, access: Access, leaf: Leaf, depths: Sequence[int], atom: Atom) -> SharedLayout | Reason:
    """The layout of an operand, which the scopes at `depths` run along; a Reason if a unit cannot read it.

    With the addresses of a buffer without the swizzle, `A(i, j) = A(0, 0) + rows(i) + pieces(j)`, where `rows(i)` is
    `i % R * row + i // R * group`, and `pieces(j)` is `j % W + j // W * piece`, in every iteration around. The operand
    begins with the first row of an atom. So bits of the address number the rows of an atom and the granules of a row.
    """
    buffer, name = access.array.buffer, access.array.name
    shape, width = physical_shape(nest, buffer), byte_width(buffer.dtype)
    last, row, by = len(shape) - 1, atom.row_bytes // width, _rows_of(shape)
    problem = _buffer_problem(buffer, name, shape, atom)
    if problem is not None:
        return problem
    extents = leaf.extents
    index = physical_index(access, leaf.chain)
    total, step = const(0), 1
    for expression, extent in zip(reversed(index), reversed(shape), strict=True):
        total = total + expression * step
        step *= extent
    if any(len(atom_variables(part) & set(depths)) > 1 for part, _ in total.terms):
        return Reason(f"rows and columns of '{name}' are mixed in one index")
    distances = [_distances(total, extents, depths, k) for k in (0, 1)]
    steps = [found[1] if found is not None and len(found) > 1 else None for found in distances]
    if sorted(steps, key=str) != sorted([1, row], key=str):
        return Reason(
            f"elements of '{name}' must be neighbours along one dimension of the operand, and rows along the other; "
            f"they are {steps[0]} and {steps[1]} elements apart"
        )
    major = steps.index(1)
    if atom.major not in (None, major):
        return Reason(
            f"elements of '{name}' are neighbours along dimension {major} of the operand; this instruction takes "
            f"those along dimension {atom.major}"
        )
    along, across = distances[major], distances[1 - major]
    assert along is not None
    assert across is not None
    group = across[atom.rows] if len(across) > atom.rows else 0
    piece = along[row] if len(along) > row else 0
    if [k % atom.rows * row + k // atom.rows * group for k in range(len(across))] != across:
        return Reason(f"rows of '{name}' must be neighbours in groups of {atom.rows}, with equal distances of groups")
    if [k % row + k // row * piece for k in range(len(along))] != along:
        return Reason(f"pieces of {row} elements of '{name}' must have equal distances")
    first = {d: const(0) for d in depths}
    begins = [e.substitute(first, extents) for e in (index[by], index[last])]
    if not _divides(begins[0], atom.rows) or not _divides(begins[1], min(len(along), row)):
        return Reason(
            f"the operand must begin with the first of {atom.rows} rows of '{name}', at a multiple of "
            f"{min(len(along), row)} elements",
            f"it begins at row {begins[0].render('{{{}}}'.format)}, element {begins[1].render('{{{}}}'.format)}",
        )
    return SharedLayout(total.substitute(first, extents), major, group * width, piece * width)


def _rows_of(shape: Sequence[int]) -> int:
    """The dimension of a buffer that numbers its rows."""
    return max((d for d in range(len(shape) - 1) if shape[d] > 1), default=-1)


def _buffer_problem(buffer: Buffer, name: str, shape: Sequence[int], atom: Atom) -> Reason | None:
    """The reason why a buffer does not consist of atoms; None if it does."""
    if buffer.memory is not Memory.SHARED:
        return Reason(f"the unit reads '{name}' itself, so it must be in shared memory (set_location)")
    last, by, width = len(shape) - 1, _rows_of(shape), byte_width(buffer.dtype)
    swizzle = buffer.swizzles.get(last)
    if swizzle is None or len(buffer.swizzles) > 1 or (swizzle.by, swizzle.granule * width) != (by, atom.granule_bytes):
        return Reason(
            f"granules of {atom.granule_bytes} bytes in the rows of '{name}' must be exchanged by the number of the "
            f"row: swizzle_dim@{name}:{last}{{by={by} granule={atom.granule_bytes // width}}}"
        )
    if shape[last] * width != atom.row_bytes or shape[by] % atom.rows:
        return Reason(
            f"'{name}' must have rows of {atom.row_bytes} bytes, and a multiple of {atom.rows} rows; it has "
            f"{shape[by]} rows of {shape[last] * width}"
        )
    return None


def _distances(total: Expr, extents: Sequence[int], depths: Sequence[int], which: int) -> list[int] | None:
    """The distances of an operand's elements along one dimension from the first; None if they are not constant."""
    found: list[int] = []
    start = total.substitute({d: const(0) for d in depths}, extents)
    for value in range(extents[depths[which]]):
        point = {d: const(value if k == which else 0) for k, d in enumerate(depths)}
        distance = total.substitute(point, extents) - start
        if not distance.is_constant:
            return None
        found.append(distance.constant)
    return found


def _divides(expression: Expr, number: int) -> bool:
    """Whether every value of an expression is certainly a multiple of a number."""
    return expression.constant % number == 0 and all(factor % number == 0 for _, factor in expression.terms)
