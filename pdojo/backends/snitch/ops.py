"""The dialect `snitchx`: instructions of a Snitch core that xDSL's `riscv`, `rv32` and `riscv_snitch` lack.

They derive from xDSL's base classes for their kinds of operands, so they are printed, parsed, verified and assembled
like xDSL's operations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.backend.assembly_printer import AssemblyPrinter
from xdsl.backend.register_type import RegisterAllocatedMemoryEffect
from xdsl.dialects import riscv_snitch
from xdsl.dialects.riscv import (
    AssemblyInstructionArg,
    RdRsRsOperation,
    RISCVAsmOperation,
    RISCVInstruction,
    RISCVRegallocOperation,
)
from xdsl.dialects.riscv.abstract_ops import (
    RdRsImmFloatOperation,
    RdRsImmIntegerOperation,
    RdRsOperation,
    RdRsRsRsFloatOperation,
    RsRsImmFloatOperation,
    RsRsImmIntegerOperation,
    assembly_arg_str,
)
from xdsl.dialects.riscv.attrs import LabelAttr
from xdsl.dialects.riscv.registers import FloatRegisterType, IntRegisterType
from xdsl.dialects.utils import AbstractYieldOperation
from xdsl.ir import Attribute, Dialect, Operation, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    attr_def,
    irdl_op_definition,
    lazy_traits_def,
    operand_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import (
    HasParent,
    IsTerminator,
    MemoryReadEffect,
    MemoryWriteEffect,
    RecursiveMemoryEffect,
    SingleBlockImplicitTerminator,
)

_FLOAT_BINARY = (
    "fadd.h fsub.h fmul.h fdiv.h fmin.h fmax.h fsgnj.h fsgnjn.h fsgnjx.h fsgnj.d fsgnjn.d fsgnjx.d vfmax.h "
    "vfmin.s vfmin.h vfdiv.s vfdiv.h vfsgnj.s vfsgnjn.s vfsgnjx.s vfsgnj.h vfsgnjn.h vfsgnjx.h"
).split()
_REPLICATING = [f"v{n}.r.{f}" for n in "fadd fsub fmul fdiv fmin fmax fsgnj fsgnjn fsgnjx".split() for f in "sh"]
_FLOAT_UNARY = "fsqrt.h fsqrt.d fcvt.s.d fcvt.d.s fcvt.s.h fcvt.h.s fcvt.d.h fcvt.h.d vfsqrt.s vfsqrt.h".split()
_COMPARES = "feq.d flt.d fle.d feq.h flt.h fle.h vfeq.s".split()
_TO_INTEGER = "fcvt.w.d fcvt.wu.d fcvt.w.h fcvt.wu.h fclass.d fmv.x.h".split()
_TRUNCATED = [f"fcvt.{w}.{f}.rtz" for w in ("w", "wu") for f in "dsh"]
_FROM_INTEGER = "fcvt.h.w fcvt.h.wu fmv.h.x".split()
_LOADS = "lb lbu lh lhu flh".split()
_STORES = "sb sh fsh".split()
_FUSED = "fmadd.h fmsub.h fnmsub.h fnmadd.h fnmsub.d fnmadd.d".split()


class _FloatBinary(RdRsRsOperation[FloatRegisterType, FloatRegisterType, FloatRegisterType]):
    pass


class _Compare(RdRsRsOperation[IntRegisterType, FloatRegisterType, FloatRegisterType]):
    pass


class _FloatUnary(RdRsOperation[FloatRegisterType, FloatRegisterType]):
    pass


class _ToInteger(RdRsOperation[IntRegisterType, FloatRegisterType]):
    pass


class _Truncated(_ToInteger):
    # xDSL's conversions have no rounding mode, so they round to nearest.
    def assembly_instruction_name(self) -> str:
        return Dialect.split_name(self.name)[1].removesuffix(".rtz")

    def assembly_line_args(self) -> tuple[AssemblyInstructionArg, ...]:
        return self.rd, self.rs, "rtz"


class _FromInteger(RdRsOperation[FloatRegisterType, IntRegisterType]):
    pass


class _FloatFused(RdRsRsRsFloatOperation):
    pass


class _FloatMac(riscv_snitch.RdRsRsAccumulatingFloatOperationWithFastMath):
    pass


def _defined(name: str, base: type[Operation]) -> type[Operation]:
    """An operation of the base class with another name."""
    effects = [MemoryReadEffect()] if name in _LOADS else [MemoryWriteEffect()] if name in _STORES else []
    traits = traits_def(RegisterAllocatedMemoryEffect(), *effects)
    members = {"name": f"snitchx.{name}", "traits": traits, "__module__": __name__}
    made = type("".join(part.capitalize() for part in name.split(".")) + "Op", (base,), members)
    return irdl_op_definition(cast("type[IRDLOperation]", made))


def _in_parentheses(op: Operation, value: SSAValue, base: SSAValue, immediate: AssemblyInstructionArg) -> str:
    name = Dialect.split_name(op.name)[1]
    address = f"{assembly_arg_str(immediate)}({assembly_arg_str(base)})"
    return AssemblyPrinter.assembly_line(name, f"{assembly_arg_str(value)}, {address}")


class _IntegerLoad(RdRsImmIntegerOperation):
    # xDSL prints `lbu t0, a0, 4`, but assemblers expect `lbu t0, 4(a0)`.
    def assembly_line(self) -> str:
        return _in_parentheses(self, self.rd, self.rs1, self.immediate)


class _IntegerStore(RsRsImmIntegerOperation):
    def assembly_line(self) -> str:
        return _in_parentheses(self, self.rs2, self.rs1, self.immediate)


class _FloatLoad(RdRsImmFloatOperation):
    def assembly_line(self) -> str:
        return _in_parentheses(self, self.rd, self.rs1, self.immediate)


class _FloatStore(RsRsImmFloatOperation):
    def assembly_line(self) -> str:
        return _in_parentheses(self, self.rs2, self.rs1, self.immediate)


@irdl_op_definition
class LaOp(RISCVInstruction):
    """Load the address of a symbol."""

    name = "snitchx.la"
    rd = result_def(IntRegisterType)
    symbol = attr_def(LabelAttr)
    traits = traits_def(RegisterAllocatedMemoryEffect())
    assembly_format = "$symbol attr-dict `:` type($rd)"

    def __init__(self, symbol: str, rd: IntRegisterType) -> None:
        """`rd` receives the address of `symbol`."""
        super().__init__(attributes={"symbol": LabelAttr(symbol)}, result_types=[rd])

    def assembly_line_args(self) -> tuple[AssemblyInstructionArg, ...]:
        """Register and symbol."""
        return self.rd, self.symbol


@irdl_op_definition
class ScfgrOp(RISCVInstruction):
    """Read a stream's configuration register, whose number is in `rs2`."""

    name = "snitchx.scfgr"
    rd = result_def(IntRegisterType)
    rs2 = operand_def(IntRegisterType)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "$rs2 attr-dict `:` functional-type(operands, results)"

    def __init__(self, rs2: SSAValue, rd: IntRegisterType) -> None:
        """`rd` receives the word."""
        super().__init__(operands=[rs2], result_types=[rd])

    def assembly_line_args(self) -> tuple[AssemblyInstructionArg, ...]:
        """Result and operand."""
        return self.rd, self.rs2


