"""Arguments that are too large for a function's short recipe, or NaN: one test for several results.

Most arguments of `exp` are of moderate size, and need neither limits nor a test for NaN. The results of a few copies of
a statement are computed as if all arguments were moderate. A sum of squares that is small enough shows that they are;
otherwise each result is made right by itself. Results are written after the test.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from pdojo.backends.snitch.code import ZERO, Register, SnitchCode
from pdojo.backends.snitch.numbers import SUFFIX, Numbers, bits_of
from pdojo.backends.snitch.saturation import Result, emit_again
from pdojo.backends.snitch.values import Value

TOGETHER = 4
"""Number of results with one test: their arguments need registers up to it."""


@dataclass
class Outliers:
    """Results whose arguments are not tested yet, and writes of these results."""

    code: SnitchCode
    numbers: Numbers
    known: dict[int, int]
    """Values of the unrolled induction variables, keyed by depth."""
    collects: bool = False
    """Whether results wait for each other; False: each is tested at once. Waiting results are of one function."""
    results: list[Result] = field(default_factory=list[Result])
    _writes: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])
    _targets: set[Register] = field(default_factory=set[Register])
    """The registers that the waiting writes change."""

    @contextmanager
    def collecting(self) -> Generator[None]:
        """A context in which several results have one test."""
        self.collects = True
        yield
        self._settle()
        self.collects = False

    def add(self, result: Result) -> None:
        """Add a result."""
        self.results.append(result)
        if not self.collects:
            self._settle()

    def finish(self, target: Value | None, write: Callable[[], None]) -> None:
        """Append the write of a result to the register `target` or to memory: now, or after the test."""
        if not self.collects:
            write()
            return
        known = dict(self.known)

        def later() -> None:
            self._recall(known)
            write()

        self._writes.append(later)
        if isinstance(target, Register):
            self._targets.add(target)
        if len(self._writes) == TOGETHER:
            self._settle()

    def before_reads(self, operands: Sequence[Value]) -> None:
        """Append the writes if one of them changes an operand of the next statement."""
        if any(isinstance(o, Register) and o in self._targets for o in operands):
            self._settle()

    def _settle(self) -> None:
        """Append the test, the code that makes the results right if an argument fails it, and the writes."""
        if self.results:
            with self.code.rarely("moderate", self._skip) as constants:
                emit_again(self.code, self.numbers, self.results, constants)
            self.results.clear()
        writes, known = list(self._writes), dict(self.known)
        self._writes.clear()
        self._targets.clear()
        for write in writes:
            write()
        self._recall(known)

    def _recall(self, known: Mapping[int, int]) -> None:
        """Set the values of the unrolled variables."""
        self.known.clear()
        self.known.update(known)

    def _skip(self, label: str) -> None:
        """Append a branch to `label` that is taken if all arguments are moderate."""
        code, limit = self.code, self.results[0].bound ** 2
        total = self._squares()
        if self.results[0].dtype == "f64":
            below = code.x("flt.d", total, self.numbers.real(limit, "f64"))
            code.emit("bne", (), (below, ZERO), label)
            return
        # Numbers that are not negative are in the order of their bits, and NaN is greater.
        code.emit("bltu", (), (code.x("fmv.x.w", total), code.li(bits_of(limit, "f32"))), label)

    def _squares(self) -> Register:
        """The sum of the arguments' squares: NaN if one of them is."""
        code, letter = self.code, SUFFIX[self.results[0].dtype]
        first, *others = (each.argument for each in self.results)
        if not self.results[0].packed:
            total = code.f(f"fmul.{letter}", first, first)
            for x in others:
                total = code.f(f"fmadd.{letter}", x, x, total)
            return total
        lanes = code.f("vfmul.s", first, first)
        for x in others:
            code.emit("vfmac.s", (lanes,), (lanes, x, x))
        total = Register("f")
        code.move(self.numbers.real(0.0, "f64"), total)
        code.emit("vfsum.s", (total,), (total, lanes))
        return total
