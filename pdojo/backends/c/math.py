"""Recipes as C functions.

The functions call no library and have no branches, so compilers vectorise loops over them. On processors without fused
multiply-add, C's library functions take their place: emulation would take several times as long.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf, isinf, isnan

from pdojo.backends.c.expressions import strip
from pdojo.math.functions import FUNCTIONS, Function
from pdojo.math.values import FORMATS, Real, Values

FUSED = """\
/* Whether the processor multiplies and adds with one rounding. */
#if defined(FP_FAST_FMA) || defined(__FMA__) || defined(__aarch64__) || defined(__riscv_flen)
#define PD_FMA 1
#else
#define PD_FMA 0
#endif"""
_LONGEST = 60
"""Most characters of an expression that is inlined; longer ones get a variable."""
_TYPES = {"f32": "float", "f64": "double", "i32": "uint32_t", "i64": "uint64_t", "i1": "int"}
_COMPARISONS = {"eq": "==", "ne": "!=", "slt": "<", "sgt": ">"}


def function_text(spec: Function, dtype: str, use: Callable[[str], str]) -> str:
    """The C function `pd_NAME_DTYPE` of a function with a recipe, in f32 or f64.

    Calls `use` for its helpers, which it calls with fused multiply-add only.
    """
    assert spec.recipe is not None
    code = _Recorded()
    operands = [_Value("", (), (), dtype) for _ in range(spec.arity)]
    result: _Value = spec.recipe()(*(Real(code, FORMATS[dtype], o) for o in operands)).value
    arguments = "xy"[: spec.arity]
    printed = _Printer(dict(zip(operands, arguments, strict=True)), use)
    printed.function(code.values, result)
    kind = _TYPES[dtype]
    head = f"static inline {kind} pd_{spec.mnemonic}_{dtype}({', '.join(f'{kind} {a}' for a in arguments)}) {{"
    library = f"{spec.c or spec.mnemonic}{'f' if dtype == 'f32' else ''}({', '.join(arguments)})"
    return "\n".join([head, "#if PD_FMA", *printed.lines, "#else", f"  return {library};", "#endif", "}"])


@dataclass(frozen=True, eq=False, slots=True)
class _Value:
    """A function of values, a constant, or an argument if neither."""

    function: str
    operands: tuple[_Value, ...]
    dtypes: tuple[str, ...]
    dtype: str
    number: float | None = None


class _Recorded(Values[_Value]):
    """Records values in order: the text of a value depends on its later uses."""

    def __init__(self) -> None:
        super().__init__()
        self.values: list[_Value] = []

    def _record(self, value: _Value) -> _Value:
        self.values.append(value)
        return value

    def new_constant(self, number: float, dtype: str) -> _Value:
        return self._record(_Value("", (), (), dtype, number))

    def apply(self, function: str, operands: Sequence[_Value], dtypes: Sequence[str], result: str) -> _Value:
        return self._record(_Value(function, tuple(operands), tuple(dtypes), result))

    def shift(self, function: str, value: _Value, count: int, dtype: str) -> _Value:
        return self.apply(function, [value, self.constant(count, dtype)], [dtype, dtype], dtype)


