"""The scopes of a nest as control flow: loops, unrolled code, vectors, parallel regions, guards."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from xdsl.dialects import llvm
from xdsl.dialects.builtin import i1, i64
from xdsl.ir import SSAValue

from pdojo.backends.common.walk import LoopBounds, NestWalk, decided, describe
from pdojo.backends.llvm.interleave import store_in_turns, turns_of
from pdojo.backends.llvm.memory import Reach
from pdojo.backends.llvm.statement import computed_lanes, emit_lanes, emit_statement, lane_mask
from pdojo.backends.llvm.tensor import TensorUnit
from pdojo.backends.llvm.transpose import Square, square_copy
from pdojo.dialect.affine import Expr, const
from pdojo.dialect.attributes import Mapping
from pdojo.dialect.view.nest import Leaf, Node, Scope
from pdojo.errors import LoweringError

INSTANCE_LIMIT = 1 << 14
"""Most statements that one kernel may expand to; compiling many more takes minutes."""
MAX_LANES = 512
"""Most lanes of a vector scope."""

ParallelRegion = Callable[["NestCode", Scope, SSAValue, SSAValue], None]
"""A function that emits a parallel scope over `low <= i < high` (i64)."""


@dataclass
class CodeBudget:
    """Counts emitted statements and iterations of unrolled scopes, in all functions of a kernel."""

    statements: int = 0
    iterations: int = 0

    def spend(self, leaf: Leaf) -> None:
        """Count a statement; raises LoweringError above `INSTANCE_LIMIT`."""
        self.statements += 1
        if self.statements > INSTANCE_LIMIT:
            unrolled = [s for s in leaf.chain if s.mapping is Mapping.UNROLL]
            where = describe(unrolled[0]) if unrolled else "the kernel"
            raise LoweringError(f"{where} unrolls to more than {INSTANCE_LIMIT} statements; unroll fewer scopes")

    def turn(self, scope: Scope) -> None:
        """Count an iteration, even an empty one; raises LoweringError above `2 * INSTANCE_LIMIT`."""
        self.iterations += 1
        if self.iterations > 2 * INSTANCE_LIMIT:
            raise LoweringError(f"{describe(scope)} and others unroll to too many iterations; unroll fewer scopes")


class NestCode(NestWalk):
    """Emits nodes of a nest into the function under construction."""

    def __init__(self, reach: Reach, parallel: ParallelRegion, budget: CodeBudget, tensor: TensorUnit) -> None:
        self.reach, self.parallel, self.budget, self.tensor = reach, parallel, budget, tensor
        self.code = reach.code
        super().__init__(self.code.known, self.code.extents)

    def nodes(self, nodes: Sequence[Node]) -> None:
        """Append the code of nodes, in order; vectors whose elements take turns in memory are stored together."""
        turns = turns_of(self.reach, nodes)
        if not turns:
            super().nodes(nodes)
            return
        values: dict[Scope, SSAValue] = {}
        for node in nodes:
            if not isinstance(node, Scope) or node not in turns:
                super().nodes([node])
                continue
            with self.inside(node):
                (leaf,) = node.leaves
                self._spend_lanes(node, leaf)
                values[node] = computed_lanes(self.reach, leaf, node.depth, None)
            if node is turns[node].last:
                store_in_turns(self.reach, turns[node], [values[scope] for scope in turns[node].places])

    def statement(self, leaf: Leaf) -> None:
        self.budget.spend(leaf)
        emit_statement(self.reach, leaf)

    @contextmanager
    def branch(self, constraints: Sequence[Expr]) -> Generator[None]:
        after = self.code.skip_unless(self.code.at_least_zero(constraints))
        yield
        self.code.rejoin(after)

    def iteration(self, scope: Scope, value: int) -> None:
        """Begin an iteration of unrolled code, and count it."""
        self.budget.turn(scope)
        super().iteration(scope, value)

    def unroll(self, scope: Scope, bounds: LoopBounds) -> None:
        """Append the code of an unrolled scope; copies of squares are transposed in registers."""
        leaf = square_copy(scope)
        if leaf is not None:
            lanes = leaf.chain[-1]
            with self.inside(lanes) as inner:
                square = Square.of(self.reach, scope, leaf)
                if square is not None:
                    for _ in range(scope.extent):
                        self.budget.spend(leaf)
                    with self._masked(lanes, inner) as mask:
                        square.emit(mask)
                    return
        self.unrolled(scope, bounds)

    def loop(self, scope: Scope, bounds: LoopBounds) -> None:
        with self._range(scope, bounds) as (low, high):
            self._iterations(scope, bounds, low, high)

    def other(self, scope: Scope, bounds: LoopBounds) -> None:
        """Append a parallel scope, or the call of a tensor instruction."""
        match scope.mapping:
            case Mapping.PARALLEL:
                with self._range(scope, bounds) as (low, high):
                    self.parallel(self, scope, low, high)
            case Mapping.TENSOR:
                self.budget.spend(scope.leaves[0])
                self.tensor.call(self.reach, scope)
            case _:
                super().other(scope, bounds)

    @contextmanager
    def _range(self, scope: Scope, bounds: LoopBounds) -> Generator[tuple[SSAValue, SSAValue]]:
        """A context with the bounds of the scope's variable; appended code is skipped if the range is empty."""
        code = self.code
        lows = [e for e in map(code.bind, bounds.lows) if e.bounds(code.extents)[1] > 0]
        highs = [e for e in map(code.bind, bounds.highs) if e.bounds(code.extents)[0] < scope.extent]
        low, high = code.integer(0), code.integer(scope.extent)
        for expression in lows:
            low = code.intrinsic("llvm.smax", [low, code.index(expression)], i64)
        for expression in highs:
            high = code.intrinsic("llvm.smin", [high, code.index(expression)], i64)
        if not lows and all(e.bounds(code.extents)[0] >= 1 for e in highs):
            yield low, high
            return
        after = code.skip_unless(code.compare("slt", low, high))
        yield low, high
        code.rejoin(after)

    def _iterations(self, scope: Scope, bounds: LoopBounds, low: SSAValue, high: SSAValue) -> None:
        self.code.open_loop(scope.depth, low)
        self.body(scope, bounds)
        self.code.close_loop(scope.depth, high)

    def chunk(self, scope: Scope, low: SSAValue, high: SSAValue) -> None:
        """Append the iterations `low <= i < high` of a parallel scope; the range may be empty."""
        with self.inside(scope) as bounds:
            after = self.code.skip_unless(self.code.compare("slt", low, high))
            self._iterations(scope, bounds, low, high)
            self.code.rejoin(after)

    def vector(self, scope: Scope, leaf: Leaf, bounds: LoopBounds) -> None:
        """Append a statement on vectors, under a mask if the guard requires one."""
        self._spend_lanes(scope, leaf)
        with self._masked(scope, bounds) as mask:
            emit_lanes(self.reach, leaf, scope, mask)

    @contextmanager
    def _masked(self, scope: Scope, bounds: LoopBounds) -> Generator[SSAValue | None]:
        """A context with the mask of a vector scope, None if all lanes run; appended code is skipped if none does."""
        code = self.code
        own = [code.bind(g) for g in bounds.own]
        masked = [g for g in own if decided(g, code.extents) is not True]
        mask = lane_mask(self.reach, masked, scope.depth)
        if mask is None or self._some_lane_runs(masked, scope):
            yield mask
            return
        # If no lane runs, accesses common to all lanes must not happen either.
        name = f"llvm.vector.reduce.or.v{scope.extent}i1"
        after = code.skip_unless(code.emit(llvm.CallIntrinsicOp(name, [mask], [i1])))
        yield mask
        code.rejoin(after)

    def _spend_lanes(self, scope: Scope, leaf: Leaf) -> None:
        """Count a statement on vectors; raises LoweringError if it has too many lanes."""
        if scope.extent > MAX_LANES:
            raise LoweringError(f"{describe(scope)} has more than {MAX_LANES} lanes; tile it to the vector length")
        self.budget.spend(leaf)

    def _some_lane_runs(self, constraints: Sequence[Expr], scope: Scope) -> bool:
        """Whether the first or the last lane runs in every iteration of the scopes around the vector."""
        extents = self.extents
        return any(
            all(decided(c.substitute({scope.depth: const(lane)}, extents), extents) for c in constraints)
            for lane in (0, scope.extent - 1)
        )
