"""Arithmetic of the exact oracle: integers modulo two primes, several independent seeds at once.

A *lane* is a prime and a seed; values have shape (..., lanes). `+ - *` are exact, so the results of a real program map
to the results here, whatever the order. Everything else is a fixed random map of its operands, drawn per function,
types and lane: equal operands give equal results, and nothing else is known about it.

Small integers (of magnitude up to 2**20, represented by their residues) are the exception: casts and comparisons of
them, and `select` on a truth value, are exact, so that programs may compute with indices. Truth is -1, all bits set.
Maximum and minimum follow an order of the residues that is cut outside of the small integers, with the constant that is
neutral for each pinned to its end. Bitwise `and` and `or` are lattice operations of the same kind. Signed and unsigned
orders, the lattice, and the order of `maxnumf` are cut at different places: these functions do not commute.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf, isfinite, isnan
from typing import TypeAlias
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from pdojo.dialect.functions import DTYPES, identity_value, is_float

Residues: TypeAlias = NDArray[np.uint64]

PRIMES = (2147483647, 2147483629)
CUTS = ("maximumf minimumf maxsi minsi", "maxui minui", "ori andi", "maxnumf minnumf")
"""Functions that share one order."""

SMALL = 1 << 20
"""Bound of the magnitude of residues that stand for integers."""

_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


def _mix(values: Residues) -> Residues:
    """The finaliser of splitmix64."""
    values = (values ^ (values >> np.uint64(30))) * _MIX[0]
    values = (values ^ (values >> np.uint64(27))) * _MIX[1]
    return values ^ (values >> np.uint64(31))


@dataclass(frozen=True, eq=False)
class Order:
    """A total order of the residues from `least` to `greatest`; it wraps around at `cut`."""

    least: Residues
    greatest: Residues
    cut: Residues
    primes: Residues

    def rank(self, values: Residues) -> Residues:
        """The place of each value in the order."""
        rank = (values + self.primes - self.cut) % self.primes + np.uint64(1)
        rank = np.where(values == self.greatest, self.primes + np.uint64(1), rank)
        return np.where(values == self.least, np.uint64(0), rank)

    def value(self, rank: Residues) -> Residues:
        """The value at each place."""
        value = (rank + self.primes - np.uint64(1) + self.cut) % self.primes
        value = np.where(rank == self.primes + np.uint64(1), self.greatest, value)
        return np.where(rank == 0, self.least, value)


class Field:
    """The lanes, and all random data that a seed draws for them."""

    def __init__(self, seed: int, seeds: int = 12) -> None:
        self.seed = seed
        self.lanes = seeds * len(PRIMES)
        self.primes: Residues = np.repeat(np.array(PRIMES, np.uint64), seeds)
        random = np.random.default_rng([0x0AC1E, seed])
        self._secret: Residues = random.integers(0, 1 << 63, self.lanes, np.uint64)
        self.cuts: list[Residues] = [random.integers(SMALL, min(PRIMES) - SMALL, self.lanes, np.uint64) for _ in CUTS]
        """Per order, the residues at which it wraps around."""
        self.cut = self.cuts[0]
        self._keys: dict[str, Residues] = {}
        self._orders: dict[tuple[str, str], Order] = {}

    # Contents of memory

    def inputs(self, name: str, count: int, seed: int) -> Residues:
        """The contents of the interface array `name`, shape (count, lanes)."""
        return self._draw([seed, crc32(name.encode())], count)

    def poison(self, count: int, seed: int) -> Residues:
        """Unwritten memory: in each order, large values in some lanes, small in others; no maximum hides both."""
        drawn = self._draw([0x9015, seed], count)
        near = drawn % np.uint64(1 << 16) + np.uint64(1)
        kinds = [drawn]
        for cut in self.cuts:
            kinds += [(cut + near) % self.primes, (cut + self.primes - near) % self.primes]
        kind = (np.arange(count)[:, None] + np.arange(self.lanes)) % len(kinds)
        return np.choose(kind, kinds)

    def _draw(self, seed: Sequence[int], count: int) -> Residues:
        random = np.random.default_rng([self.seed, *seed])
        return random.integers(0, 1 << 62, (count, self.lanes), np.uint64) % self.primes

    def inverse(self, values: Residues) -> Residues:
        """The inverse of each value, its power p - 2 by Fermat's theorem; 0 for 0."""
        exponents = self.primes - np.uint64(2)
        result, square = np.ones_like(values), values
        for bit in range(int(exponents.max()).bit_length()):
            odd = (exponents >> np.uint64(bit)) & np.uint64(1)
            result = np.where(odd == 1, result * square % self.primes, result)
            square = square * square % self.primes
        return result

    # Constants and indices

    def constant(self, value: float, dtype: str) -> Residues:
        """A constant in every lane, shape (lanes,); finite floats as the fractions that they are."""
        if dtype == "i1":
            return self.integers(np.array([-1 if value else 0]))[0]
        if isinstance(value, int):
            return self._each(lambda p: value % p)
        if isfinite(value):
            numerator, denominator = value.as_integer_ratio()
            return self._each(lambda p: numerator * pow(denominator, -1, p) % p)
        if isnan(value):
            return _mix(self._key("nan")) % self.primes
        return self.cut if value < 0 else (self.cut + self.primes - np.uint64(1)) % self.primes

    def _each(self, residue: Callable[[int], int]) -> Residues:
        return np.repeat(np.array([residue(p) for p in PRIMES], np.uint64), self.lanes // len(PRIMES))

    def integers(self, values: NDArray[np.int64]) -> Residues:
        """Integers in every lane, shape (..., lanes)."""
        return (values[..., None] % self.primes.astype(np.int64)).astype(np.uint64)

    # Functions

    def _key(self, name: str) -> Residues:
        if name not in self._keys:
            self._keys[name] = _mix(self._secret ^ np.uint64(crc32(name.encode())))
        return self._keys[name]

    def random_map(self, name: str, operands: Sequence[Residues]) -> Residues:
        """The random map called `name`, applied to operands."""
        state = self._key(name)
        for operand in operands:
            state = _mix((state + operand) * np.uint64(0x9E3779B97F4A7C15))
        return state % self.primes

    def order(self, function: str, dtype: str) -> Order:
        """The order of a maximum, minimum, `and` or `or`."""
        if (function, dtype) not in self._orders:
            least, greatest = _ends(function, dtype)
            order = Order(self.constant(least, dtype), self.constant(greatest, dtype), self._cut(function), self.primes)
            self._orders[function, dtype] = order
        return self._orders[function, dtype]

    def _cut(self, function: str) -> Residues:
        name = function.partition(".")[2]
        return next(cut for cut, names in zip(self.cuts, CUTS, strict=True) if name in names.split())


def _ends(function: str, dtype: str) -> tuple[float, float]:
    """The least and greatest value of a type, in the order of `function`."""
    if is_float(dtype):
        return -inf, inf
    if function in ("arith.maxsi", "arith.minsi"):
        return identity_value("arith.maxsi", dtype), identity_value("arith.minsi", dtype)
    # Unsigned, and the lattice of sets of bits: no bit is least, all bits are greatest.
    return 0, -1


def fits(values: NDArray[np.int64], dtype: str, *, signed: bool) -> NDArray[np.bool_]:
    """A mask of the integers that the type represents exactly."""
    if is_float(dtype):
        digits = {"f64": 53, "f32": 24, "f16": 11, "bf16": 8}[dtype]
        return np.abs(values) <= 1 << digits
    bits = DTYPES[dtype].bitwidth
    low, high = (-(1 << (bits - 1)), 1 << (bits - 1)) if signed else (0, 1 << bits)
    return (values >= low) & (values < high)
