"""Machine code with named registers as operations of xDSL: a `riscv_func.func` with all code that runs.

Labels and branches stay in one block, as in assembly text. An operand is the last value written to its register, in
text order; a register without such a value (an argument) comes from `get_register`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, cast

from xdsl.dialects import riscv, riscv_func, riscv_snitch, rv32
from xdsl.dialects.builtin import IntegerAttr, i32
from xdsl.dialects.riscv.abstract_ops import (
    RdRsImmFloatOperation,
    RdRsImmIntegerOperation,
    RdRsImmShiftOperation,
    RsRsImmFloatOperation,
    RsRsImmIntegerOperation,
)
from xdsl.dialects.riscv.ops import (
    AssemblySectionOp,
    CsrrciOp,
    CsrrsiOp,
    DirectiveOp,
    GetFloatRegisterOp,
    JOp,
    LabelOp,
)
from xdsl.dialects.riscv.registers import FloatRegisterType, IntRegisterType
from xdsl.ir import Block, Operation, Region, SSAValue

from pdojo.backends.snitch.code import BRANCHES, LOADS, STORES
from pdojo.backends.snitch.ops import SNITCHX, FrepNestOp, FrepNestYieldOp, LaOp, ScfgrOp

SSR_CSR = 0x7C0
"""The control register whose bit 0 turns streams on."""


@dataclass(frozen=True, slots=True)
class Line:
    """An instruction with named registers; `immediate` is a number or a label."""

    name: str
    defs: tuple[str, ...] = ()
    uses: tuple[str, ...] = ()
    immediate: int | str | None = None


@dataclass(frozen=True)
class AssemblyFunction:
    """A function as lines, and the data that it loads."""

    name: str
    lines: Sequence[Line]
    data: Mapping[str, Sequence[int]]
    """Words of 32 bits, keyed by label; those of a label begin at a multiple of 8 bytes."""
    facts: dict[str, int] = field(default_factory=dict[str, int])
    """Information for callers, as attributes of the function."""


@cache
def operations() -> dict[str, type[Operation]]:
    """The operations by mnemonic; of several with one name, the later dialect's is used."""
    found: dict[str, type[Operation]] = {}
    for dialect in (riscv.RISCV, rv32.RV32, riscv_snitch.RISCV_Snitch, SNITCHX):
        for operation in dialect.operations:
            found[operation.name.partition(".")[2]] = operation
    return found


def function_ops(function: AssemblyFunction) -> list[Operation]:
    """The operations of a function: its data and its code."""
    ops: list[Operation] = []
    data: list[Operation] = []
    for label, words in function.data.items():
        texts = [f"0x{word:08x}" for word in words]
        data += [DirectiveOp(".balign", "8"), LabelOp(label)]
        data += [DirectiveOp(".word", ", ".join(texts[k : k + 2])) for k in range(0, len(texts), 2)]
    if data:
        ops.append(AssemblySectionOp(".data", Region(Block(data))))
    block = Block()
    _Block(block, {}).append_all(list(function.lines))
    made = riscv_func.FuncOp(function.name, Region(block), ((), ()), visibility="public", p2align=2)
    for name, value in function.facts.items():
        made.attributes[f"pdojo.{name}"] = IntegerAttr(value, i32)
    return [*ops, made]


def _body(loop: Line, following: Sequence[Line]) -> list[Line]:
    """The lines of a hardware loop: its instructions and its inner loops."""
    assert isinstance(loop.immediate, int)
    found: list[Line] = []
    left = loop.immediate
    for line in following:
        if left == 0:
            break
        left -= line.name != "frep.o"
        found.append(line)
    return found


