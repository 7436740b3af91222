"""One kernel as a function of loops over memrefs."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager, nullcontext

from xdsl.builder import Builder
from xdsl.dialects import func, memref, scf
from xdsl.dialects.builtin import BoolAttr, IndexType
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from pdojo.backends.loops.emitter import Constants, Indices
from pdojo.backends.loops.functions import function_op
from pdojo.backends.walk import LoopBounds, NestWalk, checked_within
from pdojo.dialect.affine import Expr, modulo
from pdojo.dialect.attributes import Mapping, Memory
from pdojo.dialect.functions import DTYPES
from pdojo.dialect.view.nest import Access, Buffer, Constant, Index, Leaf, Nest, Scope
from pdojo.dialect.view.storage import accesses_of, granule_numbers, physical_index, physical_shape
from pdojo.errors import LoweringError

_LOOPS = tuple(m for m in Mapping if m.value in ("seq", "u", "v", "p", "f", "s", "m"))
"""Mappings with a loop form: sequential loops, except for parallel scopes."""


def lower_kernel(nest: Nest, *, sequential: bool) -> func.FuncOp:
    """A function of the kernel's name and arguments that computes the kernel.

    Parallel scopes become `scf.parallel`, or `scf.for` if `sequential`. Raises LoweringError for mappings and
    memories of other machines, and for functions that the standard dialects lack.
    """
    return _KernelLowering(nest, sequential=sequential).lower()


class _KernelLowering(NestWalk):
    dissolved = frozenset()

    def __init__(self, nest: Nest, *, sequential: bool) -> None:
        super().__init__({}, [])
        self.nest = nest
        self.sequential = sequential
        self.variables: list[SSAValue] = []
        self.constants = Constants()
        self.memory: dict[tuple[Buffer, Scope | None], SSAValue] = {}
        self.homes = {b: self._homes(b) for b in nest.buffers}
        self.heap: list[SSAValue] = []

    def lower(self) -> func.FuncOp:
        kernel = self.nest.kernel
        block = Block(arg_types=kernel.body.block.arg_types)
        interface = [b for b in self.nest.buffers if b.op is None]
        for argument, buffer in zip(block.args, interface, strict=True):
            argument.name_hint = buffer.names[0]
            self.memory[buffer, None] = argument
        self.builder = Builder(InsertPoint.at_end(block))
        self._allocate(None)
        self.nodes(self.nest.children)
        for value in self.heap:
            self.builder.insert(memref.DeallocOp.get(value))
        self.builder.insert(func.ReturnOp())
        if self.constants.ops:
            Rewriter.insert_op(self.constants.ops, InsertPoint.at_start(block))
        return func.FuncOp(self.nest.name, (block.arg_types, ()), Region(block))

    def bounds(self, scope: Scope) -> LoopBounds:
        """Guards are conditions inside the loop; later passes may simplify them."""
        return checked_within(scope)

    @contextmanager
    def guarded(self, constraints: Sequence[Expr]) -> Generator[bool]:
        """Emit all constraints, even those that constants decide."""
        with self.branch(constraints) if constraints else nullcontext():
            yield True

    @contextmanager
    def branch(self, constraints: Sequence[Expr]) -> Generator[None]:
        """Code appended within runs only if all constraints hold."""
        condition = Indices(self.builder, self.constants, self.variables).condition(constraints)
        with self._block() as block:
            yield
            self.builder.insert(scf.YieldOp())
        self.builder.insert(scf.IfOp(condition, (), Region(block)))

    def loop(self, scope: Scope, bounds: LoopBounds) -> None:
        """Append a loop."""
        lower, upper, step = [self.constants.index(v) for v in (0, scope.extent, 1)]
        with self._iteration(scope) as block:
            self.body(scope, bounds)
            self.builder.insert(scf.YieldOp())
        self.builder.insert(scf.ForOp(lower, upper, step, (), Region(block)))

    def unroll(self, scope: Scope, bounds: LoopBounds) -> None:
        """Append a loop."""
        self.loop(scope, bounds)

    def vector(self, scope: Scope, leaf: Leaf, bounds: LoopBounds) -> None:
        """Append a loop."""
        self.loop(scope, bounds)

    def other(self, scope: Scope, bounds: LoopBounds) -> None:
        """Append a parallel loop, or a loop for mappings that mean one."""
        if scope.mapping not in _LOOPS:
            raise LoweringError(
                f"kernel '{self.nest.name}': a scope of extent {scope.extent} has mapping '{scope.mapping.value}', "
                f"which has no loop form (loops know {', '.join(m.value for m in _LOOPS)}); apply unmap to it first"
            )
        if scope.mapping is not Mapping.PARALLEL or self.sequential:
            self.loop(scope, bounds)
            return
        lower, upper, step = [self.constants.index(v) for v in (0, scope.extent, 1)]
        with self._iteration(scope) as block:
            self._allocate(scope)
            self.body(scope, bounds)
            self.builder.insert(scf.ReduceOp())
        self.builder.insert(scf.ParallelOp([lower], [upper], [step], Region(block)))

    @contextmanager
    def _iteration(self, scope: Scope) -> Generator[Block]:
        """Append within to the body of a loop over a scope; gives its block."""
        with self._block(IndexType()) as block:
            block.args[0].name_hint = scope.op.iv.name_hint
            self.variables.append(block.args[0])
            yield block
            self.variables.pop()

    @contextmanager
    def _block(self, *arguments: Attribute) -> Generator[Block]:
        """Append within to a new block."""
        block = Block(arg_types=arguments)
        before, self.builder = self.builder, Builder(InsertPoint.at_end(block))
        yield block
        self.builder = before

    def statement(self, leaf: Leaf) -> None:
        """Append the code of a statement."""
        builder = self.builder
        indices = Indices(builder, self.constants, self.variables)
        operands = [self._input(i, leaf, indices) for i in leaf.inputs]
        dtype = leaf.output.array.dtype
        place, index = self._place(leaf.output, leaf), self._index(leaf.output, leaf, indices)

        def apply(function: str, *values: SSAValue) -> SSAValue:
            return builder.insert(function_op(function, values, dtype)).results[0]

        if leaf.contracted:
            value = apply("math.fma", *operands, builder.insert(memref.LoadOp.get(place, index)).res)
        else:
            value = operands[0] if leaf.function is None else apply(leaf.function, *operands)
            if leaf.accumulate is not None:
                value = apply(leaf.accumulate, builder.insert(memref.LoadOp.get(place, index)).res, value)
        store = builder.insert(memref.StoreOp.get(value, place, index))
        if "nontemporal" in leaf.output.hints.data:
            store.nontemporal = BoolAttr.from_bool(True)

    def _input(self, value: Access | Constant | Index, leaf: Leaf, indices: Indices) -> SSAValue:
        match value:
            case Constant():
                return self.constants.typed(value)
            case Index():
                return indices.converted(value)
            case Access():
                load = memref.LoadOp.get(self._place(value, leaf), self._index(value, leaf, indices))
                return indices.builder.insert(load).res

    def _index(self, access: Access, leaf: Leaf, indices: Indices) -> list[SSAValue]:
        buffer = access.array.buffer
        values = [indices.value(e) for e in physical_index(access, leaf.chain)]
        for dimension, swizzle in buffer.swizzles.items():
            granule, by = granule_numbers(access.index, buffer.shape, dimension, swizzle, leaf.extents)
            rest = modulo(access.index[dimension], swizzle.granule, leaf.extents)
            values[dimension] = indices.exchanged(granule, by, swizzle.granule, rest)
        return values

    def _place(self, access: Access, leaf: Leaf) -> SSAValue:
        buffer = access.array.buffer
        return self.memory[buffer, self._home(buffer, leaf)]

    def _home(self, buffer: Buffer, leaf: Leaf) -> Scope | None:
        """The scope around `leaf` whose iterations have their own copy of the buffer; None: the function."""
        return next((s for s in reversed(leaf.chain) if s in self.homes[buffer]), None)

    def _homes(self, buffer: Buffer) -> list[Scope]:
        """The scopes that become concurrent loops and index a reused dimension: each iteration needs a copy."""
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

    def _allocate(self, scope: Scope | None) -> None:
        """Declare the buffers whose copies belong to each iteration of `scope` (None: the function)."""
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
            if scope is None and buffer.memory is Memory.HEAP:
                value = self.builder.insert(memref.AllocOp.get(element, shape=shape)).memref
                self.heap.append(value)
            else:
                value = self.builder.insert(memref.AllocaOp.get(element, shape=shape)).memref
            value.name_hint = buffer.names[0]
            self.memory[buffer, scope] = value
