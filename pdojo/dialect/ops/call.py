"""Calls of kernels from host IR."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    FlatSymbolRefAttrConstr,
    MemRefType,
    SymbolRefAttr,
)
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    prop_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import (
    EffectInstance,
    MemoryEffect,
    MemoryEffectKind,
    SymbolTable,
    SymbolUserOpInterface,
)
from xdsl.utils.exceptions import VerifyException

from pdojo.dialect.ops.kernel import KernelOp
from pdojo.dialect.syntax import (
    names_of,
)


class KernelCallSymbols(SymbolUserOpInterface):
    """The symbol of a call must be a kernel whose arguments have the types of the operands."""

    def verify(self, op: Operation) -> None:
        """Raise VerifyException if they differ."""
        assert isinstance(op, CallOp)
        kernel = SymbolTable.lookup_symbol(op, op.callee)
        if not isinstance(kernel, KernelOp):
            raise VerifyException(f"'{op.callee.string_value()}' is no pdojo.kernel of this module")
        if sizes := kernel.known_sizes():
            raise VerifyException(
                f"'{op.callee.string_value()}' has the size {min(sizes)}: host IR calls kernels without"
            )
        wanted = kernel.body.block.arg_types
        given = [a.type for a in op.arguments]
        if len(wanted) != len(given):
            raise VerifyException(f"the kernel takes {len(wanted)} arrays, not {len(given)}")
        for name, want, have in zip(names_of(kernel.arg_names), wanted, given, strict=True):
            if want != have:
                raise VerifyException(f"array '{name}' has type {want}, not {have}")


class CallEffects(MemoryEffect):
    """A call reads and writes its arrays."""

    @classmethod
    def get_effects(cls, op: Operation) -> set[EffectInstance]:
        """Reads and writes of every argument; the kernel, whose intents are more precise, may be in another module."""
        kinds = (MemoryEffectKind.READ, MemoryEffectKind.WRITE)
        return {EffectInstance(kind, array) for kind in kinds for array in op.operands}


@irdl_op_definition
class CallOp(IRDLOperation):
    """Invoke a kernel from host IR: `pdojo.call @softmax(%x, %y) : memref<..>, memref<..>`."""

    name = "pdojo.call"

    callee = prop_def(FlatSymbolRefAttrConstr)
    """Symbol of the kernel."""
    arguments = var_operand_def(MemRefType)
    """The interface arrays, in the kernel's order; they must not overlap."""

    traits = traits_def(KernelCallSymbols(), CallEffects())

    def __init__(self, callee: str, arguments: Sequence[SSAValue]) -> None:
        super().__init__(operands=[arguments], properties={"callee": SymbolRefAttr(callee)})

    @classmethod
    def parse(cls, parser: Parser) -> CallOp:
        """Parse `@name(%a, %b) : type, type`."""
        callee = parser.parse_symbol_name()
        start = parser.pos
        names = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_unresolved_operand)
        parser.parse_punctuation(":")
        types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        return cls(callee.data, parser.resolve_operands(names, types, start))

    def print(self, printer: Printer) -> None:
        """Print the form that `parse` reads."""
        printer.print_string(" ")
        printer.print_symbol_name(self.callee.string_value())
        with printer.in_parens():
            printer.print_list(self.arguments, printer.print_ssa_value)
        printer.print_string(" : ")
        printer.print_list([a.type for a in self.arguments], printer.print_attribute)
