"""Builds loops, branches and statements over memrefs from a nest, block by block."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager

from xdsl.builder import Builder
from xdsl.dialects import func, memref, scf
from xdsl.dialects.builtin import BoolAttr, IndexType
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from pdojo.backends.common.walk import LoopBounds, NestWalk, sized_bounds
from pdojo.backends.loops.emitter import Constants, Indices
from pdojo.backends.loops.functions import function_op
from pdojo.dialect.affine import Expr, const, modulo
from pdojo.dialect.view.nest import Access, Buffer, Constant, Index, Leaf, Nest, Scope
from pdojo.dialect.view.storage import granule_numbers, physical_index
from pdojo.math.functions import FUSED


def entry_block(nest: Nest) -> Block:
    """The block of a kernel's function: its arrays are the arguments, then its sizes."""
    return Block(arg_types=[*nest.kernel.body.block.arg_types, *(IndexType() for _ in nest.sizes)])


class LoopBuilder(NestWalk):
    """Appends operations of `scf`, `arith`, `math` and `memref` to a block."""

    dissolved = frozenset()

    def __init__(
        self,
        nest: Nest,
        block: Block,
        variables: Sequence[SSAValue] = (),
        sizes: Mapping[str, SSAValue] | None = None,
    ) -> None:
        super().__init__({}, [])
        self.nest = nest
        self.entry = block
        self.builder = Builder(InsertPoint.at_end(block))
        self.constants = Constants()
        self.variables: list[SSAValue] = list(variables)
        """The variables of the open scopes, keyed by depth."""
        self.sizes: dict[str, SSAValue] = dict(sizes or {})
        """The values of the kernel's sizes, of type index."""

    # Methods that a subclass implements

    @abstractmethod
    def memory(self, access: Access, leaf: Leaf) -> SSAValue:
        """The memref of an access."""

    def position(self, access: Access, leaf: Leaf) -> list[SSAValue]:
        """The indices of an access in its memref."""
        buffer, indices = access.array.buffer, self.indices
        values = [indices.value(e) for e in physical_index(access, leaf.chain)]
        for dimension, swizzle in buffer.swizzles.items():
            granule, by = granule_numbers(access.index, buffer.shape, dimension, swizzle, leaf.extents)
            rest = modulo(access.index[dimension], swizzle.granule, leaf.extents)
            values[dimension] = indices.exchanged(granule, by, swizzle.granule, rest)
        return values

    def target(self, leaf: Leaf) -> tuple[SSAValue, list[SSAValue]]:
        """The memref and the indices of the element that a statement writes."""
        return self.memory(leaf.output, leaf), self.position(leaf.output, leaf)

    # Operations and blocks

    @property
    def indices(self) -> Indices:
        """Index arithmetic at the current place."""
        return Indices(self.builder, self.constants, self.variables, self.nest.name, self.sizes)

    def append(self, op: Operation) -> SSAValue:
        """Append an operation; returns its first result."""
        return self.builder.insert(op).results[0]

    def arguments(self) -> dict[Buffer, SSAValue]:
        """The arrays among the arguments of the kernel's function, with the names of their buffers; sizes follow."""
        found: dict[Buffer, SSAValue] = {}
        interface = [b for b in self.nest.buffers if b.op is None]
        arrays, sizes = self.entry.args[: len(interface)], self.entry.args[len(interface) :]
        for argument, buffer in zip(arrays, interface, strict=True):
            argument.name_hint = buffer.names[0]
            found[buffer] = argument
        for argument, name in zip(sizes, self.nest.sizes, strict=True):
            argument.name_hint = name
            self.sizes[name] = argument
        return found

    def finish(self) -> None:
        """Put the constants before all other operations."""
        if self.constants.ops:
            Rewriter.insert_op(self.constants.ops, InsertPoint.at_start(self.entry))

    def function(self) -> func.FuncOp:
        """The complete function, with the kernel's name, which returns nothing."""
        self.builder.insert(func.ReturnOp())
        self.finish()
        return func.FuncOp(self.nest.name, (self.entry.arg_types, ()), Region(self.entry))

    @contextmanager
    def block(self, *arguments: Attribute) -> Generator[Block]:
        """A context that appends to a new block; yields the block."""
        block = Block(arg_types=arguments)
        before, self.builder = self.builder, Builder(InsertPoint.at_end(block))
        yield block
        self.builder = before

    @contextmanager
    def counted(self, extent: int, highs: Sequence[Expr] = ()) -> Generator[SSAValue]:
        """A context in which code is appended to the body of a loop from 0 to `upper()`; yields the loop's variable."""
        lower, upper, step = self.constants.index(0), self.upper(extent, highs), self.constants.index(1)
        with self.block(IndexType()) as block:
            yield block.args[0]
            self.builder.insert(scf.YieldOp())
        self.builder.insert(scf.ForOp(lower, upper, step, (), Region(block)))

    @contextmanager
    def iteration_of(self, scope: Scope, variable: SSAValue) -> Generator[None]:
        """A context inside a scope, whose value is a loop's variable."""
        variable.name_hint = scope.op.iv.name_hint
        self.variables.append(variable)
        yield
        self.variables.pop()

    # The walk

    def bounds(self, scope: Scope) -> LoopBounds:
        """Guards become conditions inside the loop, which later passes may simplify, and sizes upper bounds."""
        return sized_bounds(scope, self.extents)

    def upper(self, extent: int, highs: Sequence[Expr] = ()) -> SSAValue:
        """The least of an extent and of some expressions, of type index."""
        needed = all(e.bounds(self.extents)[1] > extent for e in highs)
        limits = [self.indices.value(e) for e in (*[const(extent)] * needed, *highs)]
        return self.indices.least(limits)

    @contextmanager
    def branch(self, constraints: Sequence[Expr]) -> Generator[None]:
        with self.conditional(self.indices.condition(constraints)):
            yield

    @contextmanager
    def conditional(self, condition: SSAValue) -> Generator[None]:
        """A context in which appended code runs only if a condition holds."""
        with self.block() as block:
            yield
            self.builder.insert(scf.YieldOp())
        self.builder.insert(scf.IfOp(condition, (), Region(block)))

    def loop(self, scope: Scope, bounds: LoopBounds) -> None:
        with self.counted(scope.extent, bounds.highs) as variable, self.iteration_of(scope, variable):
            self.body(scope, bounds)

    def unroll(self, scope: Scope, bounds: LoopBounds) -> None:
        """Append a loop; it is not unrolled."""
        self.loop(scope, bounds)

    def vector(self, scope: Scope, leaf: Leaf, bounds: LoopBounds) -> None:
        """Append a loop over the lanes."""
        self.loop(scope, bounds)

    # Statements

    def statement(self, leaf: Leaf) -> None:
        operands = [self._input(i, leaf) for i in leaf.inputs]
        place, index = self.target(leaf)
        value = self._value(leaf, operands, lambda: self.append(memref.LoadOp.get(place, index)))
        store = self.builder.insert(memref.StoreOp.get(value, place, index))
        if "nontemporal" in leaf.output.hints.data:
            store.nontemporal = BoolAttr.from_bool(True)

    def apply(self, function: str, dtype: str, *operands: SSAValue) -> SSAValue:
        """Append the operation of a function; returns its result, of element type `dtype`."""
        negated = FUSED.get(function)
        if negated is not None:
            operands = tuple(self.apply("arith.negf", dtype, o) if k == negated else o for k, o in enumerate(operands))
            function = "math.fma"
        return self.append(function_op(function, operands, dtype))

    def value(self, leaf: Leaf) -> SSAValue:
        """The value of a statement's function before accumulation, without contraction."""
        return self._computed(leaf, [self._input(i, leaf) for i in leaf.inputs])

    def _computed(self, leaf: Leaf, operands: Sequence[SSAValue]) -> SSAValue:
        return operands[0] if leaf.function is None else self.apply(leaf.function, leaf.output.array.dtype, *operands)

    def _value(self, leaf: Leaf, operands: Sequence[SSAValue], old: Callable[[], SSAValue]) -> SSAValue:
        """The value that a statement writes; `old` loads the previous value."""
        dtype = leaf.output.array.dtype
        if leaf.contracted:
            return self.apply("math.fma", dtype, *operands, old())
        value = self._computed(leaf, operands)
        return value if leaf.accumulate is None else self.apply(leaf.accumulate, dtype, old(), value)

    def _input(self, value: Access | Constant | Index, leaf: Leaf) -> SSAValue:
        match value:
            case Constant():
                return self.constants.typed(value)
            case Index():
                return self.indices.converted(value)
            case Access():
                return self.append(memref.LoadOp.get(self.memory(value, leaf), self.position(value, leaf)))
