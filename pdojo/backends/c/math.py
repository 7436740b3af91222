"""Elementary functions as C, printed from the code of the LLVM backend.

The functions call no library and have no branches, so compilers vectorise loops over them. On processors without fused
multiply-add, C's library functions take their place: emulation would take several times as long.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf, isinf, isnan

from xdsl.builder import Builder
from xdsl.dialects import llvm
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, f32, f64
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint

from pdojo.backends.c.expressions import strip
from pdojo.backends.llvm.math import MATH_FUNCTIONS, emit_math
from pdojo.backends.llvm.ops import SelectOp
from pdojo.dialect.functions import FUNCTIONS
from pdojo.errors import LoweringError

INLINED = frozenset(MATH_FUNCTIONS)
"""Functions that this module prints, by their names in the dialect."""
FUSED = """\
/* Whether the processor multiplies and adds with one rounding. */
#if defined(FP_FAST_FMA) || defined(__FMA__) || defined(__aarch64__) || defined(__riscv_flen)
#define PD_FMA 1
#else
#define PD_FMA 0
#endif"""
LIBRARY = {"math.powf": "pow"}
_LONGEST = 60
"""Most characters of an expression that is inlined; longer ones get a variable."""
_TYPES = {"f32": "float", "f64": "double", "i32": "uint32_t", "i64": "uint64_t", "i1": "int"}
_OPERATORS: dict[type[Operation], str] = {
    llvm.FAddOp: "+",
    llvm.FSubOp: "-",
    llvm.FMulOp: "*",
    llvm.FDivOp: "/",
    llvm.AddOp: "+",
    llvm.SubOp: "-",
    llvm.AndOp: "&",
    llvm.OrOp: "|",
    llvm.XOrOp: "^",
    llvm.ShlOp: "<<",
}
_ICMP = {0: "==", 1: "!=", 2: "<", 4: ">"}
"""The comparison operators of the functions' integer predicates, by number; ordering is signed."""


def function_text(function: str, dtype: str, use: Callable[[str], str]) -> str:
    """The C function `pd_NAME_DTYPE` for a key of `MATH_FUNCTIONS`, in f32 or f64; calls `use` for its helpers."""
    name = function.removeprefix("math.")
    element = f32 if dtype == "f32" else f64
    block = Block(arg_types=[element] * FUNCTIONS[function].arity)
    result = emit_math(function, block.args, Builder(InsertPoint.at_end(block)))
    printed = _Printer(block, result, use)
    kind = _TYPES[dtype]
    arguments = "xy"[: len(block.args)]
    head = f"static inline {kind} pd_{name}_{dtype}({', '.join(f'{kind} {a}' for a in arguments)}) {{"
    use("pd_fused")
    library = f"  return {LIBRARY.get(function, name)}{'f' if dtype == 'f32' else ''}({', '.join(arguments)});"
    return "\n".join([head, "#if PD_FMA", *printed.lines, "#else", library, "#endif", "}"])