@irdl_op_definition
class FenceOp(RISCVInstruction):
    """Wait until all loads and stores are done, including the floating-point unit's."""

    name = "snitchx.fence"
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "attr-dict"

    def assembly_line_args(self) -> tuple[AssemblyInstructionArg, ...]:
        """No arguments."""
        return ()


@irdl_op_definition
class FrepNestYieldOp(AbstractYieldOperation[Attribute], RISCVAsmOperation, RISCVRegallocOperation):
    """The end of a hardware loop that contains another one."""

    name = "snitchx.frep_nest_yield"
    traits = lazy_traits_def(lambda: (IsTerminator(), HasParent(FrepNestOp), RegisterAllocatedMemoryEffect()))

    def assembly_line(self) -> str | None:
        """No line: the loop instruction gives the number of instructions."""
        return None


@irdl_op_definition
class FrepNestOp(RISCVInstruction):
    """A hardware loop that contains another one, whose instructions xDSL's operation would not count."""

    name = "snitchx.frep_nest"
    max_rep = operand_def(IntRegisterType)
    """Number of iterations, minus one."""
    iter_args = var_operand_def(FloatRegisterType)
    """Initial values of the registers that the body writes."""
    res = var_result_def(FloatRegisterType)
    """Final values of these registers."""
    body = region_def("single_block")
    traits = traits_def(SingleBlockImplicitTerminator(FrepNestYieldOp), RecursiveMemoryEffect())

    def __init__(self, max_rep: SSAValue, body: Region, iter_args: Sequence[SSAValue]) -> None:
        """`body` yields the values of its arguments for the next iteration."""
        super().__init__(operands=[max_rep, iter_args], result_types=[[a.type for a in iter_args]], regions=[body])

    def assembly_instruction_name(self) -> str:
        """The mnemonic of other hardware loops."""
        return "frep.o"

    def assembly_line_args(self) -> tuple[AssemblyInstructionArg, ...]:
        """Iterations and instructions, without staggering."""
        return self.max_rep, str(self.max_inst), "0", "0"

    @property
    def max_inst(self) -> int:
        """Number of instructions to repeat; an inner loop's instructions count once, without its loop instruction."""
        loops = riscv_snitch.FRepOperation, FrepNestOp
        return sum(1 for op in self.body.walk() if isinstance(op, RISCVInstruction) and not isinstance(op, loops))


TABLE: dict[str, type[Operation]] = {
    name: _defined(name, base)
    for base, names in (
        (_FloatBinary, [*_FLOAT_BINARY, *_REPLICATING]),
        (_FloatUnary, _FLOAT_UNARY),
        (_Compare, _COMPARES),
        (_ToInteger, _TO_INTEGER),
        (_Truncated, _TRUNCATED),
        (_FromInteger, _FROM_INTEGER),
        (_FloatFused, _FUSED),
        (_FloatMac, ["vfmac.h", "vfmac.r.s", "vfmac.r.h", "vfmre.s", "vfmre.h"]),
        (_IntegerLoad, "lb lbu lh lhu".split()),
        (_IntegerStore, "sb sh".split()),
        (_FloatLoad, ["flh"]),
        (_FloatStore, ["fsh"]),
    )
    for name in names
}
"""Operations derived from base classes, keyed by mnemonic."""

SNITCHX = Dialect("snitchx", [*TABLE.values(), FenceOp, FrepNestOp, FrepNestYieldOp, LaOp, ScfgrOp], [])
"""The dialect of instructions that xDSL lacks."""
