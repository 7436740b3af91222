"""Scopes as loops of C, guards as branches and as bounds of loops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

from pdojo.backends.c.code import FunctionText, variable
from pdojo.backends.c.indices import MOST
from pdojo.backends.c.statement import statement
from pdojo.backends.common.walk import LoopBounds, NestWalk
from pdojo.dialect.affine import Expr
from pdojo.dialect.view.nest import Leaf, Scope


class LoopText(NestWalk):
    """Prints a nest as loops, branches and statements; subclasses print scopes with other mappings."""

    def __init__(self, code: FunctionText) -> None:
        super().__init__(code.known, code.extents)
        self.code = code

    def statement(self, leaf: Leaf) -> None:
        statement(self.code, leaf)

    def branch(self, constraints: Sequence[Expr]) -> AbstractContextManager[None]:
        return self.code.block(f"if ({self.code.condition(constraints)})")

    def loop(self, scope: Scope, bounds: LoopBounds) -> None:
        self.loop_around(scope, bounds, lambda: self.nodes(scope.children))

    def unroll(self, scope: Scope, bounds: LoopBounds) -> None:
        """Append a loop for the compiler to unroll."""
        request = self.code.spelling.unroll(scope.extent)
        if request is not None:
            self.code.line(request)
        self.loop(scope, bounds)

    def loop_around(self, scope: Scope, bounds: LoopBounds, body: Callable[[], None]) -> None:
        """Append a loop around the code that `body` appends."""
        low, high = self._range(scope, bounds)
        own = variable(scope.depth)
        head = f"for ({self._kind(scope, bounds)} {own} = {low}; {own} < {high}; {own}++)"
        with self.code.block(head), self.guarded(bounds.inner) as possible:
            if possible:
                body()

    def _kind(self, scope: Scope, bounds: LoopBounds) -> str:
        """The type of the variable of a loop: 64 bits if its first or last value may need them."""
        lows = (self.code.bind(low).bounds(self.code.extents)[1] for low in bounds.lows)
        return "int64_t" if max(scope.extent, *lows, 0) > MOST else self.code.spelling.index

    def _range(self, scope: Scope, bounds: LoopBounds) -> tuple[str, str]:
        """The text of a loop's bounds: the guard's if they are tighter than the extent."""
        low, high = "0", str(scope.extent)
        for expression in map(self.code.bind, bounds.lows):
            least, most = expression.bounds(self.code.extents)
            if most > 0:
                text = self.code.index(expression)
                low = text if low == "0" and least >= 0 else f"{self.code.prelude.use('pd_max')}({low}, {text})"
        for expression in map(self.code.bind, bounds.highs):
            least, most = expression.bounds(self.code.extents)
            if least < scope.extent:
                text = self.code.index(expression)
                whole = high == str(scope.extent) and most <= scope.extent
                high = text if whole else f"{self.code.prelude.use('pd_min')}({high}, {text})"
        return low, high
