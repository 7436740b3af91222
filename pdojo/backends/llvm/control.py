"""The scopes of a nest as control flow: loops, unrolled code, vectors, parallel regions, guards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import llvm
from xdsl.dialects.builtin import i1, i64
from xdsl.ir import SSAValue

from pdojo.backends.llvm.memory import Reach
from pdojo.backends.llvm.statement import emit_lanes, emit_statement, lane_mask
from pdojo.backends.llvm.tensor import TensorUnit
from pdojo.backends.nest_walk import LoopBounds, decided, describe, loop_bounds
from pdojo.dialect.affine import Expr, const
from pdojo.dialect.attributes import Mapping
from pdojo.dialect.nest import Leaf, Node, Scope
from pdojo.errors import LoweringError

INSTANCE_LIMIT = 1 << 14
"""Most statements that one kernel may expand to; far beyond, compilation takes minutes."""
MAX_LANES = 512
"""Most lanes of a vector scope."""

ParallelRegion = Callable[["NestCode", Scope, SSAValue, SSAValue], None]
"""Emits a parallel scope over `low <= i < high` (i64)."""


@dataclass
class Budget:
    """Counts emitted statements, over all functions of a kernel, and iterations of unrolled scopes."""

    statements: int = 0
    iterations: int = 0

    def spend(self, leaf: Leaf) -> None:
        """Count one; raises LoweringError where unrolling got out of hand."""
        self.statements += 1
        if self.statements > INSTANCE_LIMIT:
            unrolled = [s for s in leaf.chain if s.mapping is Mapping.UNROLL]
            where = describe(unrolled[0]) if unrolled else "the kernel"
            raise LoweringError(f"{where} unrolls to more than {INSTANCE_LIMIT} statements; unroll fewer scopes")

    def turn(self, scope: Scope) -> None:
        """Count an iteration, in which perhaps nothing runs. Raises LoweringError where there are very many."""
        self.iterations += 1
        if self.iterations > 2 * INSTANCE_LIMIT:
            raise LoweringError(f"{describe(scope)} and others unroll to too many iterations; unroll fewer scopes")


@dataclass(eq=False)
class NestCode:
    """Emits nodes of a nest into the function under construction."""

    reach: Reach
    parallel: ParallelRegion
    budget: Budget
    tensor: TensorUnit
    _bounds: dict[Scope, LoopBounds] = field(default_factory=dict[Scope, LoopBounds])

    def nodes(self, nodes: Sequence[Node]) -> None:
        """Append the code of nodes, in order."""
        for node in nodes:
            if isinstance(node, Leaf):
                self.budget.spend(node)
                emit_statement(self.reach, node)
            else:
                self.scope(node)

    def scope(self, scope: Scope) -> None:
        """Append the code of one scope."""
        code = self.reach.code
        code.extents.append(scope.extent)
        if scope not in self._bounds:
            self._bounds[scope] = loop_bounds(scope, code.extents)
        bounds = self._bounds[scope]
        self._guarded(bounds.outer, lambda: self._mapped(scope, bounds))
        code.extents.pop()

    def _guarded(self, constraints: Sequence[Expr], body: Callable[[], None]) -> None:
        """Emit `body` under `e >= 0` for all constraints; what is known already takes no code."""
        code = self.reach.code
        bound = [code.bind(c) for c in constraints]
        outcomes = [decided(c, code.extents) for c in bound]
        if False in outcomes:
            return
        open_ = [c for c, outcome in zip(bound, outcomes, strict=True) if outcome is None]
        if not open_:
            body()
            return
        after = code.skip_unless(code.at_least_zero(open_))
        body()
        code.rejoin(after)

    def _mapped(self, scope: Scope, bounds: LoopBounds) -> None:
        match scope.mapping:
            case Mapping.UNROLL:
                self._unrolled(scope)
            case Mapping.SEQUENTIAL if scope.extent == 1:
                self._unrolled(scope)
            case Mapping.SEQUENTIAL:
                self._ranged(scope, bounds, lambda low, high: self._loop(scope, bounds, low, high))
            case Mapping.PARALLEL:
                self._ranged(scope, bounds, lambda low, high: self.parallel(self, scope, low, high))
            case Mapping.VECTOR:
                self._vector(scope)
            case Mapping.TENSOR:
                self.budget.spend(scope.leaves[0])
                self.tensor.call(self.reach, scope)
            case _:
                raise LoweringError(
                    f"{describe(scope)} is mapped to '{scope.mapping.value}', which a CPU does not have; "
                    f"take the mapping back (unmap)"
                )

    def _unrolled(self, scope: Scope) -> None:
        code = self.reach.code
        for value in range(scope.extent):
            self.budget.turn(scope)
            code.known[scope.depth] = value
            own = [g for g in scope.guard if g.uses(scope.depth)]
            self._guarded(own, lambda: self.nodes(scope.children))
        del code.known[scope.depth]

    def _ranged(self, scope: Scope, bounds: LoopBounds, body: Callable[[SSAValue, SSAValue], None]) -> None:
        """Emit `body` with the bounds of the scope's variable; skipped where the range is empty."""
        code = self.reach.code
        lows = [e for e in map(code.bind, bounds.lows) if e.bounds(code.extents)[1] > 0]
        highs = [e for e in map(code.bind, bounds.highs) if e.bounds(code.extents)[0] < scope.extent]
        low, high = code.integer(0), code.integer(scope.extent)
        for expression in lows:
            low = code.intrinsic("llvm.smax", [low, code.index(expression)], i64)
        for expression in highs:
            high = code.intrinsic("llvm.smin", [high, code.index(expression)], i64)
        if not lows and all(e.bounds(code.extents)[0] >= 1 for e in highs):
            body(low, high)
            return
        after = code.skip_unless(code.compare("slt", low, high))
        body(low, high)
        code.rejoin(after)

    def _loop(self, scope: Scope, bounds: LoopBounds, low: SSAValue, high: SSAValue) -> None:
        code = self.reach.code
        code.open_loop(scope.depth, low)
        self._guarded(bounds.inner, lambda: self.nodes(scope.children))
        code.close_loop(scope.depth, high)

    def chunk(self, scope: Scope, low: SSAValue, high: SSAValue) -> None:
        """Append the iterations `low <= i < high` of a parallel scope, which may be none."""
        code = self.reach.code
        code.extents.append(scope.extent)
        bounds = loop_bounds(scope, code.extents)
        after = code.skip_unless(code.compare("slt", low, high))
        self._loop(scope, bounds, low, high)
        code.rejoin(after)
        code.extents.pop()

    def _vector(self, scope: Scope) -> None:
        (leaf,) = scope.children
        assert isinstance(leaf, Leaf), "a vector scope wraps one statement; kernels are verified"
        if scope.extent > MAX_LANES:
            raise LoweringError(f"{describe(scope)} has more than {MAX_LANES} lanes; tile it to the vector length")
        self.budget.spend(leaf)
        code = self.reach.code
        if scope.extent == 1:
            self._unrolled(scope)
            return
        own = [code.bind(g) for g in scope.guard if g.uses(scope.depth)]
        masked = [g for g in own if decided(g, code.extents) is not True]
        if not masked:
            emit_lanes(self.reach, leaf, scope, None)
            return
        mask = lane_mask(self.reach, masked, scope.depth)
        assert mask is not None
        if self._some_lane_runs(masked, scope):
            emit_lanes(self.reach, leaf, scope, mask)
            return
        # Where no lane runs, not even an access that all lanes share may happen.
        name = f"llvm.vector.reduce.or.v{scope.extent}i1"
        after = code.skip_unless(code.emit(llvm.CallIntrinsicOp(name, [mask], [i1])))
        emit_lanes(self.reach, leaf, scope, mask)
        code.rejoin(after)

    def _some_lane_runs(self, constraints: Sequence[Expr], scope: Scope) -> bool:
        """Whether the first or the last lane runs in every iteration of the scopes around."""
        extents = self.reach.code.extents
        return any(
            all(decided(c.substitute({scope.depth: const(lane)}, extents), extents) for c in constraints)
            for lane in (0, scope.extent - 1)
        )