@dataclass
class _Block:
    block: Block
    values: dict[str, SSAValue]
    """The latest values, keyed by register name."""

    def append_all(self, lines: list[Line]) -> None:
        position = 0
        while position < len(lines):
            line = lines[position]
            position += 1
            if line.name == "frep.o":
                body = _body(line, lines[position:])
                position += len(body)
                self._hardware_loop(line, body)
                continue
            self._append(line)

    def _append(self, line: Line) -> None:
        operands = [self.read(name) for name in line.uses]
        op = _operation(line, operands)
        self.block.add_op(op)
        for name, result in zip(line.defs, op.results, strict=False):
            self.values[name] = result

    def read(self, name: str) -> SSAValue:
        """The value in a register at this point."""
        if name not in self.values:
            kind = _register(name)
            get = rv32.GetRegisterOp(kind) if isinstance(kind, IntRegisterType) else GetFloatRegisterOp(kind)
            self.block.add_op(get)
            self.values[name] = get.res
        return self.values[name]

    def _hardware_loop(self, line: Line, body: list[Line]) -> None:
        count = self.read(line.uses[0])
        written = dict.fromkeys(name for inner in body for name in inner.defs if name not in _STREAM_NAMES)
        read = dict.fromkeys(name for inner in body for name in inner.uses if name not in _STREAM_NAMES)
        carried = [self.read(name) for name in written]
        outside = {name: self.read(name) for name in read if name not in written}
        block = Block(arg_types=[v.type for v in carried])
        inner = _Block(block, outside | dict(zip(written, block.args, strict=True)))
        inner.append_all(body)
        nests = any(line.name == "frep.o" for line in body)
        loop_kind, yield_kind = _NEST if nests else _LOOP
        block.add_op(yield_kind(*(inner.values[name] for name in written)))
        loop = loop_kind(count, Region(block), carried)
        self.block.add_op(loop)
        self.values.update(zip(written, loop.results, strict=True))


_LOOP = riscv_snitch.FrepOuterOp, riscv_snitch.FrepYieldOp
_NEST = FrepNestOp, FrepNestYieldOp
_STREAM_NAMES = frozenset(("ft0", "ft1", "ft2"))


def _register(name: str) -> IntRegisterType | FloatRegisterType:
    is_float = name.startswith("f") and name != "fp"
    return FloatRegisterType.from_name(name) if is_float else IntRegisterType.from_name(name)


def _operation(line: Line, operands: list[SSAValue]) -> Operation:
    """The operation for an instruction."""
    name, immediate = line.name, line.immediate
    match name:
        case "label":
            return LabelOp(str(immediate))
        case "ret":
            return riscv_func.ReturnOp()
        case "j":
            return JOp(str(immediate))
        case "csrsi" | "csrci":
            kind = CsrrsiOp if name == "csrsi" else CsrrciOp
            zero = IntRegisterType.from_name("zero")
            return kind(IntegerAttr(SSR_CSR, i32), IntegerAttr(1, i32), rd=zero)
        case "scfgwi":
            assert isinstance(immediate, int)
            return riscv_snitch.ScfgwiOp(operands[0], immediate)
        case _:
            return _plain(line, operands)


def _plain(line: Line, operands: list[SSAValue]) -> Operation:
    """The operation of an instruction, built with the constructor of its base class."""
    immediate = line.immediate
    kind = operations()[line.name]
    make = cast(Callable[..., Operation], kind)
    options: dict[str, Any] = {"rd": _register(line.defs[0])} if line.defs else {}
    if kind is LaOp:
        return LaOp(str(immediate), options["rd"])
    if kind is ScfgrOp:
        return ScfgrOp(operands[0], options["rd"])
    if line.name == "li":
        return rv32.LiOp(cast(int, immediate), **options)
    if line.name in BRANCHES or line.name in STORES or line.name in LOADS:
        return make(*operands, immediate, **options)
    if issubclass(kind, riscv_snitch.RdRsRsAccumulatingFloatOperationWithFastMath):
        return make(*operands)
    if issubclass(kind, riscv_snitch.RdRsAccumulatingFloatOperation):
        return make(*operands)
    if issubclass(kind, RdRsImmIntegerOperation | RdRsImmShiftOperation):
        return make(operands[0], immediate, **options)
    assert not issubclass(kind, RdRsImmFloatOperation | RsRsImmFloatOperation | RsRsImmIntegerOperation), line
    assert immediate is None, line
    return make(*operands, **options)
