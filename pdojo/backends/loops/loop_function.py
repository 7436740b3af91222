"""Lowering of a kernel to a function of loops over memrefs."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager, nullcontext

from xdsl.dialects import func, memref, scf
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Region, SSAValue

from pdojo.backends.common.addresses import refuse_indices
from pdojo.backends.common.walk import LoopBounds
from pdojo.backends.loops.loop_builder import LoopBuilder, entry_block
from pdojo.dialect.affine import Expr
from pdojo.dialect.attributes import Mapping, Memory
from pdojo.dialect.functions import DTYPES
from pdojo.dialect.view.nest import Access, Buffer, Leaf, Nest, Scope
from pdojo.dialect.view.storage import accesses_of, physical_shape
from pdojo.errors import LoweringError

_LOOPS = tuple(m for m in Mapping if m.value in ("seq", "u", "v", "p", "f", "s", "m"))
"""Mappings with a loop form: all become sequential loops, except parallel scopes."""


def lower_kernel(nest: Nest, *, sequential: bool) -> func.FuncOp:
    """A function, with the kernel's name and arguments (arrays, then sizes), that computes the kernel.

    Parallel scopes become `scf.parallel`, or `scf.for` if `sequential`. Raises LoweringError for mappings and
    memories of other machines, and for functions without an operation in the standard dialects.
    """
    refuse_indices(nest, "the lowering to loops")
    return _LoopLowering(nest, sequential=sequential).lower()


class _LoopLowering(LoopBuilder):
    def __init__(self, nest: Nest, *, sequential: bool) -> None:
        super().__init__(nest, entry_block(nest))
        self.sequential = sequential
        self.memories: dict[tuple[Buffer, Scope | None], SSAValue] = {}
        self.homes = {b: self._homes(b) for b in nest.buffers}

    def lower(self) -> func.FuncOp:
        self.memories.update({(buffer, None): argument for buffer, argument in self.arguments().items()})
        with self._allocated(None):
            self.nodes(self.nest.children)
        return self.function()

    @contextmanager
    def guarded(self, constraints: Sequence[Expr]) -> Generator[bool]:
        """Emit all constraints, even constant ones."""
        with self.branch(constraints) if constraints else nullcontext():
            yield True

    def memory(self, access: Access, leaf: Leaf) -> SSAValue:
        """The buffer's copy, as a memref, for the iterations around the statement."""
        buffer = access.array.buffer
        return self.memories[buffer, self._home(buffer, leaf)]

    def other(self, scope: Scope, bounds: LoopBounds) -> None:
        """Append a parallel loop, or a sequential loop for other mappings."""
        if scope.mapping not in _LOOPS:
            raise LoweringError(
                f"kernel '{self.nest.name}': a scope of extent {scope.extent} has mapping '{scope.mapping.value}', "
                f"which has no loop form (loops know {', '.join(m.value for m in _LOOPS)}); apply unmap to it first"
            )
        if scope.mapping is not Mapping.PARALLEL or self.sequential:
            self.loop(scope, bounds)
            return
        lower, upper, step = self.constants.index(0), self.upper(scope.extent, bounds.highs), self.constants.index(1)
        with self.block(IndexType()) as block, self.iteration_of(scope, block.args[0]):
            with self._allocated(scope):
                self.body(scope, bounds)
            self.builder.insert(scf.ReduceOp())
        self.builder.insert(scf.ParallelOp([lower], [upper], [step], Region(block)))

    def _home(self, buffer: Buffer, leaf: Leaf) -> Scope | None:
        """The scope around `leaf` with a copy of the buffer per iteration; None: the function has the only copy."""
        return next((s for s in reversed(leaf.chain) if s in self.homes[buffer]), None)

    def _homes(self, buffer: Buffer) -> list[Scope]:
        """The concurrent loops that index a reused dimension of the buffer, and so need a copy in each iteration."""
        if self.sequential:
            return []
        found: dict[Scope, None] = {}
        for leaf, access in accesses_of(self.nest, buffer):
            reused = [e for e, r in zip(access.index, buffer.reuse, strict=True) if r]
            private = (
                s for s in reversed(leaf.chain) if s.mapping.is_threaded and any(e.uses(s.depth) for e in reused)
            )
            if (scope := next(private, None)) is not None:
                found[scope] = None
        return list(found)

    @contextmanager
    def _allocated(self, scope: Scope | None) -> Generator[None]:
        """A context with the buffers that have a copy in each iteration of `scope` (None: in the function)."""
        heap: list[SSAValue] = []
        leaves = self.nest.leaves if scope is None else scope.leaves
        for buffer in self.nest.buffers:
            used = {self._home(buffer, leaf) for leaf in leaves for a in leaf.accesses if a.array.buffer is buffer}
            if buffer.op is None or scope not in used:
                continue
            if buffer.memory is Memory.SHARED:
                raise LoweringError(
                    f"kernel '{self.nest.name}': buffer '{buffer.names[0]}' lives in shared memory, which only "
                    "graphics processors have; apply set_location to it first"
                )
            element, shape = DTYPES[buffer.dtype], physical_shape(self.nest, buffer)
            if buffer.memory is Memory.HEAP:
                value = self.builder.insert(memref.AllocOp.get(element, shape=shape)).memref
                heap.append(value)
            else:
                value = self.builder.insert(memref.AllocaOp.get(element, shape=shape)).memref
            value.name_hint = buffer.names[0]
            self.memories[buffer, scope] = value
        yield
        for value in heap:
            self.builder.insert(memref.DeallocOp.get(value))
