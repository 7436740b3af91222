"""A function of tensors or memrefs as a kernel: arguments and results become its arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects import arith, func, memref, tensor
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, IndexType, MemRefType, ShapedType
from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.utils.exceptions import VerifyException

from pdojo.dialect.attributes import Intent, Memory
from pdojo.dialect.names import name_problem
from pdojo.dialect.narrowing import is_memref
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.view.nest import Access, Array
from pdojo.frontends.linalg.constants import elements_of
from pdojo.frontends.linalg.elements import Elements
from pdojo.frontends.linalg.kernel_writer import KernelWriter
from pdojo.frontends.linalg.movement import PIECES, VIEWS
from pdojo.frontends.linalg.nests import as_views, build, copy
from pdojo.frontends.linalg.refusal import check_memory, dtype_of, refused, shape_of
from pdojo.frontends.linalg.scalars import Scalars
from pdojo.frontends.linalg.structured import Structured, structured


def kernel_of_function(function: func.FuncOp, functions: Mapping[str, func.FuncOp]) -> KernelOp:
    """The kernel that computes a function; calls of `functions` become part of it.

    Arguments are the function's, then an array for each result; scalars are arrays without dimensions. Raises
    ConversionError for an operation that kernels cannot express.
    """
    problem = name_problem(function.sym_name.data)
    if problem is not None:
        raise refused(function, f"cannot be a kernel: {problem}")
    return _FunctionReader(function, functions).kernel()


class _FunctionReader:
    def __init__(self, function: func.FuncOp, functions: Mapping[str, func.FuncOp]) -> None:
        self.function = function
        self.functions = functions
        self.writer = KernelWriter(function.sym_name.data)
        self.scalars = Scalars(self.writer, self.writer.iterations(), self.elements)
        self.known: dict[SSAValue, Elements] = {}
        self.wanted: dict[SSAValue, Array] = {}
        """The array of the kernel's interface in which a value is wanted."""
        self.open: list[str] = []
        """The functions that are being read, keyed by name."""

    def kernel(self) -> KernelOp:
        """The kernel. Raises ConversionError."""
        function = self.function
        for argument in function.body.block.args:
            check_memory(function, argument.type)
            self.known[argument] = Elements.of(self._argument(argument))
        outputs = [self._output(operand) for operand in self._returned(function)]
        for operand, array in zip(self._returned(function), outputs, strict=True):
            self.wanted.setdefault(operand, array)
        self._block(function)
        for operand, array in zip(self._returned(function), outputs, strict=True):
            self._deliver(operand, array)
        try:
            return self.writer.finish()
        except VerifyException as error:
            raise refused(function, f"becomes no valid kernel: {error}") from None

    def _argument(self, argument: SSAValue) -> Array:
        if isinstance(argument.type, IndexType):
            raise refused(self.function, "has an argument of type index; kernels have arrays of integers of fixed size")
        dtype, shape = dtype_of(self.function, argument.type), shape_of(self.function, argument.type)
        intent = Intent.INOUT if isinstance(argument.type, MemRefType) else Intent.IN
        return self.writer.argument(argument.name_hint or "x", dtype, shape, intent)

    def _output(self, operand: SSAValue) -> Array:
        if is_memref(operand.type) or isinstance(operand.type, IndexType):
            raise refused(
                self.function, f"returns a value of type {operand.type}; kernels write arrays of their caller"
            )
        dtype, shape = dtype_of(self.function, operand.type), shape_of(self.function, operand.type)
        return self.writer.argument("y", dtype, shape, Intent.OUT)

    def _returned(self, function: func.FuncOp) -> Sequence[SSAValue]:
        """The results of a function. Raises ConversionError for a function of several blocks."""
        last = function.body.blocks[-1].last_op
        if len(function.body.blocks) > 1 or not isinstance(last, func.ReturnOp):
            raise refused(function, "has several blocks; kernels have no branches")
        return last.operands

    def _deliver(self, operand: SSAValue, array: Array) -> None:
        """Copy a result to its array, unless it was computed there."""
        elements, target = self.elements(operand), Elements.of(array)
        if elements.element is None:
            raise refused(self.function, "returns a tensor whose elements are unspecified")
        if not (isinstance(elements.element, Access) and elements.element.array is array):
            copy(self.writer, target, elements)

    def elements(self, value: SSAValue) -> Elements:
        """The elements of a value that is known."""
        if value in self.known:
            return self.known[value]
        return Elements(dtype_of(self.function, value.type), (), self.scalars.values[value])

    def _block(self, function: func.FuncOp) -> None:
        if function.sym_name.data in self.open:
            raise refused(function, "calls itself")
        self.open.append(function.sym_name.data)
        for op in function.body.block.ops:
            if not isinstance(op, func.ReturnOp) and not _is_dead(op):
                self._operation(op)
        self.open.pop()

    def _operation(self, op: Operation) -> None:
        match op:
            case func.CallOp():
                self._call(op)
            case arith.ConstantOp(value=DenseIntOrFPElementsAttr() as value):
                self.known[op.result] = elements_of(op, value, self.writer)
            case arith.ConstantOp(result=OpResult(type=ShapedType())):
                raise refused(
                    op, "has numbers that are not in the text; kernels have no constant arrays: make it an argument"
                )
            case memref.AllocOp() | memref.AllocaOp():
                self._allocate(op)
            case memref.DeallocOp():
                pass
            case memref.CopyOp():
                copy(self.writer, self.elements(op.destination), self.elements(op.source))
            case memref.StoreOp():
                raise refused(op, "writes a single element; kernels are made from linalg operations")
            case _:
                self._value(op)

    def _value(self, op: Operation) -> None:
        """Read an operation that computes values, or writes memrefs as linalg does."""
        found = structured(op)
        if found is not None:
            self._structured(found)
        elif (view := VIEWS.get(type(op))) is not None:
            found = view(op, self.elements)
            if isinstance(op, tensor.CollapseShapeOp) and not _is_linear(found):
                found = self._pieces(op)
            self.known[op.results[0]] = found
        elif type(op) in PIECES:
            self.known[op.results[0]] = self._pieces(op)
        elif len(op.results) == 1 and not isinstance(op.results[0].type, ShapedType):
            self.scalars.compute(op)
        else:
            raise refused(op, "is no operation that kernels have")

    def _pieces(self, op: Operation) -> Elements:
        target = self._target(op, op.results[0])
        PIECES[type(op)](op, self.writer, self.elements, target)
        return target

    def _structured(self, found: Structured) -> None:
        op = found.op
        views = as_views(found, self.elements)
        if views is not None:
            self.known.update(zip(op.results, views, strict=True))
            return
        if op.results:
            targets = [self._target(op, result) for result in op.results]
            self.known.update(zip(op.results, targets, strict=True))
        else:
            targets = [self.elements(operand) for operand in found.outputs]
        build(found, self.writer, self.elements, targets)

    def _target(self, op: Operation, result: SSAValue) -> Elements:
        """A new array for a result: one of the interface, or a temporary."""
        array = self.wanted.get(result)
        if array is None:
            array = self.writer.declare(result.name_hint or "t", dtype_of(op, result.type), shape_of(op, result.type))
        return Elements.of(array)

    def _allocate(self, op: memref.AllocOp | memref.AllocaOp) -> None:
        check_memory(op, op.memref.type)
        place = Memory.HEAP if isinstance(op, memref.AllocOp) else Memory.STACK
        dtype, shape = dtype_of(op, op.memref.type), shape_of(op, op.memref.type)
        self.known[op.memref] = Elements.of(self.writer.declare(op.memref.name_hint or "t", dtype, shape, place))

    def _call(self, op: func.CallOp) -> None:
        callee = self.functions.get(op.callee.string_value())
        if callee is None or callee.is_declaration:
            raise refused(op, f"calls '{op.callee.string_value()}', which is no function of this module with a body")
        returned = self._returned(callee)
        for operand, argument in zip(op.arguments, callee.body.block.args, strict=True):
            self.known[argument] = self.elements(operand)
        wanted = self.wanted
        self.wanted = {value: wanted[r] for r, value in zip(op.results, returned, strict=True) if r in wanted}
        self._block(callee)
        self.wanted = wanted
        for result, value in zip(op.results, returned, strict=True):
            self.known[result] = self.elements(value)


def _is_dead(op: Operation) -> bool:
    """Whether no one needs what an operation computes; operations without results write memory."""
    return bool(op.results) and not any(result.first_use for result in op.results) and not isinstance(op, func.CallOp)


def _is_linear(elements: Elements) -> bool:
    return not isinstance(elements.element, Access) or all(e.is_linear for e in elements.element.index)