class _Printer:
    """Prints straight-line code; a short value with one use is printed in place."""

    def __init__(self, block: Block, result: SSAValue, use: Callable[[str], str]) -> None:
        self.use = use
        self.lines: list[str] = []
        self.texts: dict[SSAValue, str] = dict(zip(block.args, "xy", strict=False))
        self.count = 0
        needed = _needed(block, result)
        for op in (op for op in block.ops if op in needed):
            value = op.results[0]
            text = self._expression(op)
            named = len(list(value.uses)) > 1 or len(text) > _LONGEST
            if named and not isinstance(op, llvm.ConstantOp):
                text = self._named(text, str(value.type))
            self.texts[value] = text
        self.lines.append(f"  return {strip(self.texts[result])};")

    def _named(self, text: str, kind: str) -> str:
        """A new variable for a value; appends its declaration."""
        name = f"t{self.count}"
        self.lines.append(f"  const {_TYPES[kind]} {name} = {strip(text)};")
        self.count += 1
        return name

    def _expression(self, op: Operation) -> str:
        operands = [self.texts[operand] for operand in op.operands]
        kind = str(op.results[0].type)
        match op:
            case llvm.ConstantOp():
                return _constant(op.value, kind)
            case llvm.FMAOp():
                return f"fma{'f' if kind == 'f32' else ''}({', '.join(map(strip, operands))})"
            case llvm.FNegOp():
                return f"(-{operands[0]})"
            case llvm.AShrOp():
                return f"(({_TYPES[kind]})({_signed(operands[0], kind)} >> {operands[1]}))"
            case llvm.ICmpOp():
                return self._compared(op, operands)
            case SelectOp():
                # Both operands are computed before the choice, because branches keep compilers from vectorising.
                sides = [o if _is_simple(o) else self._named(o, kind) for o in operands[1:]]
                return f"({operands[0]} ? {sides[0]} : {sides[1]})"
            case llvm.CallIntrinsicOp():
                return self._called(op.intrin.data.split(".")[1], operands, kind)
            case _ if type(op) in _OPERATORS:
                return f"({operands[0]} {_OPERATORS[type(op)]} {operands[1]})"
            case _:
                return self._converted(op, operands[0], kind)

    def _converted(self, op: Operation, operand: str, kind: str) -> str:
        """The text of a conversion or bitcast."""
        match op:
            case llvm.BitcastOp() if kind[0] == "i":
                return f"(({_TYPES[kind]}){self.use(f'pd_to_bits_f{kind[1:]}')}({strip(operand)}))"
            case llvm.BitcastOp():
                return f"{self.use(f'pd_from_bits_{kind}')}({strip(operand)})"
            case llvm.SIToFPOp():
                return f"(({_TYPES[kind]}){_signed(operand, str(op.operands[0].type))})"
            case llvm.FPExtOp() | llvm.FPTruncOp():
                return f"(({_TYPES[kind]}){operand})"
            case _:
                raise LoweringError(f"'{op.name}' has no spelling in C")

    def _compared(self, op: llvm.ICmpOp, operands: Sequence[str]) -> str:
        sign = _ICMP[op.predicate.value.data]
        kind = str(op.operands[0].type)
        sides = operands if sign in ("==", "!=") else [_signed(o, kind) for o in operands]
        return f"({sides[0]} {sign} {sides[1]})"

    def _called(self, name: str, operands: Sequence[str], kind: str) -> str:
        """The text of an intrinsic. The second operand of maximum and minimum is constant, so a NaN is kept."""
        if name in ("maximum", "minimum"):
            value = operands[0] if operands[0].isidentifier() else self._named(operands[0], kind)
            bound = operands[1]
            return f"({value} {'<' if name == 'maximum' else '>'} {bound} ? {bound} : {value})"
        return f"{name}{'f' if kind == 'f32' else ''}({', '.join(map(strip, operands))})"


def _needed(block: Block, result: SSAValue) -> set[Operation]:
    """The operations that the result depends on."""
    found = {result.owner}
    for op in reversed(list(block.ops)):
        if op in found:
            found |= {operand.owner for operand in op.operands}
    return {owner for owner in found if isinstance(owner, Operation)}


def _is_simple(text: str) -> bool:
    """Whether an expression is a name or a constant."""
    return not any(character in text for character in " ?") and "pd_" not in text


def _signed(text: str, kind: str) -> str:
    return f"(int{kind[1:]}_t){text}"


def _constant(value: Attribute, kind: str) -> str:
    if isinstance(value, IntegerAttr):
        number = value.value.data
        width = int(kind[1:])
        unsigned = number % (1 << width)
        small = f"{unsigned}" if unsigned < 1024 else f"{unsigned:#x}"
        return f"UINT{width}_C({small})"
    assert isinstance(value, FloatAttr)
    return _number(value.value.data, kind)


def _number(number: float, kind: str) -> str:
    if isnan(number):
        return "NAN" if kind == "f32" else "((double)NAN)"
    if isinf(number):
        sign = "-" if number == -inf else ""
        return f"({sign}INFINITY)" if kind == "f32" else f"({sign}(double)INFINITY)"
    mantissa, _, exponent = number.hex().partition("p")
    text = f"{mantissa.rstrip('0').rstrip('.')}p{exponent}{'f' if kind == 'f32' else ''}"
    if number == int(number) and abs(number) < 1024 and str(number) != "-0.0":
        text = f"{number:.1f}{'f' if kind == 'f32' else ''}"
    return f"({text})" if text.startswith("-") else text
