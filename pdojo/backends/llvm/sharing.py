"""The iterations of a parallel scope: each thread has a contiguous share, whose last part any thread may take."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod

from xdsl.dialects import llvm
from xdsl.dialects.builtin import i8, i32, i64
from xdsl.ir import SSAValue

from pdojo.backends.llvm.code import POINTER, FunctionCode
from pdojo.backends.llvm.control import NestCode
from pdojo.dialect.view.nest import Scope

PIECES, COMMON = 16, 4
"""Number of pieces of a thread's share; the last `COMMON` pieces are run by whichever thread is ready first."""
FEWEST = 2 * PIECES
"""Fewest iterations of a scope with common pieces."""
WORK = 1 << 19
"""Fewest statements in a scope with common pieces; with so many, the runtime's time per piece does not matter."""
LOOP_FUNCTIONS: dict[str, llvm.LLVMFunctionType] = {
    "GOMP_loop_dynamic_start": llvm.LLVMFunctionType([i64, i64, i64, i64, POINTER, POINTER], i8),
    "GOMP_loop_dynamic_next": llvm.LLVMFunctionType([POINTER, POINTER], i8),
    "GOMP_loop_end_nowait": llvm.LLVMFunctionType([]),
}
"""Functions of the OpenMP runtime that hand out pieces."""


@dataclass(eq=False)
class ThreadShare:
    """The iterations `low..high` of a parallel scope, seen by one thread of a team."""

    code: FunctionCode
    low: SSAValue
    high: SSAValue
    alone: SSAValue | None = None
    """1 if there is no team, only the caller, else 0; None if there is a team always."""

    @cached_property
    def thread(self) -> SSAValue:
        """The number of the thread."""
        return self._called("omp_get_thread_num", 0)

    @cached_property
    def team(self) -> SSAValue:
        """The number of threads."""
        return self._called("omp_get_num_threads", 1)

    def _called(self, function: str, alone: int) -> SSAValue:
        root = self.code.levels[0]
        found = root.add(llvm.SExtOp(root.add(llvm.CallOp(function, return_type=i32)), i64))
        if self.alone is None:
            return found
        # Outside of all loops, where other values are computed from it.
        in_team = root.add(llvm.MulOp(found, root.add(llvm.SubOp(self.code.integer(1), self.alone))))
        return root.add(llvm.AddOp(in_team, self.alone)) if alone else in_team

    def append(self, nest: NestCode, scope: Scope) -> None:
        """Append the code of the thread's iterations.

        A thread that other programs slow down does not delay a team with common pieces. Threads begin with their
        shares, since their caches may hold them.
        """
        first, last = self._share(self.thread, self.team)
        if self.alone is None and _has_common(scope):
            self._run_pieces(nest, scope, (first, self._begin(first, last, PIECES - COMMON)))
        else:
            nest.chunk(scope, first, last)

    def _run_pieces(self, nest: NestCode, scope: Scope, own: tuple[SSAValue, SSAValue]) -> None:
        """Append a loop over the thread's own part and the common pieces that it gets."""
        code, root = self.code, self.code.levels[0]
        one, slots = code.integer(1), [root.add(llvm.AllocaOp(code.integer(1), i64, 8)) for _ in range(2)]
        header = code.new_block(i64, i64, i8)
        code.do(llvm.BrOp(header, *own, code.integer(1, 8)))
        code.enter(header)
        low, high, is_first = header.args
        nest.chunk(scope, low, high)
        begin, proceed, found = code.new_block(), code.new_block(), code.new_block(i8)
        code.do(llvm.CondBrOp(code.compare("ne", is_first, code.integer(0, 8)), begin, (), proceed, ()))
        code.enter(begin)
        count = code.emit(llvm.MulOp(self.team, code.integer(COMMON)))
        arguments = (code.integer(0), count, one, one, *slots)
        code.do(llvm.BrOp(found, code.emit(llvm.CallOp("GOMP_loop_dynamic_start", *arguments, return_type=i8))))
        code.enter(proceed)
        code.do(llvm.BrOp(found, code.emit(llvm.CallOp("GOMP_loop_dynamic_next", *slots, return_type=i8))))
        code.enter(found)
        after = code.skip_unless(code.compare("ne", found.args[0], code.integer(0, 8)))
        piece = code.emit(llvm.LoadOp(slots[0], i64, 8))
        owner = code.emit(llvm.UDivOp(piece, code.integer(COMMON)))
        number = code.emit(llvm.URemOp(piece, code.integer(COMMON)))
        first, last = self._share(owner, self.team)
        place = code.emit(llvm.AddOp(number, code.integer(PIECES - COMMON)))
        ends = [self._begin(first, last, each) for each in (place, code.emit(llvm.AddOp(place, one)))]
        code.do(llvm.BrOp(header, *ends, code.integer(0, 8)))
        code.region.add_block(after)
        code.enter(after)
        code.do(llvm.CallOp("GOMP_loop_end_nowait"))

    def _share(self, thread: SSAValue, team: SSAValue) -> tuple[SSAValue, SSAValue]:
        """The contiguous share of a thread: from `n * thread / team` to `n * (thread + 1) / team`."""
        following = self.code.emit(llvm.AddOp(thread, self.code.integer(1)))
        return self._part(self.low, self.high, thread, team), self._part(self.low, self.high, following, team)

    def _begin(self, first: SSAValue, last: SSAValue, piece: SSAValue | int) -> SSAValue:
        """The beginning of a piece of the share `first..last`."""
        number = self.code.integer(piece) if isinstance(piece, int) else piece
        return self._part(first, last, number, self.code.integer(PIECES))

    def _part(self, low: SSAValue, high: SSAValue, number: SSAValue, count: SSAValue) -> SSAValue:
        """The beginning of part `number` of `low..high`, cut into `count` parts."""
        code = self.code
        before = code.emit(llvm.MulOp(code.emit(llvm.SubOp(high, low)), number))
        return code.emit(llvm.AddOp(low, code.emit(llvm.UDivOp(before, count))))


def _has_common(scope: Scope) -> bool:
    """True for a scope of many iterations and statements."""
    work = sum(prod(s.extent for s in leaf.chain[scope.depth :]) for leaf in scope.leaves)
    return scope.extent >= FEWEST and work >= WORK
