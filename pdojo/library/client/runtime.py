"""Calls of the C functions of a generated library: sizes, handles, threads, errors. Part of every generated wheel."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import index
from typing import Any, cast

from .arrays import Argument, address, empty, results_like, view

_SHOWN = 12
"""Most sizes in a message."""
_SEVERAL = (tuple, list)
MOST_THREADS = 4096
"""Most threads of a handle."""
_KEPT = 256
"""Most shapes whose sizes an operator remembers."""


class LibraryError(RuntimeError):
    """A call that the library refused."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        """The code that the C function returned."""


@dataclass(frozen=True)
class Served:
    """Sizes that an operator serves, and the shapes of its arrays at them."""

    sizes: tuple[int, ...]
    """A value for each size; -1 if the arrays of a call do not tell it."""
    shapes: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Ranges:
    """Ranges of sizes that an operator serves, and the shapes of its arrays."""

    sizes: tuple[int | range, ...]
    texts: tuple[tuple[int | str, ...], ...]
    """The shapes as expressions of the sizes, for messages."""
    shapes: Callable[[Sequence[int]], tuple[tuple[int, ...], ...]]
    """The shapes at sizes."""
    places: tuple[tuple[int, int, int], ...]
    """Sizes by number, each with an array and a dimension of it whose extent is linear in this size alone."""

    def at(self, shapes: Sequence[tuple[int, ...] | None], fixed: Mapping[int, int]) -> Served | None:
        """The sizes that arrays of a call tell, None for one that is not given; None for sizes that are not served.

        `fixed` are values that the caller gives, by the size's number.
        """
        values = [each[0] if isinstance(each, range) else each for each in self.sizes]
        open_ = {number for number, each in enumerate(self.sizes) if isinstance(each, range)}
        for number, array, dimension in self.places:
            shape, own = shapes[array], self.sizes[number]
            if number in open_ and isinstance(own, range) and shape is not None and dimension < len(shape):
                first, second = (self.shapes(_with(values, number, v))[array][dimension] for v in own[:2])
                values[number] = own[0] + (shape[dimension] - first) // (second - first) * own.step
                open_.discard(number)
        for number, value in fixed.items():
            values[number] = value
            open_.discard(number)
        if not all(map(_has, self.sizes, values)):
            return None
        return Served(tuple(-1 if k in open_ else value for k, value in enumerate(values)), self.shapes(values))


def _with(values: Sequence[int], number: int, value: int) -> list[int]:
    return [*values[:number], value, *values[number + 1 :]]


def _has(size: int | range, value: int) -> bool:
    """Whether a size may have a value; a range from its first multiple also has 0."""
    if isinstance(size, int):
        return value == size
    return value in size or (value == 0 and size[0] == size.step)


@dataclass
class Handle:
    """A handle of the C library; it ends with this object."""

    pointer: ctypes.c_void_p
    destroy: Any

    def __del__(self) -> None:
        self.destroy(self.pointer)


class Library:
    """A loaded library, with a handle for each thread that calls it."""

    def __init__(self, path: str, prefix: str) -> None:
        self._library = ctypes.CDLL(path)
        self.prefix = prefix
        self.threads = 0
        self._own = threading.local()
        self._create = self.function("create", ctypes.c_int, ctypes.POINTER(ctypes.c_void_p), ctypes.c_int)
        self._create_level = self.function("create_level", ctypes.c_int, *self._create.argtypes, ctypes.c_char_p)
        self._level = self.function("level", ctypes.c_char_p, ctypes.c_void_p)
        self._destroy = self.function("destroy", None, ctypes.c_void_p)
        self._message = self.function("message", ctypes.c_char_p, ctypes.c_int)
        # The threads of a handle do not exist in the child of a fork: it makes a handle of its own.
        os.register_at_fork(after_in_child=lambda: self._own.__dict__.clear())

    def function(self, name: str, result: Any, *arguments: Any) -> Any:
        """The C function `PREFIX_name`."""
        found = getattr(self._library, f"{self.prefix}_{name}")
        found.restype, found.argtypes = result, arguments
        return found

    def message(self, code: int) -> str:
        """The meaning of a code."""
        return self._message(code).decode()

    def check(self, code: int) -> None:
        """Raise LibraryError for a code other than 0."""
        if code:
            raise LibraryError(code, self.message(code))

    def set_threads(self, count: int) -> None:
        """Set the number of threads of a call; 0 is the number of processors.

        It holds for the calling thread, and for threads that have not called the library yet.
        """
        count = index(count)
        if not 0 <= count <= MOST_THREADS:
            raise ValueError(f"a number of threads is from 1 to {MOST_THREADS}, or 0 for all processors, not {count}")
        self.threads = count
        self._own.__dict__.clear()

    def handle(self) -> ctypes.c_void_p:
        """The handle of the calling thread."""
        found: Handle | None = getattr(self._own, "handle", None)
        if found is None:
            found = self._own.handle = self.new_handle(self.threads)
        return found.pointer

    def models(self) -> set[str]:
        """The models that are bound to the handle of the calling thread."""
        found: set[str] | None = getattr(self._own, "models", None)
        if found is None:
            found = self._own.models = set[str]()
        return found

    def level(self) -> str:
        """The name of the level of programs that calls of this thread run."""
        return self._level(self.handle()).decode()

    def new_handle(self, threads: int, level: str | None = None) -> Handle:
        """A new handle, with the best level if `level` is None. Raises LibraryError if its threads do not start."""
        pointer = ctypes.c_void_p()
        if level is None:
            self.check(self._create(ctypes.byref(pointer), threads))
        else:
            self.check(self._create_level(ctypes.byref(pointer), threads, level.encode()))
        return Handle(pointer, self._destroy)


@dataclass
class Operator:
    """A C function of the library, called with arrays."""

    library: Library
    name: str
    sizes: tuple[str, ...]
    """The size arguments."""
    arguments: tuple[Argument, ...]
    served: tuple[Served | Ranges, ...]
    _known: dict[Any, list[Served]] = field(default_factory=dict[Any, list[Served]])
    """The served sizes by the shapes of the inputs."""

    def __post_init__(self) -> None:
        kinds = [ctypes.c_void_p, *[ctypes.c_int64] * len(self.sizes), *[ctypes.c_void_p] * len(self.arguments)]
        self._function = self.library.function(self.name, ctypes.c_int, *kinds)
        self._read = [a for a in self.arguments if a.direction != "out"]
        self._written = [a for a in self.arguments if a.direction == "out"]
        lists = {False: iter(range(len(self.arguments))), True: iter(range(len(self.arguments)))}
        self._places = [(is_out, next(lists[is_out])) for is_out in (a.direction == "out" for a in self.arguments)]
        """For each argument: whether it is an output, and its place among outputs or inputs."""
        self._changed = [k for k, a in enumerate(self.arguments) if a.direction != "in"]
        self._latest: dict[tuple[tuple[int, ...], ...], Served] = {}
        """The sizes of calls by the shapes of the inputs."""
        self._ranges = [each for each in self.served if isinstance(each, Ranges)]
        for each in self.served:
            if isinstance(each, Served):
                self._known.setdefault(tuple(self._inputs(each.shapes)), []).append(each)

    def __call__(self, given: Sequence[Any], out: Any = None, /, **wanted: int | None) -> Any:
        """Call the function with the inputs `given`; `wanted` are sizes that the shapes of inputs leave open.

        `out` is None, the output, or a sequence of outputs. Returns the output, or a tuple of outputs, of the inputs'
        kind: tensors for tensors. Raises TypeError or ValueError for arrays that do not fit, LibraryError for a code of
        the library: for arrays that overlap, among others.
        """
        outs: Sequence[Any] = () if out is None else cast("Any", out) if isinstance(out, _SEVERAL) else (out,)
        arrays = [view(value, a) for value, a in zip(given, self._read, strict=True)]
        if outs and len(outs) != len(self._written):
            count = len(self._written)
            raise ValueError(f"{self.name} has {count} output{'s' * (count != 1)}, not {len(outs)}")
        views = [view(value, a) for value, a in zip(outs, self._written, strict=bool(outs))]
        shapes, asked = [array.shape for array in arrays], [array.shape for array in views]
        key = (*shapes, *asked)
        served = None if wanted else self._latest.get(key)
        if served is None:
            served = self._choose(shapes, asked, wanted)
            if not wanted and len(self._latest) < _KEPT:
                self._latest[key] = served
        results = outs
        if outs:
            self._check(views, self._outs(served))
        else:
            results = self._new(served, given)
            views = [view(value, a) for value, a in zip(results, self._written, strict=True)]
        lists = arrays, views
        ordered = [lists[is_out][k] for is_out, k in self._places]
        for k in self._changed:
            if not ordered[k].flags.writeable:
                raise ValueError(f"{self.name}: {self.arguments[k].name} is read-only, and the operator writes it")
        code = self._function(self._handle(), *served.sizes, *map(address, ordered))
        if code:
            self.library.check(code)
        return results[0] if len(results) == 1 else tuple(results) or None

    def _handle(self) -> ctypes.c_void_p:
        return self.library.handle()

    def _inputs(self, each: Iterable[Any]) -> list[Any]:
        """The items of the arrays that callers give."""
        return [item for item, a in zip(each, self.arguments, strict=True) if a.direction != "out"]

    def _choose(
        self, shapes: Sequence[tuple[int, ...]], outs: Sequence[tuple[int, ...]], wanted: Mapping[str, int | None]
    ) -> Served:
        """The sizes and shapes of a call. Raises ValueError if no sizes fit, or several."""
        fixed = {self.sizes.index(name): value for name, value in wanted.items() if value is not None}
        found = [s for s in self._known.get(tuple(shapes), []) if all(s.sizes[k] == v for k, v in fixed.items())]
        lists = shapes, outs or [None] * len(self._written)
        given = [lists[is_out][k] for is_out, k in self._places]
        told = [each for ranges in self._ranges if (each := ranges.at(given, fixed)) is not None]
        found = list(dict.fromkeys([*found, *(s for s in told if self._inputs(s.shapes) == list(shapes))]))
        if len(found) > 1 and outs:
            found = [each for each in found if list(outs) == self._outs(each)]
        if len(found) == 1 and not any(size < 0 for size in found[0].sizes):
            return found[0]
        names = [a.name for a in self.arguments if a.direction != "out"]
        if found:
            raise ValueError(f"{self.name}: several sizes have inputs of these shapes; give {', '.join(wanted)}")
        texts = (each.texts if isinstance(each, Ranges) else each.shapes for each in self.served)
        known = list(dict.fromkeys(_shown(names, self._inputs(each)) for each in texts))
        rest = f"; and {len(known) - _SHOWN} more" if len(known) > _SHOWN else ""
        also = "".join(f", {self.sizes[k]}={value}" for k, value in fixed.items())
        listed = "; ".join(known[:_SHOWN])
        raise ValueError(f"{self.name} does not serve {_shown(names, shapes)}{also}; it serves {listed}{rest}")

    def _outs(self, served: Served) -> list[tuple[int, ...]]:
        return [shape for shape, a in zip(served.shapes, self.arguments, strict=True) if a.direction == "out"]

    def _new(self, served: Served, given: Sequence[Any]) -> list[Any]:
        """New outputs, of the kind of the inputs."""
        dtypes = [a.dtype for a in self._written]
        arrays = [empty(shape, dtype) for shape, dtype in zip(self._outs(served), dtypes, strict=True)]
        return results_like(given, arrays, dtypes)

    def _check(self, views: Sequence[Any], shapes: Sequence[tuple[int, ...]]) -> None:
        """Raise ValueError for an output of a wrong shape."""
        for array, shape, a in zip(views, shapes, self._written, strict=True):
            if array.shape != shape:
                raise ValueError(f"{self.name}: {a.name} has shape {list(array.shape)}, not {list(shape)}")


@dataclass
class Model(Operator):
    """A model of the library; its weights are read in the first call."""

    weights: str | None = field(default=None, kw_only=True)
    """The file of weights; None if the library has them."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._load = self.library.function(f"{self.name}_load", ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)
        self._share = self.library.function(f"{self.name}_share", ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
        self._lock = threading.Lock()
        self._first: Handle | None = None
        """A handle to which the model is bound, whose memory the handles of all threads share."""

    def _handle(self) -> ctypes.c_void_p:
        found = self.library.handle()
        if self.name not in self.library.models():
            with self._lock:
                if self._first is None:
                    first = self.library.new_handle(1)
                    self.library.check(
                        self._load(first.pointer, None if self.weights is None else self.weights.encode())
                    )
                    self._first = first
            self.library.check(self._share(found, self._first.pointer))
            self.library.models().add(self.name)
        return found


def _shown(names: Sequence[str], shapes: Sequence[Sequence[int | str]]) -> str:
    rows = zip(names, shapes, strict=True)
    return ", ".join(f"{name} [{', '.join(map(str, shape))}]" for name, shape in rows)
