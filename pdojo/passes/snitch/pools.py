"""Sums over windows by a step of at least two (pools): first over the rows of all windows, packed, then along them."""

from __future__ import annotations

from pdojo.dialect.affine import var
from pdojo.dialect.attributes import Mapping
from pdojo.dialect.functions import ACCUMULATIONS
from pdojo.dialect.rules.lanes import linear_address
from pdojo.dialect.view.nest import Access, Constant, Leaf
from pdojo.passes.common.builder import PassBuilder
from pdojo.passes.snitch.packing import JOINED
from pdojo.transforms.common.declaring import fresh_name

WHY = "whole words of all windows are added up first"


def sum_windows_by_rows(builder: PassBuilder) -> None:
    """Let pools of f32 add up the rows of their windows before the numbers of a row."""
    for identifier in [leaf.id for leaf in builder.nest.leaves]:
        leaf = builder.nest.by_id.get(identifier)
        if isinstance(leaf, Leaf) and _is_pool(leaf):
            builder.transact(lambda identifier=identifier: _by_rows(builder, identifier))


def _is_pool(leaf: Leaf) -> bool:
    """True for a sum, in two loops, over windows whose neighbours are at a distance of at least two numbers."""
    own = {v for e in leaf.output.index for v in e.variables()}
    if leaf.accumulate is None or leaf.function is not None or len(leaf.inputs) != 1 or len(leaf.reads) != 1:
        return False
    if any(a.array.dtype != JOINED for a in leaf.accesses) or len(leaf.chain) != len(own) + 2:
        return False
    if not own or own != set(range(len(own))) or any(len(s.children) > 1 for s in leaf.chain[-2:]):
        return False
    if any(s.mapping is not Mapping.SEQUENTIAL or s.guard for s in leaf.chain):
        return False
    address = linear_address(leaf.reads[0].index, leaf.reads[0].array.shape)
    *others, last = leaf.reads[0].index
    column, rows, along = range(len(own) - 1, len(own) + 2)
    if set(last.variables()) != {column, along} or not last.is_linear or any(e.uses(column) for e in others):
        return False
    is_row = last.coefficient(along) == 1 and not any(e.uses(along) for e in others)
    # All rows begin with a word, and the sums of their columns are whole words.
    is_even = address.is_linear and not any(address.coefficient(v) % 2 for v in address.variables() if v != along)
    is_whole = (leaf.chain[along].extent + address.constant) % 2 == 0
    return is_row and is_even and is_whole and any(e.uses(rows) for e in others)


def _by_rows(builder: PassBuilder, identifier: str) -> None:
    """Make the moves: `columns {0, rows of windows {numbers}}` reads sums of columns, which a nest before it makes."""
    leaf = builder.leaf(identifier)
    column = len(leaf.chain) - 3
    step, width = leaf.reads[0].index[-1].coefficient(column), leaf.chain[-1].extent
    known = builder.nest.arrays.keys()
    builder.make("collapse_scopes", leaf.chain[-2], WHY)
    builder.make("split_reduction", builder.loop(identifier, -1), WHY, size=width)
    (parts,) = builder.nest.arrays.keys() - known
    zero, summed = builder.nest.writers[parts]
    builder.make("swap_scopes", summed.chain[column + 1], WHY)
    builder.make("join_scopes", builder.loop(zero.id, column + 1), WHY)
    builder.make("join_scopes", builder.loop(zero.id, column + 1), WHY)
    name = _sums_of_columns(builder, builder.leaf(zero.id), builder.leaf(summed.id), step)
    (reader,) = builder.nest.readers[parts]
    index = ",".join([*(f"{{{d}}}" for d in range(column)), f"{{{column}}}*{step}+{{{column + 1}}}"])
    number = next(k for k, value in enumerate(reader.inputs) if isinstance(value, Access))
    builder.make("outline_reduction", reader, WHY, input=number, array=name, index=index)


def _sums_of_columns(builder: PassBuilder, zero: Leaf, summed: Leaf, step: int) -> str:
    """Insert the sums of all columns that windows have, before everything else; returns their array."""
    column, (read,), (start,) = len(summed.chain) - 3, summed.reads, zero.inputs
    assert isinstance(start, Constant)
    assert summed.accumulate is not None
    *outer, columns, along, rows = summed.extents
    extents = [*outer, step * (columns - 1) + along]
    last = read.index[-1] - var(column) * step - var(column + 1) + var(column)
    # The loop along rows, which the new nest does not have, is before that over rows.
    spelled = ",".join(e.render(lambda d: f"{{{d if d <= column else d - 1}}}") for e in (*read.index[:-1], last))
    name = fresh_name(builder.nest.arrays, f"{read.array.name}_rows")
    written = f"{name}[{','.join(f'{{{d}}}' for d in range(column + 1))}]"
    heads = " ".join(map(str, extents))
    first, dtype = builder.nest.children[0], summed.output.array.dtype
    builder.make(
        "insert_op",
        first,
        WHY,
        text=f"{heads} {written} = {start.value!r}",
        declare=f"{name} {dtype} [{', '.join(map(str, extents))}] heap",
    )
    spelling = ACCUMULATIONS[summed.accumulate].spelling
    text = f"{heads} {rows} {written} {spelling}= {read.array.name}[{spelled}]"
    builder.make("insert_op", first, WHY, text=text)
    zero_again = builder.nest.writers[name][0].id
    for level in range(column + 1):
        builder.make("join_scopes", builder.loop(zero_again, level), WHY)
    builder.sealed.add(builder.nest.children[0].id)
    return name
