"""Functions and accumulations of statements in the arithmetic of `residues`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from pdojo.dialect.semantics.oracle.residues import SMALL, Field, Residues, fits
from pdojo.math.functions import FUNCTIONS, FUSED

Truth: TypeAlias = NDArray[np.bool_]

_GREATEST = ("maximumf", "maxnumf", "maxsi", "maxui", "ori")
_LEAST = ("minimumf", "minnumf", "minsi", "minui", "andi")
_EXACT_CASTS = ("sitofp", "uitofp", "fptosi", "fptoui", "extsi", "extui", "trunci", "extf", "truncf")
_RELATIONS = {
    "eq": np.equal,
    "ne": np.not_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "lt": np.less,
    "le": np.less_equal,
}


def apply(
    field: Field, function: str | None, operands: Sequence[Residues], dtypes: Sequence[str], result: str
) -> Residues:
    """`function` of residues."""
    if function is None:
        return operands[0]
    name = function.partition(".")[2]
    primes = field.primes
    match name:
        case "addf" | "addi":
            return (operands[0] + operands[1]) % primes
        case "subf" | "subi":
            return (operands[0] + (primes - operands[1])) % primes
        case "negf":
            return (primes - operands[0]) % primes
        case "mulf" | "muli":
            return operands[0] * operands[1] % primes
        case "divf":
            return operands[0] * field.inverse(operands[1]) % primes
        case "fma" | "fms" | "fnma":
            x, y, z = (primes - o if k == FUSED[function] else o for k, o in enumerate(operands))
            return (x * y + z) % primes
        case _ if name in _GREATEST or name in _LEAST:
            order = field.order(function, result)
            ranks = [order.rank(o) for o in operands]
            return order.value(np.maximum(*ranks) if name in _GREATEST else np.minimum(*ranks))
        case _:
            drawn = field.random_map(f"{FUNCTIONS[function].denotes} {' '.join(dtypes)} {result}", operands)
            return _exact_where_possible(field, name, operands, (*dtypes, result), drawn)


def _exact_where_possible(
    field: Field, name: str, operands: Sequence[Residues], dtypes: Sequence[str], drawn: Residues
) -> Residues:
    """The true result for operands that are small integers or truth values, `drawn` for others."""
    if name == "select":
        condition, yes, no = operands
        return np.where(condition == 0, no, np.where(condition == field.primes - np.uint64(1), yes, drawn))
    if name in _EXACT_CASTS:
        signed = name[0] != "u" and not name.endswith("ui")
        value, known = small_integers(field, operands[0])
        if dtypes[0] == "i1" and not signed:
            value = np.abs(value)
        known &= fits(value, dtypes[0], signed=signed) | (dtypes[0] == "i1")
        known &= fits(value, dtypes[1], signed=signed)
        return np.where(known, (value % field.primes.astype(np.int64)).astype(np.uint64), drawn)
    kind, _, predicate = name.partition(".")
    if kind in ("cmpi", "cmpf") and predicate not in ("ord", "uno"):
        left, known_left = small_integers(field, operands[0])
        right, known_right = small_integers(field, operands[1])
        known = known_left & known_right
        if kind == "cmpi" and predicate[0] == "u":
            known &= (left >= 0) & (right >= 0)
        holds = _RELATIONS[predicate[-2:]](left, right)
        return np.where(known, np.where(holds, field.primes - np.uint64(1), np.uint64(0)), drawn)
    return drawn


def small_integers(field: Field, values: Residues) -> tuple[NDArray[np.int64], Truth]:
    """The integers that residues stand for, and a mask of the residues that stand for one."""
    signed = values.astype(np.int64)
    primes = field.primes.astype(np.int64)
    signed = np.where(signed > primes // 2, signed - primes, signed)
    return signed, np.abs(signed) <= SMALL


def fold(field: Field, function: str, dtype: str, values: Residues, starts: NDArray[np.int64]) -> Residues:
    """Each segment of the values combined by `function`; `starts` is ascending. Shape (segments, lanes)."""
    name = function.partition(".")[2]
    if name in ("addf", "addi"):
        # Fewer than 2**33 terms below 2**31 do not overflow.
        return np.add.reduceat(values, starts, axis=0) % field.primes
    if name in _GREATEST or name in _LEAST:
        order = field.order(function, dtype)
        reduce = np.maximum if name in _GREATEST else np.minimum
        return order.value(reduce.reduceat(order.rank(values), starts, axis=0))
    return _product(field, values, starts)


def _product(field: Field, values: Residues, starts: NDArray[np.int64]) -> Residues:
    """Products of segments: neighbours are multiplied until each segment has one value left."""
    lengths = np.diff(starts, append=len(values))
    while lengths.max() > 1:
        place = np.arange(len(values)) - np.repeat(starts, lengths)
        even = np.flatnonzero(place % 2 == 0)
        paired = place[np.minimum(even + 1, len(values) - 1)] % 2 == 1
        product = values[even]
        product[paired] = product[paired] * values[even[paired] + 1] % field.primes
        values, lengths = product, (lengths + 1) // 2
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)[:-1]])
    return values