class _Printer:
    """Prints straight-line code; a short value with one use is printed in place."""

    def __init__(self, texts: dict[_Value, str], use: Callable[[str], str]) -> None:
        self.use = use
        self.lines: list[str] = []
        self.texts = texts
        self.count = 0

    def function(self, values: Sequence[_Value], result: _Value) -> None:
        """Print the values that the result depends on, and its return."""
        uses = Counter(operand for value in values for operand in value.operands)
        needed = {result}
        for value in reversed(values):
            if value in needed:
                needed.update(value.operands)
        for value in values:
            if value in needed:
                text = self._expression(value)
                named = uses[value] > 1 or len(text) > _LONGEST
                self.texts[value] = self._named(text, value.dtype) if named and value.number is None else text
        self.lines.append(f"  return {strip(self.texts[result])};")

    def _named(self, text: str, dtype: str) -> str:
        """A new variable for a value; appends its declaration."""
        name = f"t{self.count}"
        self.lines.append(f"  const {_TYPES[dtype]} {name} = {strip(text)};")
        self.count += 1
        return name

    def _expression(self, value: _Value) -> str:
        if value.number is not None:
            return _constant(value.number, value.dtype)
        operands, dtype = [self.texts[operand] for operand in value.operands], value.dtype
        match value.function.split("."):
            case ["arith", "shli"]:
                return f"({operands[0]} << {operands[1]})"
            case ["arith", "shrsi"]:
                return f"(({_TYPES[dtype]})({_signed(operands[0], dtype)} >> {operands[1]}))"
            case ["arith", "cmpi", predicate]:
                ordered = predicate not in ("eq", "ne")
                sides = [_signed(o, value.dtypes[0]) for o in operands] if ordered else operands
                return f"({sides[0]} {_COMPARISONS[predicate]} {sides[1]})"
            case ["arith", "select"]:
                # Both operands are computed before the choice, because branches keep compilers from vectorising.
                sides = [o if _is_simple(o) else self._named(o, dtype) for o in operands[1:]]
                return f"({operands[0]} ? {sides[0]} : {sides[1]})"
            case ["arith", "maximumf" | "minimumf" as extremum]:
                # The bound is a number, so a NaN is kept.
                x, bound = operands[0] if operands[0].isidentifier() else self._named(operands[0], dtype), operands[1]
                return f"({x} {'<' if extremum == 'maximumf' else '>'} {bound} ? {bound} : {x})"
            case ["arith", "bitcast" | "sitofp" | "extf" | "truncf" as cast]:
                return self._cast(cast, operands[0], value.dtypes[0], dtype)
            case _:
                spelled = FUNCTIONS[value.function].c
                assert spelled is not None, value.function
                if spelled.isidentifier():
                    return f"{spelled}{'f' if dtype == 'f32' else ''}({', '.join(map(strip, operands))})"
                return f"({operands[0]} {spelled} {operands[1]})" if len(operands) == 2 else f"({spelled}{operands[0]})"

    def _cast(self, cast: str, operand: str, source: str, target: str) -> str:
        if cast == "bitcast" and target[0] == "i":
            return f"(({_TYPES[target]}){self.use(f'pd_to_bits_{source}')}({strip(operand)}))"
        if cast == "bitcast":
            return f"{self.use(f'pd_from_bits_{target}')}({strip(operand)})"
        return f"(({_TYPES[target]}){_signed(operand, source) if cast == 'sitofp' else operand})"


def _is_simple(text: str) -> bool:
    """Whether an expression is a name or a constant."""
    return not any(character in text for character in " ?") and "pd_" not in text


def _signed(text: str, dtype: str) -> str:
    return f"(int{dtype[1:]}_t){text}"


def _constant(number: float, dtype: str) -> str:
    if dtype[0] == "f":
        return _number(number, dtype)
    unsigned = int(number) % (1 << int(dtype[1:]))
    return f"UINT{dtype[1:]}_C({unsigned if unsigned < 1024 else f'{unsigned:#x}'})"


def _number(number: float, dtype: str) -> str:
    if isnan(number):
        return "NAN" if dtype == "f32" else "((double)NAN)"
    if isinf(number):
        sign = "-" if number == -inf else ""
        return f"({sign}INFINITY)" if dtype == "f32" else f"({sign}(double)INFINITY)"
    suffix = "f" if dtype == "f32" else ""
    mantissa, _, exponent = number.hex().partition("p")
    text = f"{mantissa.rstrip('0').rstrip('.')}p{exponent}{suffix}"
    if number == int(number) and abs(number) < 1024 and str(number) != "-0.0":
        text = f"{number:.1f}{suffix}"
    return f"({text})" if text.startswith("-") else text
