"""Structured operations: iterations, one map per operand, and a body that computes one element of each output."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from xdsl.dialects import linalg
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation, PoolingOperation
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineMap

from pdojo.dialect.affine import Expr
from pdojo.dialect.affine_maps import from_affine
from pdojo.frontends.linalg.mapped import MapOp
from pdojo.frontends.linalg.refusal import refused, shape_of
from pdojo.frontends.linalg.scalars import root


@dataclass(frozen=True)
class Structured:
    """A structured operation, generic or named."""

    op: Operation
    inputs: Sequence[SSAValue]
    outputs: Sequence[SSAValue]
    maps: Sequence[AffineMap]
    """The index of an element over the iterations, for each input and each output."""
    body: Block
    """Its arguments are an element of each input and the previous one of each output."""

    @cached_property
    def extents(self) -> tuple[int, ...]:
        """The number of iterations of each dimension. Raises ConversionError if the operands do not determine it."""
        found: dict[int, int] = {}
        for operand, index in zip((*self.inputs, *self.outputs), self.maps, strict=True):
            for expression, extent in zip(index.results, shape_of(self.op, operand.type), strict=True):
                if not isinstance(expression, AffineDimExpr):
                    continue
                if found.setdefault(expression.position, extent) != extent:
                    known = found[expression.position]
                    raise refused(self.op, f"has {known} and {extent} iterations of dimension {expression.position}")
        count = self.maps[0].num_dims
        missing = [d for d in range(count) if d not in found]
        if missing:
            raise refused(self.op, f"has no operand whose size is the number of iterations of dimension {missing[0]}")
        return tuple(found[d] for d in range(count))

    @cached_property
    def parallel(self) -> list[int]:
        """The dimensions that index outputs, in their order there; a reduction runs over the others."""
        found: dict[int, None] = {}
        for index in self.maps[len(self.inputs) :]:
            for expression in index.results:
                found.update(dict.fromkeys(sorted(expression.used_dims())))
        return list(found)

    @cached_property
    def reduced(self) -> list[int]:
        """The dimensions of the reduction."""
        return [d for d in range(len(self.extents)) if d not in self.parallel]

    @cached_property
    def needed(self) -> list[int]:
        """The outputs that are read: memrefs, results with a use, and what these accumulate from."""
        used = {k for k in range(len(self.outputs)) if not self.op.results or self.op.results[k].first_use}
        arguments = self.body.args[len(self.inputs) :]
        while True:
            more = used | {k for k, argument in enumerate(arguments) if self._uses(used)[argument]}
            if more == used:
                return sorted(used)
            used = more

    @cached_property
    def uses(self) -> Counter[SSAValue]:
        """How often needed outputs use each scalar of the body."""
        return self._uses(set(self.needed))

    def _uses(self, outputs: set[int]) -> Counter[SSAValue]:
        assert self.body.last_op is not None
        waiting = [root(operand) for k, operand in enumerate(self.body.last_op.operands) if k in outputs]
        found, seen = Counter(waiting), set[Operation]()
        while waiting:
            owner = waiting.pop().owner
            if isinstance(owner, Operation) and owner not in seen and self.op.is_ancestor(owner):
                seen.add(owner)
                operands = [root(operand) for each in owner.walk() for operand in each.operands]
                found.update(operands)
                waiting += operands
        return found

    def covers(self, output: int) -> bool:
        """Whether every parallel iteration writes an element of its own, and all elements are written."""
        shape = shape_of(self.op, self.outputs[output].type)
        index = self.maps[len(self.inputs) + output].results
        units = sum(extent == 1 and e == AffineConstantExpr(0) for e, extent in zip(index, shape, strict=True))
        dims = [e.position for e in index if isinstance(e, AffineDimExpr)]
        return len(dims) + units == len(index) and sorted(dims) == sorted(self.parallel)

    def index(self, operand: int, iterations: Sequence[Expr], extents: Sequence[int]) -> tuple[Expr, ...]:
        """The index of an operand's element over open scopes. Raises ConversionError if it may be out of bounds."""
        value = (*self.inputs, *self.outputs)[operand]
        try:
            found = tuple(from_affine(e, iterations, extents) for e in self.maps[operand].results)
        except ValueError as error:
            raise refused(self.op, f"has a map that kernels cannot express: {error}") from None
        for axis, (expression, extent) in enumerate(zip(found, shape_of(self.op, value.type), strict=True)):
            low, high = expression.bounds(extents)
            if low < 0 or high >= extent:
                raise refused(
                    self.op, f"reads or writes elements {low} to {high} of dimension {axis}, which has {extent}"
                )
        return found


def structured(op: Operation) -> Structured | None:
    """The structured operation, None if `op` is none. Raises ConversionError if its maps are not known."""
    match op:
        case PoolingOperation() if op.body.block.args[1].first_use is not None:
            raise refused(op, "has a body that reads the window, as xDSL 0.74 makes it; let pdojo-opt read the program")
        case LinalgStructuredOperation():
            maps = [attribute.data for attribute in op.get_indexing_maps().data]
            return Structured(op, op.inputs, op.outputs, maps, op.body.block)
        case MapOp():
            identity = AffineMap.identity(len(shape_of(op, op.init.type)))
            return Structured(op, op.inputs, [op.init], [identity] * len(op.operands), op.body.block)
        case linalg.ops.BroadcastOp():
            return _of_dimensions(op, op.input, op.init, op.dimensions.get_values(), whole=op.init)
        case linalg.ops.ReduceOp():
            return _of_dimensions(op, op.input, op.init, op.dimensions.get_values(), whole=op.input)
        case _:
            return None


def _of_dimensions(
    op: Operation, source: SSAValue, init: SSAValue, dimensions: Sequence[int], whole: SSAValue
) -> Structured:
    """A broadcast or a reduction: the operand `whole` has all dimensions, the other one lacks some."""
    rank = len(shape_of(op, whole.type))
    identity = AffineMap.identity(rank)
    kept = AffineMap(rank, 0, tuple(AffineDimExpr(d) for d in range(rank) if d not in dimensions))
    maps = [identity, kept] if whole is source else [kept, identity]
    return Structured(op, [source], [init], maps, op.regions[0].block)
