"""Calls of the C functions of a generated library: sizes, handles, threads, errors. Part of every generated wheel."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterable, Mapping, Sequence
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
    """Sizes that an operator serves, and the shapes of its arrays at them; -1 is any number of rows."""

    sizes: tuple[int, ...]
    shapes: tuple[tuple[int, ...], ...]


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
    served: tuple[Served, ...]
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
        columns = zip(*(each.shapes for each in self.served), strict=True)
        self._free = [any(shape[:1] == (-1,) for shape in column) for column in columns]
        for each in self.served:
            self._known.setdefault(self._key(each.shapes), []).append(each)

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
        code = self._function(self.library.handle(), *served.sizes, *map(address, ordered))
        if code:
            self.library.check(code)
        return results[0] if len(results) == 1 else tuple(results) or None

    def _inputs(self, each: Iterable[Any]) -> list[Any]:
        """The items of the arrays that callers give."""
        return [item for item, a in zip(each, self.arguments, strict=True) if a.direction != "out"]

    def _key(self, shapes: Iterable[tuple[int, ...]]) -> Any:
        """The shapes of the inputs, without the rows if any number of rows is served."""
        return self._key_of(self._inputs(shapes))

    def _key_of(self, shapes: Iterable[tuple[int, ...]]) -> Any:
        free = self._inputs(self._free)
        return tuple((-1, *shape[1:]) if any_ else shape for shape, any_ in zip(shapes, free, strict=True))

    def _choose(
        self, shapes: Sequence[tuple[int, ...]], outs: Sequence[tuple[int, ...]], wanted: Mapping[str, int | None]
    ) -> Served:
        """The sizes and shapes of a call. Raises ValueError if no sizes fit, or several."""
        fixed = {name: value for name, value in wanted.items() if value is not None}
        found = self._known.get(self._key_of(shapes), [])
        rows = self._rows(shapes, outs, fixed) if any(self._free) else None
        if rows is not None:
            found = [_with_rows(each, rows) for each in found]
            found = [each for each in found if self._inputs(each.shapes) == list(shapes)]
        found = [each for each in found if fixed.items() <= dict(zip(self.sizes, each.sizes, strict=True)).items()]
        if len(found) > 1 and outs:
            found = [each for each in found if list(outs) == self._outs(each)]
        if len(found) == 1 and not any(size < 0 for size in found[0].sizes):
            return found[0]
        names = [a.name for a in self.arguments if a.direction != "out"]
        if found:
            raise ValueError(f"{self.name}: several sizes have inputs of these shapes; give {', '.join(wanted)}")
        known = [_shown(names, self._inputs(each.shapes)) for each in self.served]
        rest = f"; and {len(known) - _SHOWN} more" if len(known) > _SHOWN else ""
        also = "".join(f", {name}={value}" for name, value in fixed.items())
        listed = "; ".join(known[:_SHOWN])
        raise ValueError(f"{self.name} does not serve {_shown(names, shapes)}{also}; it serves {listed}{rest}")

    def _rows(
        self, shapes: Sequence[tuple[int, ...]], outs: Sequence[tuple[int, ...]], fixed: Mapping[str, int]
    ) -> int | None:
        """The number of rows of a call; None if nothing tells it."""
        given = [shape[0] for shape, free in zip(shapes, self._inputs(self._free), strict=True) if free and shape]
        given += [
            fixed[name] for name, n in zip(self.sizes, self.served[0].sizes, strict=True) if n < 0 and name in fixed
        ]
        given += [shape[0] for shape in outs if shape]
        return given[0] if given else None

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


def _with_rows(served: Served, rows: int) -> Served:
    sizes = tuple(rows if n < 0 else n for n in served.sizes)
    return Served(sizes, tuple(tuple(rows if n < 0 else n for n in shape) for shape in served.shapes))


def _shown(names: Sequence[str], shapes: Sequence[Sequence[int]]) -> str:
    return ", ".join(
        f"{name} [{', '.join('any' if n < 0 else str(n) for n in shape)}]"
        for name, shape in zip(names, shapes, strict=True)
    )
