"""Right-hand sides, accesses and indices of random statements."""

from __future__ import annotations

from collections.abc import Sequence

from pdojo.dialect.functions import cast_between, is_float
from pdojo.dialect.notation.spelling import CALLS, INFIX
from pdojo.kernels.random_kernels.parts import Array, Axis, Choices, Features
from pdojo.math.functions import FUNCTIONS, Signature


class Values:
    """Draws right-hand sides whose accesses are in bounds and read defined elements."""

    def __init__(self, choices: Choices, features: Features) -> None:
        self.choose = choices
        self.features = features
        self.arrays: list[Array] = []
        self.defined: list[Array] = []
        """Arrays with all elements readable in any later nest."""
        self.tables: dict[str, list[int]] = {}
        """Entries of the tables, by name."""
        self.nest: int = 0
        """Number of the current nest."""

    def _value(self, dtype: str, axes: Sequence[Axis], local: tuple[Array, str] | None = None) -> str:
        """An expression of type `dtype`; `local` is an array that may be read only at the given access."""
        makers = [self._copy, self._operation, self._operation, self._cast]
        if dtype == "i1":
            makers.append(self._comparison)
        return self.choose.one(makers)(dtype, axes, local)

    def _copy(self, dtype: str, axes: Sequence[Axis], local: tuple[Array, str] | None) -> str:
        return self._input(dtype, axes, local)

    def _operation(self, dtype: str, axes: Sequence[Axis], local: tuple[Array, str] | None) -> str:
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

    def _comparison(self, dtype: str, axes: Sequence[Axis], local: tuple[Array, str] | None) -> str:
        operand = self.choose.one([*(a.dtype for a in self.defined), dtype])
        wanted = Signature.COMPARE_FLOAT if is_float(operand) else Signature.COMPARE_INTEGER
        names = sorted(n for n in self.features.functions if FUNCTIONS[n].signature is wanted)
        access = self._read(operand, axes)
        if not names or access is None:
            return self._input(dtype, axes, local)
        return self._spelled(self.choose.one(names), [access, self._input(operand, axes)])

    def _cast(self, dtype: str, axes: Sequence[Axis], local: tuple[Array, str] | None) -> str:
        options = [(c, a) for a in self.defined for c in self._casts(a, dtype)]
        if not options:
            return self._input(dtype, axes, local)
        cast, source = self.choose.one(options)
        return f"{cast}({self._access_of(source, axes)})"

    def _casts(self, source: Array, dtype: str) -> list[str]:
        """Casts with a defined result: only floats of input arrays are sure to fit an integer type."""
        tame = source.role == "in" or not is_float(source.dtype)
        casts = ("cast", "ucast", "bitcast") if tame else ("cast",)
        if is_float(source.dtype) and not is_float(dtype):
            casts = () if dtype == "i1" else ("cast", "bitcast") if tame else ()
        fitting = [c for c in casts if any(cast_between(f, source.dtype, dtype) for f in CALLS[c])]
        return [c for c in fitting if self.features.functions.issuperset(CALLS[c])]

    def _spelled(self, name: str, values: list[str]) -> str:
        """The familiar spelling if arrays determine its types, else the full name."""
        signs = [s for s, functions in INFIX.items() if name in functions]
        calls = [c for c, functions in CALLS.items() if name in functions]
        plain = all("[" in v for v in values)
        if plain and signs and len(values) == 2 and self.choose.chance():
            return f"{values[0]} {signs[0]} {values[1]}"
        if calls and self.choose.chance():
            return f"{calls[0]}({', '.join(values)})"
        return f"{name}({', '.join(values)})"

    def _input(self, dtype: str, axes: Sequence[Axis], local: tuple[Array, str] | None = None) -> str:
        """Mostly an access, else an index or a constant."""
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

    def _shown_index(self, axis: Axis) -> str:
        if self.choose.chance(4):
            return self._looked_up(axis, 12)
        return self.choose.one(
            (axis.text, f"{axis.operand}*2+1", f"7-{axis.operand}", f"{axis.operand}//2", f"{axis.operand}%3")
        )

    def _constant(self, dtype: str) -> str:
        if dtype == "i1":
            return self.choose.one(("false", "true"))
        if is_float(dtype):
            return self.choose.one(("0", "1", "-inf", "inf", "0.5", "-2", "1e-05", "-0.0", "0.1", "nan", "3.14159"))
        return self.choose.one(("0", "1", "-3", "127", "-128", "5"))

    def _read(self, dtype: str, axes: Sequence[Axis]) -> str | None:
        fitting = [a for a in self.defined if a.dtype == dtype]
        return self._access_of(self.choose.one(fitting), axes) if fitting else None

    def _access_of(self, array: Array, axes: Sequence[Axis]) -> str:
        array.last_nest = self.nest
        last = len(array.shape) - 1
        index = ",".join(self._index(n, axes, last=d == last) for d, n in enumerate(array.shape))
        return self._access(array, index, lanes=any(axis.vector for axis in axes))

    def _index(self, extent: int, axes: Sequence[Axis], *, last: bool) -> str:
        """An index expression within `range(extent)`; a vector axis stands alone in the last dimension or is unused."""
        plain = [axis for axis in axes if not axis.vector]
        if plain and self.choose.chance(8):
            return self._looked_up(self.choose.one(plain), extent)
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

    def _looked_up(self, axis: Axis, below: int) -> str:
        """An entry of a table that is less than `below`; sometimes of a table that other indices look up, too."""
        known = [n for n, found in self.tables.items() if len(found) >= axis.extent and max(found) < below]
        if known and self.choose.chance():
            return f"{self.choose.one(known)}[{axis.text}]"
        return self._table(axis, [self.choose.integer(0, below - 1) for _ in range(axis.extent)])

    def _table(self, axis: Axis, entries: list[int]) -> str:
        name = f"k{len(self.tables)}"
        self.tables[name] = entries
        return f"{name}[{axis.text}]"

    def _permuted(self, axis: Axis) -> str:
        """An index that has each value below the axis' extent in one iteration."""
        if axis.vector or not self.choose.chance(8):
            return axis.text
        rest, order = list(range(axis.extent)), list[int]()
        while rest:
            order.append(rest.pop(self.choose.integer(0, len(rest) - 1)))
        return self._table(axis, order)

    def _access(self, array: Array, index: str, *, lanes: bool = False) -> str:
        """An access, sometimes with hints that some machine supports; vector accesses get no `!nontemporal`."""
        hints = ["", *(["!nontemporal"] if not lanes else []), "!prefetch(64)", '!cache("stream")!lane(1)']
        usable = self.features.hints and array.memory != "register"
        hint = self.choose.one(hints) if usable and self.choose.chance(8) else ""
        return f"{array.name}[{index}]{hint}"
