"""Checks of indices before a kernel runs, in machine code: NumPy takes longer for them than a small kernel."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple, cast

from pdojo.backends.calling.arrays import INTERFACE, Parameter, view_at
from pdojo.backends.llvm import optimize
from pdojo.dialect.affine import Size
from pdojo.dialect.indices import accepted, check_indices
from pdojo.dialect.sizes import shape_for

_MOST_SIZES = 64
"""Most values of sizes whose limits are kept."""
_OUTSIDE = """
define i32 @outside(ptr %indices, i64 %count, i64 %least, i64 %last) {{
entry:
  %empty = icmp sle i64 %count, 0
  br i1 %empty, label %end, label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %before = phi i1 [ false, %entry ], [ %found, %loop ]
  %place = getelementptr {type}, ptr %indices, i64 %i
  %element = load {type}, ptr %place, align 1
  %index = {widened}
  %below = icmp slt i64 %index, %least
  %above = icmp sgt i64 %index, %last
  %wrong = or i1 %below, %above
  %found = or i1 %before, %wrong
  %next = add i64 %i, 1
  %done = icmp eq i64 %next, %count
  br i1 %done, label %end, label %loop
end:
  %any = phi i1 [ false, %entry ], [ %found, %loop ]
  %result = zext i1 %any to i32
  ret i32 %result
}}
"""


class _Limits(NamedTuple):
    """The indices that a call with given sizes accepts in an array of indices, which is dense."""

    place: int
    """The place of the array's address among the numbers of a call."""
    outside: Callable[[int, int, int, int], int]
    """From an address, a number of elements, the least and the greatest index: whether one is not between them."""
    elements: int
    least: int
    last: int


class IndexChecks:
    """The checks of the indices among the arrays of a kernel; clamped ones need none."""

    def __init__(self, kernel: str, arguments: Sequence[Parameter], sizes: Sequence[Size]) -> None:
        self._kernel = kernel
        self._sizes = sizes
        self._first = len(arguments)
        rows = [(place, p, p.indices) for place, p in enumerate(arguments) if p.indices is not None]
        self._arrays = [(place, p, indices) for place, p, indices in rows if indices.outside.is_checked]
        self._limits = lru_cache(_MOST_SIZES)(self._limits_at)

    def __bool__(self) -> bool:
        return bool(self._arrays)

    def __call__(self, numbers: Sequence[int]) -> None:
        """Check the indices of a call by the addresses of its arrays and its sizes. Raises IndexOutOfRange."""
        for place, outside, elements, least, last in self._limits(tuple(numbers[self._first :])):
            if outside(numbers[place], elements, least, last):
                self._refuse(numbers)

    def _values(self, numbers: Sequence[int]) -> dict[str, int]:
        """The values of sizes, keyed by name, by the numbers of a call after the addresses."""
        return {size.name: value for size, value in zip(self._sizes, numbers, strict=False)}

    def _limits_at(self, numbers: tuple[int, ...]) -> list[_Limits]:
        found: list[_Limits] = []
        sizes = self._values(numbers)
        for place, parameter, indices in self._arrays:
            shape = shape_for(parameter.extents, sizes) if parameter.extents else parameter.shape
            outside = _outside(INTERFACE[parameter.dtype].itemsize)
            found.append(_Limits(place, outside, prod(shape), *accepted(indices, sizes)))
        return found

    def _refuse(self, numbers: Sequence[int]) -> None:
        """Raise IndexOutOfRange for the first index that is out of range."""
        sizes = self._values(numbers[self._first :])
        for place, parameter, indices in self._arrays:
            check_indices(self._kernel, indices, view_at(numbers[place], parameter, sizes), sizes)


@lru_cache(maxsize=8)
def _outside(size: int) -> Callable[[int, int, int, int], int]:
    """The machine code for integers of `size` bytes."""
    machine = optimize.processor().target_machine("full")
    kind = f"i{size * 8}"
    widened = f"sext {kind} %element to i64" if size < 8 else f"freeze {kind} %element"
    module = optimize.parse(_OUTSIDE.format(type=kind, widened=widened))
    optimize.run_passes(module, machine, "full")
    engine = optimize.engine(module, machine)
    engine.finalize_object()
    signature = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, *[ctypes.c_int64] * 3)
    function: Any = signature(engine.get_function_address("outside"))
    function.engine = engine  # The code lives as long as its engine.
    return cast("Callable[[int, int, int, int], int]", function)
