"""Execution of a data flow level by level: all rows of a statement in a level at once."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from pdojo.dialect.semantics.oracle.algebra import apply, fold
from pdojo.dialect.semantics.oracle.flow import Flow
from pdojo.dialect.semantics.oracle.instances import Instances, LeafInstances
from pdojo.dialect.semantics.oracle.residues import Field, Residues
from pdojo.dialect.view.nest import Constant, Index

Ints: TypeAlias = NDArray[np.int64]


def execute(field: Field, instances: Instances, flow: Flow, contents: Residues) -> Residues:
    """The final contents of all cells, from their initial `contents`; both of shape (cells, lanes)."""
    values = np.empty((len(flow.ready), field.lanes), np.uint64)
    values[: flow.cells] = contents
    levels = np.array(flow.ready, np.int64) - 1
    tasks: list[tuple[int, int, Ints]] = []
    """(level, statement or -1 - accumulation, rows of the statement or numbers of folds)"""
    reads: list[Ints] = []
    for position, one in enumerate(instances.leaves):
        last = one.first_row + one.rows
        # A statement that never runs has no rows, and so no columns.
        reads.append(np.array(flow.reads[one.first_row : last], np.int64).reshape(one.rows, len(one.leaf.reads)))
        own = levels[flow.cells + one.first_row : flow.cells + last]
        tasks += [(level, position, rows) for level, rows in _by_level(own)]
    fold_levels = levels[flow.cells + flow.rows :]
    functions = np.array([f.function for f in flow.folds], np.int64)
    for function in range(len(flow.functions)):
        chosen = np.flatnonzero(functions == function)
        tasks += [(level, -1 - function, chosen[part]) for level, part in _by_level(fold_levels[chosen])]
    tasks.sort(key=lambda task: task[:2])
    for _, kind, members in tasks:
        if kind >= 0:
            one = instances.leaves[kind]
            result = _rows(field, one, members, reads[kind][members], values)
            values[flow.cells + one.first_row + members] = result
        else:
            values[flow.cells + flow.rows + members] = _folds(field, flow, -1 - kind, members, values)
    return values[flow.final]


def _by_level(levels: Ints) -> list[tuple[int, Ints]]:
    """The positions of each level, ascending."""
    order = np.argsort(levels, kind="stable")
    ordered = levels[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=-1))
    return list(zip(ordered[starts].tolist(), np.split(order, starts[1:]), strict=True)) if len(levels) else []


def _rows(field: Field, one: LeafInstances, rows: Ints, reads: Ints, values: Residues) -> Residues:
    leaf = one.leaf
    operands: list[Residues] = []
    access = 0
    for value, index in zip(leaf.inputs, one.indices, strict=True):
        match value:
            case Constant():
                operands.append(field.constant(value.value, value.dtype))
            case Index():
                assert index is not None
                operands.append(field.integers(index[rows]))
            case _:
                operands.append(values[reads[:, access]])
                access += 1
    dtypes = [i.array.dtype if not isinstance(i, Constant | Index) else i.dtype for i in leaf.inputs]
    return apply(field, leaf.function, operands, dtypes, leaf.output.array.dtype)


def _folds(field: Field, flow: Flow, function: int, members: Ints, values: Residues) -> Residues:
    name, dtype = flow.functions[function]
    terms: list[int] = []
    starts: list[int] = []
    numbers: list[int] = members.tolist()
    for member in numbers:
        starts.append(len(terms))
        one = flow.folds[member]
        terms.append(one.base)
        terms += one.terms
    return fold(field, name, dtype, values[terms], np.array(starts, np.int64))
