"""Random kernels in the notation, for property tests.

`kernel_texts(features)` draws texts that are well formed: every access is in bounds, types agree, every element is
defined before it is read, every output is fully written, concurrent scopes do not race, and reuse flags and shared
buffers never change a value. So every move, interpreter and backend must cope with them. Integer divisions have
positive constant divisors, shifts stay below the width, and conversions of floats to integers read an input array only,
so that no behaviour is undefined for inputs of moderate size. Extents are small. Spelling varies on purpose
(familiar and full names, several extents on a line or nested), so that a text is rarely canonical.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar, cast

from hypothesis import strategies as st

from pdojo.dialect.functions import (
    ACCUMULATIONS,
    DTYPES,
    FUNCTIONS,
    Signature,
    accumulation_function,
    cast_between,
    is_float,
)
from pdojo.dialect.notation import parse_notation
from pdojo.dialect.notation.spelling import CALLS, INFIX
from pdojo.dialect.ops import KernelOp

T = TypeVar("T")
Draw = Callable[[st.SearchStrategy[T]], T]


@dataclass(frozen=True)
class Features:
    """What random kernels may contain."""

    dtypes: tuple[str, ...] = tuple(DTYPES)
    extents: tuple[int, ...] = (1, 2, 3, 4, 5, 6)
    stages: int = 4
    """Most nests or groups of nests."""
    mappings: tuple[str, ...] = ("u", "p", "v")
    """`p` (or another threaded mapping) goes to outermost scopes, `v` to innermost ones of 2 or 4 iterations."""
    guards: bool = True
    reuse: bool = True
    share: bool = True
    """Whether arrays of disjoint live ranges may live in one buffer."""
    hints: bool = True
    facts: bool = True
    """Whether kernels may state numerics, machine and alignments."""
    functions: frozenset[str] = frozenset(FUNCTIONS)
    accumulations: frozenset[str] = frozenset(ACCUMULATIONS)


def kernel_texts(features: Features | None = None) -> st.SearchStrategy[str]:
    """Texts of random kernels."""
    chosen = features or Features()

    @st.composite
    def text(draw: Draw[object]) -> str:
        return _Generator(_Choices(draw), chosen).text()

    return text()


def kernels(features: Features | None = None) -> st.SearchStrategy[KernelOp]:
    """Random kernels."""
    return kernel_texts(features).map(lambda text: parse_notation(text)[0])


class _Choices:
    """Typed drawing."""

    def __init__(self, draw: Draw[object]) -> None:
        self._draw = draw

    def one(self, options: Sequence[T]) -> T:
        return cast("T", self._draw(st.sampled_from(options)))

    def integer(self, low: int, high: int) -> int:
        found = self._draw(st.integers(low, high))
        assert isinstance(found, int)
        return found

    def chance(self, out_of: int = 2) -> bool:
        """True once in `out_of` times; shrinks to False."""
        return self.integer(0, out_of - 1) == out_of - 1


@dataclass(eq=False)
class _Array:
    name: str
    dtype: str
    shape: tuple[int, ...]
    role: str
    """in, inout, out or temp."""
    reuse: tuple[bool, ...]
    memory: str = "heap"
    first_nest: int = 0
    last_nest: int = 0


@dataclass(frozen=True)
class _Axis:
    """A value that runs over `range(extent)`: an iteration or an expression over several."""

    text: str
    extent: int
    vector: bool = False

    @property
    def operand(self) -> str:
        """The text as an operand of `*`, `//` and `%`."""
        return self.text if self.text.endswith("}") and self.text.count("{") == 1 else f"({self.text})"


@dataclass
class _Loops:
    """The scopes around the statements of one nest."""

    scopes: list[str] = field(default_factory=list[str])
    axes: dict[int, _Axis] = field(default_factory=dict[int, _Axis])
    """Per dimension of the result."""

    def index(self) -> str:
        return ",".join(self.axes[d].text for d in sorted(self.axes))


class _Generator:
    def __init__(self, choices: _Choices, features: Features) -> None:
        self.choose = choices
        self.features = features
        self.arrays: list[_Array] = []
        self.defined: list[_Array] = []
        """Arrays whose every element may be read in any later nest."""
        self.lines: list[str] = []
        self.nest = 0
        self.dtypes = [choices.one(features.dtypes) for _ in range(choices.integer(1, 3))]

    def text(self) -> str:
        choose = self.choose
        for _ in range(choose.integer(1, 3)):
            role = "inout" if choose.chance(4) else "in"
            self.defined.append(self._array(choose.one(self.dtypes), self._shape(), role))
        stages = [self._elementwise, self._elementwise, self._reduction, self._padding, self._chain, self._update]
        for _ in range(choose.integer(1, self.features.stages)):
            choose.one(stages)()
        if not any(a.role in ("out", "inout") for a in self.arrays):
            self._elementwise(role="out")
        return "\n".join([*self._header(), "", *self.lines]) + "\n"

    # Arrays

    def _array(self, dtype: str, shape: tuple[int, ...], role: str, reuse: tuple[bool, ...] = ()) -> _Array:
        prefix = {"in": "x", "inout": "c", "out": "y", "temp": "t"}[role]
        array = _Array(f"{prefix}{len(self.arrays)}", dtype, shape, role, reuse or (False,) * len(shape))
        array.first_nest = array.last_nest = self.nest
        if role == "temp":
            places = ["heap", "stack", "register"] if shape and all(array.reuse) else ["heap", "stack"]
            array.memory = self.choose.one(places)
        self.arrays.append(array)
        return array

    def _result(self, role: str | None = None) -> _Array:
        role = role or self.choose.one(("temp", "out"))
        dtype = self.choose.one(self.dtypes)
        return self._array(dtype, self._shape(), role)

    def _shape(self) -> tuple[int, ...]:
        known = [a.shape for a in self.arrays]
        if known and self.choose.chance():
            return self.choose.one(known)
        return tuple(self.choose.one(self.features.extents) for _ in range(self.choose.integer(0, 3)))

    # Nests

    def _loops(self, shape: Sequence[int], *, vector: bool = False) -> _Loops:
        """Scopes over a box, in any order, some dimensions in two scopes; all iterations are independent."""
        choose, loops = self.choose, _Loops()
        order = list(range(len(shape)))
        for _ in range(choose.integer(0, len(shape))):
            if not vector or len(shape) > 2:
                order.insert(0, order.pop(choose.integer(0, len(order) - 1 - vector)))
        for dimension in order:
            last = vector and dimension == order[-1] == len(shape) - 1
            loops.axes[dimension] = self._axis(loops, shape[dimension], vector=last)
        self._map_threads(loops)
        return loops

    def _axis(self, loops: _Loops, extent: int, *, vector: bool) -> _Axis:
        """One scope, or an outer and an inner one; a tail is guarded."""
        depth = len(loops.scopes)
        lanes = [n for n in (2, 4) if extent % n == 0] if vector and "v" in self.features.mappings else []
        if lanes:
            size = self.choose.one(lanes)
            if size < extent:
                loops.scopes += [str(extent // size), f"{size}:v"]
                return _Axis(f"{{{depth}}}*{size}+{{{depth + 1}}}", extent, vector=True)
            loops.scopes.append(f"{size}:v")
            return _Axis(f"{{{depth}}}", extent, vector=True)
        size = self.choose.integer(2, 4)
        if extent > size and self.choose.chance(3) and (extent % size == 0 or self.features.guards):
            text = f"{{{depth}}}*{size}+{{{depth + 1}}}"
            guard = f" where ({text} < {extent})" if extent % size else ""
            loops.scopes += [self._unrolled(-(-extent // size)), self._unrolled(size) + guard]
            return _Axis(text, extent)
        loops.scopes.append(self._unrolled(extent))
        return _Axis(f"{{{depth}}}", extent)

    def _unrolled(self, extent: int) -> str:
        return f"{extent}:u" if "u" in self.features.mappings and self.choose.chance(6) else str(extent)

    def _map_threads(self, loops: _Loops) -> None:
        """Map one scope that is inside sequential ones only."""
        threads = [m for m in self.features.mappings if m not in "uv"]
        sequential = next((k for k, s in enumerate(loops.scopes) if not s.split()[0].isdigit()), len(loops.scopes))
        if threads and sequential and self.choose.chance(3):
            place = self.choose.integer(0, sequential - 1)
            extent, _, guard = loops.scopes[place].partition(" ")
            loops.scopes[place] = f"{extent}:{self.choose.one(threads)}{' ' if guard else ''}{guard}"

    def _emit(self, scopes: Sequence[str], body: Sequence[str], bars: int = 0) -> None:
        """Scopes with their children, on one line or nested."""
        prefix = "| " * bars
        if not scopes:
            self.lines += [prefix + line for line in body]
        elif len(body) == 1 and not self.choose.chance(3):
            self.lines.append(prefix + " ".join((*scopes, body[0])))
        else:
            cut = self.choose.integer(1, len(scopes))
            self.lines.append(prefix + " ".join(scopes[:cut]))
            self._emit(scopes[cut:], body, bars + 1)

    def _end_nest(self, result: _Array | None) -> None:
        if result is not None:
            result.last_nest = self.nest
            self.defined.append(result)
        self.nest += 1

    # Stages

    def _elementwise(self, role: str | None = None) -> None:
        result = self._result(role)
        loops = self._loops(result.shape, vector=self.choose.chance(3))
        value = self._value(result.dtype, list(loops.axes.values()))
        self._emit(loops.scopes, [f"{self._access(result, loops.index())} = {value}"])
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
        inner = _Loops([*outer.scopes])
        over = [self.choose.one(self.features.extents) for _ in range(self.choose.integer(1, 2))]
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
        added = " ".join(inner.scopes[len(outer.scopes) :])
        self._emit(outer.scopes, [*([initial] if fused else []), f"{added} {statement}"])
        self._end_nest(result)

    def _accumulations(self, dtype: str) -> list[str]:
        found = [a for a in ACCUMULATIONS.values() if accumulation_function(a.spelling, dtype) == a.function]
        return [f"{a.spelling}=" for a in found if a.function in self.features.accumulations]

    def _padding(self) -> None:
        """Fill all, then write an inner box: several writers of one array."""
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
        """A temporary that is written and read in the same iteration, so that any dimension may be reused."""
        result = self._result()
        flags = tuple(self.features.reuse and self.choose.chance() for _ in result.shape)
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
        self._emit(loops.scopes, [f"{place} {spelling} {value}"])
        self._end_nest(result)

    # Right sides

    def _value(self, dtype: str, axes: Sequence[_Axis], local: tuple[_Array, str] | None = None) -> str:
        """A function application with result `dtype`; `local` is an array that may be read at that access only."""
        makers = [self._copy, self._operation, self._operation, self._cast]
        if dtype == "i1":
            makers.append(self._comparison)
        return self.choose.one(makers)(dtype, axes, local)

    def _copy(self, dtype: str, axes: Sequence[_Axis], local: tuple[_Array, str] | None) -> str:
        return self._input(dtype, axes, local)

    def _operation(self, dtype: str, axes: Sequence[_Axis], local: tuple[_Array, str] | None) -> str:
        wanted = (Signature.SELECT, Signature.FLOAT if is_float(dtype) else Signature.INTEGER)
        names = sorted(n for n in self.features.functions if FUNCTIONS[n].signature in wanted)
        if not names:
            return self._input(dtype, axes, local)
        name = self.choose.one(names)
        if FUNCTIONS[name].signature is Signature.SELECT:
            values = [self._input(t, axes, local) for t in ("i1", dtype, dtype)]
        else:
            values = [self._input(dtype, axes, local) for _ in range(FUNCTIONS[name].arity)]
        if not is_float(dtype) and any(part in name for part in ("div", "rem", "sh")):
            # No division by zero, no overflowing quotient, no shift by the width or more.
            if dtype == "i1":
                return values[0]
            values[1] = str(self.choose.integer(1, 7))
        return self._spelled(name, values)

    def _comparison(self, dtype: str, axes: Sequence[_Axis], local: tuple[_Array, str] | None) -> str:
        operand = self.choose.one([*(a.dtype for a in self.defined), dtype])
        wanted = Signature.COMPARE_FLOAT if is_float(operand) else Signature.COMPARE_INTEGER
        names = sorted(n for n in self.features.functions if FUNCTIONS[n].signature is wanted)
        access = self._read(operand, axes)
        if not names or access is None:
            return self._input(dtype, axes, local)
        return self._spelled(self.choose.one(names), [access, self._input(operand, axes)])

    def _cast(self, dtype: str, axes: Sequence[_Axis], local: tuple[_Array, str] | None) -> str:
        options = [(c, a) for a in self.defined for c in self._casts(a, dtype)]
        if not options:
            return self._input(dtype, axes, local)
        cast, source = self.choose.one(options)
        return f"{cast}({self._access_of(source, axes)})"

    def _casts(self, source: _Array, dtype: str) -> list[str]:
        """Casts whose result is defined: only input arrays surely hold floats that fit an integer type."""
        tame = source.role == "in" or not is_float(source.dtype)
        casts = ("cast", "ucast", "bitcast") if tame else ("cast",)
        if is_float(source.dtype) and not is_float(dtype):
            casts = () if dtype == "i1" else ("cast", "bitcast") if tame else ()
        fitting = [c for c in casts if any(cast_between(f, source.dtype, dtype) for f in CALLS[c])]
        return [c for c in fitting if self.features.functions.issuperset(CALLS[c])]

    def _spelled(self, name: str, values: list[str]) -> str:
        """The familiar spelling where its types are surely told by an array, else the full name."""
        signs = [s for s, functions in INFIX.items() if name in functions]
        calls = [c for c, functions in CALLS.items() if name in functions]
        plain = all("[" in v for v in values)
        if plain and signs and len(values) == 2 and self.choose.chance():
            return f"{values[0]} {signs[0]} {values[1]}"
        if calls and self.choose.chance():
            return f"{calls[0]}({', '.join(values)})"
        return f"{name}({', '.join(values)})"

    def _input(self, dtype: str, axes: Sequence[_Axis], local: tuple[_Array, str] | None = None) -> str:
        """An access mostly, else an index value or a constant."""
        if local is not None and local[0].dtype == dtype and self.choose.chance():
            return local[1]
        kind = self.choose.integer(0, 5)
        access = self._read(dtype, axes) if kind < 4 else None
        if access is not None:
            return access
        plain = [a for a in axes if not a.vector]
        if kind == 4 and plain and dtype != "i1":
            return self._shown_index(self.choose.one(plain))
        return self._constant(dtype)

    def _shown_index(self, axis: _Axis) -> str:
        return self.choose.one(
            (axis.text, f"{axis.operand}*2+1", f"7-{axis.operand}", f"{axis.operand}//2", f"{axis.operand}%3")
        )

    def _constant(self, dtype: str) -> str:
        if dtype == "i1":
            return self.choose.one(("false", "true"))
        if is_float(dtype):
            return self.choose.one(("0", "1", "-inf", "inf", "0.5", "-2", "1e-05", "-0.0", "0.1", "nan", "3.14159"))
        return self.choose.one(("0", "1", "-3", "127", "-128", "5"))

    def _read(self, dtype: str, axes: Sequence[_Axis]) -> str | None:
        fitting = [a for a in self.defined if a.dtype == dtype]
        return self._access_of(self.choose.one(fitting), axes) if fitting else None

    def _access_of(self, array: _Array, axes: Sequence[_Axis]) -> str:
        array.last_nest = self.nest
        last = len(array.shape) - 1
        return self._access(array, ",".join(self._index(n, axes, last=d == last) for d, n in enumerate(array.shape)))

    def _index(self, extent: int, axes: Sequence[_Axis], *, last: bool) -> str:
        """An index expression within `range(extent)`; a vector axis is alone in the last dimension or unused."""
        options = [str(self.choose.integer(0, extent - 1))]
        for axis in axes:
            if axis.vector and not last:
                continue
            spare = extent - axis.extent
            if spare >= 0:
                options += [axis.text] * 3 + ([f"{axis.text}+{spare}"] if spare else [])
            if axis.vector:
                continue
            if spare >= 0:
                options.append(f"{axis.extent - 1}-{axis.operand}")
            if (axis.extent - 1) * 2 < extent:
                options.append(f"{axis.operand}*2")
            if -(-axis.extent // 2) <= extent:
                options.append(f"{axis.operand}//2")
            options.append(f"{axis.operand}%{extent}")
            options += [
                f"{axis.operand}*{other.extent}+{other.text}"
                for other in axes
                if other is not axis and not other.vector and axis.extent * other.extent <= extent
            ]
        return self.choose.one(options)

    def _access(self, array: _Array, index: str) -> str:
        hints = ("", "!nontemporal", "!prefetch(64)", '!cache("stream")!lane(1)')
        hint = self.choose.one(hints) if self.features.hints and self.choose.chance(8) else ""
        return f"{array.name}[{index}]{hint}"

    # Header

    def _header(self) -> list[str]:
        inputs = [a.name for a in self.arrays if a.role in ("in", "inout")]
        outputs = [a.name for a in self.arrays if a.role in ("inout", "out")]
        lines = [f"kernel k({', '.join(inputs)}) -> ({', '.join(outputs)})"]
        if self.features.facts:
            facts = ("numerics exact", "numerics reassociate", "numerics reassociate contract", "machine toy")
            lines += [self.choose.one(facts)] if self.choose.chance(4) else []
        lines += [self._declared(a) for a in self.arrays if a.role != "temp"]
        groups: list[list[_Array]] = []
        for array in (a for a in self.arrays if a.role == "temp"):
            home = next((g for g in groups if self._may_share(g, array)), None)
            if home is not None and self.features.share and self.choose.chance():
                home.append(array)
            else:
                groups.append([array])
        names = [" -> " + ", ".join(a.name for a in g) if len(g) > 1 else "" for g in groups]
        return lines + [self._declared(g[0]) + n for g, n in zip(groups, names, strict=True)]

    def _may_share(self, group: Sequence[_Array], array: _Array) -> bool:
        """Live ranges are disjoint: one is last touched in an earlier nest than the other is first."""
        first = group[0]
        alike = (first.dtype, first.shape, first.memory) == (array.dtype, array.shape, array.memory)
        plain = not any(first.reuse) and not any(array.reuse)
        return alike and plain and all(a.last_nest < array.first_nest or array.last_nest < a.first_nest for a in group)

    def _declared(self, array: _Array) -> str:
        shape = ", ".join(f"{n}:N" if r else str(n) for n, r in zip(array.shape, array.reuse, strict=True))
        align = " align 64" if array.role != "temp" and self.features.facts and self.choose.chance(6) else ""
        return f"{array.name} {array.dtype} [{shape}] {array.memory}{align}"
