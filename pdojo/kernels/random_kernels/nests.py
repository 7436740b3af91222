"""Arrays, and the scopes around a nest's statements."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from pdojo.kernels.random_kernels.parts import INSTANCES, Array, Axis, Choices, Features, Loops
from pdojo.kernels.random_kernels.values import Values


class Nests(Values):
    """Draws arrays and scopes, and writes nests."""

    def __init__(self, choices: Choices, features: Features) -> None:
        super().__init__(choices, features)
        self.lines: list[str] = []
        self.dtypes = [choices.one(features.dtypes) for _ in range(choices.integer(1, 3))]

    # Arrays

    def _array(self, dtype: str, shape: tuple[int, ...], role: str, reuse: tuple[int, ...] = ()) -> Array:
        prefix = {"in": "x", "inout": "c", "out": "y", "temp": "t"}[role]
        array = Array(f"{prefix}{len(self.arrays)}", dtype, shape, role, reuse or (0,) * len(shape))
        array.first_nest = array.last_nest = self.nest
        if role == "temp":
            array.memory = self.choose.one(self._places(array))
        self.arrays.append(array)
        return array

    def _places(self, array: Array) -> Sequence[str]:
        """Memories for an array: registers need constant indices, and threads cannot index a GPU thread's stack."""
        single = bool(array.shape) and all(slots == 1 for slots in array.reuse)
        if "g" in self.features.mappings:
            return ("heap", "stack") if single else ("heap",)
        return ("heap", "stack", "register") if single else ("heap", "stack")

    def _result(self, role: str | None = None) -> Array:
        role = role or self.choose.one(("temp", "out"))
        dtype = self.choose.one(self.dtypes)
        return self._array(dtype, self._shape(), role)

    def _shape(self) -> tuple[int, ...]:
        known = [a.shape for a in self.arrays]
        if known and self.choose.chance():
            return self.choose.one(known)
        return self._extents(self.choose.integer(0, 3), 1)

    def _extents(self, count: int, around: int) -> tuple[int, ...]:
        """Extents of a nest of few instances; `around` is the number of iterations around it."""
        found: list[int] = []
        for _ in range(count):
            fitting = [n for n in self.features.extents if n * prod(found) * around <= INSTANCES]
            found.append(self.choose.one(fitting or (1,)))
        return tuple(found)

    # Nests

    def _loops(self, shape: Sequence[int], *, vector: bool = False) -> Loops:
        """Scopes over a box in any order, with some dimensions split in two; all iterations are independent."""
        choose, loops = self.choose, Loops()
        order = list(range(len(shape)))
        for _ in range(choose.integer(0, len(shape))):
            if not vector or len(shape) > 2:
                order.insert(0, order.pop(choose.integer(0, len(order) - 1 - vector)))
        for dimension in order:
            last = vector and dimension == order[-1] == len(shape) - 1
            loops.axes[dimension] = self._axis(loops, shape[dimension], vector=last)
        self._map_threads(loops)
        return loops

    def _axis(self, loops: Loops, extent: int, *, vector: bool) -> Axis:
        """Add one scope, or an outer and an inner one, with a guard on the tail."""
        depth = len(loops.scopes)
        lanes = [n for n in (2, 4) if extent % n == 0] if vector and "v" in self.features.mappings else []
        if lanes:
            size = self.choose.one(lanes)
            if size < extent:
                loops.scopes += [str(extent // size), f"{size}:v"]
                return Axis(f"{{{depth}}}*{size}+{{{depth + 1}}}", extent, vector=True)
            loops.scopes.append(f"{size}:v")
            return Axis(f"{{{depth}}}", extent, vector=True)
        size = self.choose.integer(2, 4)
        if extent > size and self.choose.chance(3) and (extent % size == 0 or self.features.guards):
            text = f"{{{depth}}}*{size}+{{{depth + 1}}}"
            guard = f" where ({text} < {extent})" if extent % size else ""
            loops.scopes += [self._unrolled(-(-extent // size)), self._unrolled(size) + guard]
            return Axis(text, extent)
        loops.scopes.append(self._unrolled(extent))
        return Axis(f"{{{depth}}}", extent)

    def _unrolled(self, extent: int) -> str:
        return f"{extent}:u" if "u" in self.features.mappings and self.choose.chance(6) else str(extent)

    def _map_threads(self, loops: Loops) -> None:
        """Map one scope inside sequential ones; on a GPU a grid, with blocks and warps inside it."""
        threads = [m for m in self.features.mappings if m in "pgbw"]
        sequential = next((k for k, s in enumerate(loops.scopes) if not s.split()[0].isdigit()), len(loops.scopes))
        if not threads or not sequential or not self.choose.chance(3):
            return
        place = self.choose.integer(0, sequential - 1)
        if "g" not in threads:
            self._map(loops, place, self.choose.one(threads))
            return
        self._map(loops, place, "g")
        for mapping in ("b", "w"):
            inner = range(place + 1, sequential)
            if not inner or mapping not in threads or not self.choose.chance():
                continue
            chosen = self.choose.one(inner)
            if mapping == "b" or 4 % int(loops.scopes[chosen].split()[0]) == 0:
                self._map(loops, chosen, mapping)
                place = chosen

    def _map(self, loops: Loops, place: int, mapping: str) -> None:
        extent, _, guard = loops.scopes[place].partition(" ")
        loops.scopes[place] = f"{extent}:{mapping}{' ' if guard else ''}{guard}"

    def _emit(self, scopes: Sequence[str], body: Sequence[str], bars: int = 0) -> None:
        """Write scopes and their body, on one line or nested."""
        prefix = "| " * bars
        if not scopes:
            self.lines += [prefix + line for line in body]
        elif len(body) == 1 and not self.choose.chance(3):
            self.lines.append(prefix + " ".join((*scopes, body[0])))
        else:
            cut = self.choose.integer(1, len(scopes))
            self.lines.append(prefix + " ".join(scopes[:cut]))
            self._emit(scopes[cut:], body, bars + 1)

    def _end_nest(self, result: Array | None) -> None:
        if result is not None:
            result.last_nest = self.nest
            self.defined.append(result)
        self.nest += 1
