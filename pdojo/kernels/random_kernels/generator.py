"""The generator of kernels: it draws nests of several kinds, then the header for their arrays."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import prod

from pdojo.dialect.functions import ACCUMULATIONS, accumulation_function, is_float
from pdojo.kernels.random_kernels.nests import Nests
from pdojo.kernels.random_kernels.parts import Array, Axis, Loops


class Generator(Nests):
    """Draws kernels."""

    def text(self) -> str:
        """Draw a kernel; returns its notation."""
        choose = self.choose
        for _ in range(choose.integer(1, 3)):
            role = "inout" if choose.chance(4) else "in"
            self.defined.append(self._array(choose.one(self.dtypes), self._shape(), role))
        stages = [self._elementwise, self._elementwise, self._reduction, self._padding, self._chain, self._update]
        stages += [self._window, self._in_output]
        if "s" in self.features.mappings:
            stages += [self._streamed, self._packed]
        for _ in range(choose.integer(1, self.features.stages)):
            choose.one(stages)()
        if not any(a.role in ("out", "inout") for a in self.arrays):
            self._elementwise(role="out")
        return "\n".join([*self._header(), "", *self.lines]) + "\n"

    # Stages

    def _elementwise(self, role: str | None = None) -> None:
        result = self._result(role)
        loops = self._loops(result.shape, vector=self.choose.chance(3))
        axes = list(loops.axes.values())
        value = self._value(result.dtype, axes)
        index = ",".join(self._permuted(loops.axes[d]) for d in sorted(loops.axes))
        output = self._access(result, index, lanes=any(a.vector for a in axes))
        self._emit(loops.scopes, [f"{output} = {value}"])
        self._end_nest(result)

    def _reduction(self) -> None:
        result = self._result()
        spellings = self._accumulations(result.dtype)
        if not spellings:
            return
        outer = self._loops(result.shape)
        initial = f"{self._access(result, outer.index())} = {self._constant(result.dtype)}"
        fused = self.choose.chance()
        if not fused:
            self._emit(outer.scopes, [initial])
            self._end_nest(None)
            outer = self._loops(result.shape)
        inner = Loops([*outer.scopes])
        over = self._extents(self.choose.integer(1, 2), prod(result.shape))
        axes = [*outer.axes.values(), *(self._axis(inner, n, vector=False) for n in over)]
        spelling = self.choose.one(spellings)
        value = self._value(result.dtype, axes)
        if (
            spelling == "+="
            and "arith.mulf" in self.features.functions
            and is_float(result.dtype)
            and self.choose.chance(3)
        ):
            spelling = "fma="
            value = f"arith.mulf({self._input(result.dtype, axes)}, {self._input(result.dtype, axes)})"
        statement = f"{self._access(result, outer.index())} {spelling} {value}"
        if self.features.trees:
            self._map_tree(inner, len(outer.scopes))
        added = " ".join(inner.scopes[len(outer.scopes) :])
        self._emit(outer.scopes, [*([initial] if fused else []), f"{added} {statement}"])
        self._end_nest(result)

    def _map_tree(self, loops: Loops, first: int) -> None:
        """Let the threads of a block share a reduction: `first` is its outermost scope."""
        mapped = "".join(scope.split()[0].partition(":")[2] for scope in loops.scopes[:first])
        extent, _, guard = loops.scopes[first].partition(" ")
        if "g" in mapped and "w" not in mapped and extent.isdigit() and not guard and self.choose.chance():
            fitting = [m for m in "bw" if m in self.features.mappings and (m == "b" or 4 % int(extent) == 0)]
            if fitting:
                self._map(loops, first, self.choose.one(fitting))

    def _accumulations(self, dtype: str) -> list[str]:
        found = [a for a in ACCUMULATIONS.values() if accumulation_function(a.spelling, dtype) == a.function]
        return [f"{a.spelling}=" for a in found if a.function in self.features.accumulations]

    def _padding(self) -> None:
        """Fill an array, then write an inner box: several writers of one array."""
        result = self._result()
        loops = self._loops(result.shape)
        self._emit(loops.scopes, [f"{self._access(result, loops.index())} = {self._constant(result.dtype)}"])
        self._end_nest(None)
        offsets = [self.choose.integer(0, n - 1) for n in result.shape]
        inner = [self.choose.integer(1, n - o) for n, o in zip(result.shape, offsets, strict=True)]
        loops = self._loops(inner)
        value = self._value(result.dtype, list(loops.axes.values()))
        index = ",".join(loops.axes[d].text + (f"+{o}" if o else "") for d, o in enumerate(offsets))
        self._emit(loops.scopes, [f"{self._access(result, index)} = {value}"])
        self._end_nest(result)

    def _chain(self) -> None:
        """Write and read a temporary in the same iteration, so that any of its dimensions may be reused."""
        result = self._result()
        flags = tuple(int(self.features.reuse and self.choose.chance()) for _ in result.shape)
        between = self._array(self.choose.one((result.dtype, *self.dtypes)), result.shape, "temp", flags)
        loops = self._loops(result.shape)
        axes = list(loops.axes.values())
        kept = self._access(between, loops.index())
        body = [f"{kept} = {self._value(between.dtype, axes)}"]
        if self.choose.chance():
            body.append(f"{kept} = {self._value(between.dtype, axes, (between, kept))}")
        body.append(f"{self._access(result, loops.index())} = {self._value(result.dtype, axes, (between, kept))}")
        self._emit(loops.scopes, body)
        self._end_nest(result)
        if not any(flags):
            self.defined.append(between)

    def _update(self) -> None:
        """Change an array in place, element by element."""
        writable = [a for a in self.defined if a.role != "in"]
        if not writable:
            self._elementwise()
            return
        result = self.choose.one(writable)
        self.defined.remove(result)
        result.last_nest = self.nest
        loops = self._loops(result.shape)
        axes, place = list(loops.axes.values()), self._access(result, loops.index())
        spellings = ["=", *self._accumulations(result.dtype)]
        spelling = self.choose.one(spellings)
        value = self._value(result.dtype, axes, (result, place) if spelling == "=" else None)
        if loops.scopes and axes and self.features.guards and self.choose.chance(3):
            self._restrict(loops, axes)
        self._emit(loops.scopes, [f"{place} {spelling} {value}"])
        self._end_nest(result)

    def _restrict(self, loops: Loops, axes: Sequence[Axis]) -> None:
        """Restrict an update to a part of the elements by a guard on the innermost scope."""
        last = loops.scopes[-1]
        if ":v" in last or "where" in last:
            return
        one, other = self.choose.one(axes), self.choose.one(axes)
        guards = (f"{one.text} <= {self.choose.integer(0, one.extent - 1)}", f"{one.text} <= {other.text}")
        loops.scopes[-1] = f"{last} where ({self.choose.one(guards)})"

    def _window(self) -> None:
        """Draw a producer some iterations ahead of its consumer, sometimes with a circular buffer."""
        result = self._result()
        if not result.shape:
            result.shape, result.reuse = (self.choose.integer(2, 6),), (0,)
        ahead = self.choose.integer(1, 2)
        extent, *rest = result.shape
        length = extent + ahead
        slots = self.choose.integer(ahead + 1, length)
        fold = slots if self.features.reuse and slots < length else 0
        flags = (fold, *(0 for _ in rest))
        between = self._array(result.dtype, (length, *rest), "temp", flags)
        start = self._loops((ahead, *rest))
        value = self._value(between.dtype, list(start.axes.values()))
        self._emit(self._unmapped(start), [f"{self._access(between, start.index())} = {value}"])
        self._end_nest(None)
        inner = [Axis(f"{{{depth + 1}}}", n) for depth, n in enumerate(rest)]
        axes = [Axis("{0}", extent), *inner]
        tail = "".join(f",{axis.text}" for axis in inner)
        near, far = (self._access(between, f"{{0}}{offset}{tail}") for offset in ("", f"+{ahead}"))
        produced = self._value(between.dtype, axes)
        used = self._value(result.dtype, axes, (between, self.choose.one((near, far))))
        added = self._spelled_sum(result.dtype, near, far)
        body = [f"{far} = {produced}", f"{self._access(result, '{0}' + tail)} = {self.choose.one((used, added))}"]
        scopes = " ".join(map(str, rest))
        self._emit([str(extent)], [f"{scopes} {line}".strip() for line in body])
        self._end_nest(result)
        if not fold:
            self.defined.append(between)

    def _streamed(self) -> None:
        """Draw doubles through three streams, sometimes with a hardware loop around the inner iterations."""
        shape = self._extents(self.choose.integer(1, 2), 1)
        one, other, result = (self._array("f64", shape, role) for role in ("in", "in", "out"))
        index = ",".join(f"{{{depth}}}" for depth in range(len(shape)))
        scopes = [str(n) for n in shape]
        scopes[0] += ":s"
        if len(shape) == 2 and self.choose.chance():
            scopes[1] += ":f"
        value = self._spelled(
            self.choose.one(("arith.addf", "arith.mulf")), [f"{a.name}[{index}]" for a in (one, other)]
        )
        self._emit(scopes, [f"{result.name}[{index}] = {value}"])
        self.defined += [one, other]
        self._end_nest(result)

    def _packed(self) -> None:
        """Draw a register of several lanes, of which a guard excludes some from a second statement."""
        dtype, lanes = self.choose.one((("f32", 2), ("f16", 4)))
        shape = (self.choose.integer(1, 4), lanes)
        given, result = self._array(dtype, shape, "in"), self._array(dtype, shape, "out")
        kept = self._array(dtype, shape, "temp", (1, 0))
        kept.memory = "register"
        limit = self.choose.integer(0, lanes)
        guard = self.choose.one((f"{{0}}-{{1}} >= {limit - 2}", "{1} <= {0}", f"{{1}} < {limit}", f"{{0}} < {limit}"))
        cell, read = f"{kept.name}[{{0}},{{1}}]", f"{given.name}[{{0}},{{1}}]"
        spelling, first = self.choose.one(("=", *self._accumulations(dtype))), self._constant(dtype)
        body = [f"{lanes}:v {cell} = {self.choose.one((first, read))}"]
        body.append(f"{lanes}:v where ({guard}) {cell} {spelling} {read}")
        body.append(f"{lanes}:u {result.name}[{{0}},{{1}}] = {cell}")
        self._emit([self._unrolled(shape[0])], body)
        self.defined.append(given)
        self._end_nest(result)

    def _in_output(self) -> None:
        """Draw a temporary in the memory of the output that is computed from it, element by element."""
        result = self._result("out")
        between = self._array(result.dtype, result.shape, "temp")
        if self.features.share:
            between.memory, between.home = "heap", result.name
        first, second = self._loops(result.shape), self._loops(result.shape)
        value = self._value(between.dtype, list(first.axes.values()))
        self._emit(first.scopes, [f"{self._access(between, first.index())} = {value}"])
        self._end_nest(None)
        local = (between, self._access(between, second.index()))
        value = self._value(result.dtype, list(second.axes.values()), local)
        self._emit(second.scopes, [f"{self._access(result, second.index())} = {value}"])
        self._end_nest(result)

    def _unmapped(self, loops: Loops) -> list[str]:
        """The scopes not mapped to threads: other iterations use the elements that they write."""
        return [re.sub(":[pgbw]", "", scope) for scope in loops.scopes]

    def _spelled_sum(self, dtype: str, one: str, other: str) -> str:
        if dtype == "i1":
            return one
        return self._spelled("arith.addf" if is_float(dtype) else "arith.addi", [one, other])

    # Header

    def _header(self) -> list[str]:
        inputs = [a.name for a in self.arrays if a.role in ("in", "inout")]
        outputs = [a.name for a in self.arrays if a.role in ("inout", "out")]
        lines = [f"kernel k({', '.join(inputs)}) -> ({', '.join(outputs)})"]
        if self.features.facts:
            facts = (
                "numerics exact",
                "numerics reassociate",
                "numerics reassociate contract reciprocal approximate",
                "machine toy",
            )
            lines += [self.choose.one(facts)] if self.choose.chance(4) else []
        for array in (a for a in self.arrays if a.role != "temp"):
            guests = [a.name for a in self.arrays if a.home == array.name]
            lines.append(self._declared(array) + (f" -> {', '.join([array.name, *guests])}" if guests else ""))
        groups: list[list[Array]] = []
        for array in (a for a in self.arrays if a.role == "temp" and not a.home):
            home = next((g for g in groups if self._may_share(g, array)), None)
            if home is not None and self.features.share and self.choose.chance():
                home.append(array)
            else:
                groups.append([array])
        names = [" -> " + ", ".join(a.name for a in g) if len(g) > 1 else "" for g in groups]
        tables = (
            f"{name} i64 [{len(found)}] table {', '.join(map(str, found))}" for name, found in self.tables.items()
        )
        return [*lines, *(self._declared(g[0]) + n for g, n in zip(groups, names, strict=True)), *tables]

    def _may_share(self, group: Sequence[Array], array: Array) -> bool:
        """True if live ranges are disjoint: the last nest of one array precedes the first nest of the other."""
        first = group[0]
        alike = (first.dtype, first.shape, first.memory) == (array.dtype, array.shape, array.memory)
        plain = not any(first.reuse) and not any(array.reuse)
        return alike and plain and all(a.last_nest < array.first_nest or array.last_nest < a.first_nest for a in group)

    def _declared(self, array: Array) -> str:
        shape = ", ".join(
            f"{n}{('', ':N', f':N{r}')[min(r, 2)]}" for n, r in zip(array.shape, array.reuse, strict=True)
        )
        align = " align 64" if array.role != "temp" and self.features.facts and self.choose.chance(6) else ""
        # Every second input is constant, without a choice: the meaning does not change.
        constant = " const" if array.role == "in" and self.arrays.index(array) % 2 == 0 else ""
        return f"{array.name} {array.dtype} [{shape}] {array.memory}{constant}{align}"
