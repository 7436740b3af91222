"""Functions of statements as C expressions, with the rounding and the definitions of the other backends (docs/llvm.md).

Values of f16 and bf16 are their bits; functions compute in float and round back. An i1 is 0 or 1. Every expression is
primary or in parentheses.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pdojo.backends.c.expressions import strip
from pdojo.backends.c.prelude import Prelude
from pdojo.dialect.functions import DTYPES, is_float
from pdojo.dialect.semantics.rounding import INTERFACE, from_interface, round_float64, to_interface
from pdojo.dialect.view.nest import Constant
from pdojo.math.functions import FUNCTIONS, FUSED, Bit, Function, Signature

NARROW = ("f16", "bf16")
_ORDERED = {"oeq": "==", "ogt": ">", "oge": ">=", "olt": "<", "ole": "<=", "une": "!="}
_NEGATED = {"ugt": "<=", "uge": "<", "ult": ">=", "ule": ">"}
_INTEGER = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


def literal(constant: Constant) -> str:
    """A constant in its C representation: f16 and bf16 as their bits."""
    dtype = constant.dtype
    if dtype in NARROW:
        bits = to_interface(round_float64(np.asarray(float(constant.value)), dtype), dtype)
        return f"0x{int(bits.reshape(-1).view(np.uint16)[0]):04x}"
    if is_float(dtype):
        return _float_literal(float(constant.value), dtype)
    value = int(constant.value)
    if dtype == "i1":
        return str(value & 1)
    width = DTYPES[dtype].bitwidth
    if value == -(1 << (width - 1)):
        return f"INT{width}_MIN"
    text = f"INT64_C({value})" if dtype == "i64" else str(value)
    return f"({text})" if value < 0 and dtype != "i64" else text


def _float_literal(value: float, dtype: str) -> str:
    if value != value:
        return "((double)NAN)" if dtype == "f64" else "NAN"
    if value in (float("inf"), float("-inf")):
        text = "INFINITY" if dtype == "f32" else "((double)INFINITY)"
    else:
        number = np.float32(value) if dtype == "f32" else np.float64(value)
        text = f"{abs(number)}{'f' if dtype == 'f32' else ''}"
    return f"(-{text})" if np.signbit(value) else text


def apply(prelude: Prelude, function: str, operands: Sequence[str], dtypes: Sequence[str], result: str) -> str:
    """The value of `function` in the element type `result`."""
    spec = FUNCTIONS[function]
    name = spec.mnemonic
    kind, _, predicate = name.partition(".")
    if kind == "select":
        return f"({operands[0]} ? {operands[1]} : {operands[2]})"
    if kind == "cmpi":
        return _compare_integers(predicate, operands, dtypes[0])
    if kind == "cmpf":
        wide = [widened(prelude, o, d) for o, d in zip(operands, dtypes, strict=True)]
        return _compare(prelude, predicate, wide, "f32" if dtypes[0] in NARROW else dtypes[0])
    if spec.signature is Signature.CAST:
        return _cast(prelude, name, operands[0], dtypes[0], result)
    if not is_float(result):
        return _bit(spec, operands) if result == "i1" else _integer(prelude, spec, operands, result)
    if result not in NARROW:
        return _float(prelude, spec, operands, result)
    values = [widened(prelude, o, result) for o in operands]
    if function not in FUSED:
        return _float_to(prelude, _float(prelude, spec, values, "f32"), "f32", result)
    # A product of two f16 or bf16 is exact in double; the sum is rounded to odd, and then to the type.
    fused = f"{prelude.use('pd_fma_to_odd')}({_factors(spec, values)})"
    return _float_to(prelude, fused, "f32", result)


def operator(function: str | None) -> str:
    """The operator of a function in C; empty if it has none, and for no function."""
    spelled = None if function is None else FUNCTIONS[function].c
    return "" if spelled is None or spelled.isidentifier() else spelled


def widened(prelude: Prelude, value: str, dtype: str) -> str:
    """A float in a type that C can compute with: f16 and bf16 become f32."""
    if dtype in NARROW and value.startswith("0x"):
        number = from_interface(np.asarray([int(value, 16)], np.uint16).view(INTERFACE[dtype]), dtype)
        return literal(Constant(float(number[0]), "f32"))
    return f"{prelude.use(f'pd_{dtype}_to_f32')}({value})" if dtype in NARROW else value


def from_index(prelude: Prelude, expression: str, dtype: str) -> str:
    """An index expression as a value of `dtype`."""
    if is_float(dtype):
        return _from_integer(prelude, f"({expression})", dtype)
    return f"(({expression}) & 1)" if dtype == "i1" else f"(({prelude.spelling.types[dtype]})({expression}))"


def _float(prelude: Prelude, spec: Function, operands: Sequence[str], dtype: str) -> str:
    name = spec.mnemonic
    if name == "mulf" and dtype in prelude.spelling.products:
        return f"{prelude.spelling.products[dtype]}({strip(operands[0])}, {strip(operands[1])})"
    if sign := operator(spec.name):
        return f"({operands[0]} {sign} {operands[1]})" if spec.arity == 2 else f"({sign}{operands[0]})"
    suffix = "f" if dtype == "f32" else ""
    if spec.name in FUSED:
        return f"fma{suffix}({_factors(spec, operands)})"
    if name == "rsqrt":
        return f"(1 / sqrt{suffix}({strip(operands[0])}))"
    listed = ", ".join(map(strip, operands))
    if name in ("maximumf", "minimumf", "maxnumf", "minnumf"):
        return f"{prelude.use(f'pd_{name[:-1]}_{dtype}')}({listed})"
    if spec.recipe is not None and not prelude.spelling.library:
        return f"{prelude.use(f'pd_{name}_{dtype}')}({listed})"
    return f"{spec.c or name}{suffix}({listed})"


def _factors(spec: Function, operands: Sequence[str]) -> str:
    """The operands of a fused function as those of `fma`."""
    return ", ".join(f"-{o}" if k == FUSED[spec.name] else strip(o) for k, o in enumerate(operands))


def _compare(prelude: Prelude, predicate: str, operands: Sequence[str], dtype: str) -> str:
    a, b = operands
    if predicate in _ORDERED:
        return f"({a} {_ORDERED[predicate]} {b})"
    if predicate in _NEGATED:
        return f"(!({a} {_NEGATED[predicate]} {b}))"
    helper = prelude.use(f"pd_{'differ' if predicate in ('one', 'ueq') else 'unordered'}_{dtype}")
    negation = "!" if predicate in ("ueq", "ord") else ""
    return f"({negation}{helper}({strip(a)}, {strip(b)}))"


def _compare_integers(predicate: str, operands: Sequence[str], dtype: str) -> str:
    a, b = operands
    if dtype == "i1":
        # Logical operators instead of comparisons: compilers warn of comparing truth values with numbers. A signed i1
        # of 1 is -1.
        return _BIT_ORDER[predicate].format(*(operands if predicate[0] != "s" else (b, a)))
    if predicate[0] == "u":
        a, b = (f"({_unsigned(dtype)}){o}" for o in operands)
    return f"({a} {_INTEGER[predicate if predicate in ('eq', 'ne') else predicate[1:]]} {b})"


_BIT_ORDER = {"eq": "(!({0} ^ {1}))", "ne": "({0} ^ {1})"} | {
    sign + name: text
    for sign in "su"
    for name, text in {"lt": "({1} & !{0})", "le": "({1} | !{0})", "gt": "({0} & !{1})", "ge": "({0} | !{1})"}.items()
}


def _unsigned(dtype: str) -> str:
    return f"uint{DTYPES[dtype].bitwidth}_t"


def _integer(prelude: Prelude, spec: Function, operands: Sequence[str], dtype: str) -> str:
    kind, width = prelude.spelling.types[dtype], DTYPES[dtype].bitwidth
    if spec.c is None:
        return f"{prelude.use(f'pd_{spec.mnemonic}_{dtype}')}({', '.join(map(strip, operands))})"
    infix = f"({operands[0]} {spec.c} {operands[1]})"
    if width < 32:
        return f"(({kind}){infix})"
    if spec.c in "&|^":
        return infix
    a, b = (f"({_unsigned(dtype)}){o}" for o in operands)
    return f"(({kind})({a} {spec.c} {b}))"


_BITS = {
    Bit.AND: "({0} & {1})",
    Bit.OR: "({0} | {1})",
    Bit.XOR: "({0} ^ {1})",
    Bit.AND_NOT: "({0} & !{1})",
    Bit.FIRST: "{0}",
}


def _bit(spec: Function, operands: Sequence[str]) -> str:
    assert spec.bit is not None
    return _BITS[spec.bit].format(*operands)


def _cast(prelude: Prelude, name: str, value: str, source: str, target: str) -> str:
    match name:
        case "extf" | "truncf":
            return _float_to(prelude, widened(prelude, value, source), "f32" if source in NARROW else source, target)
        case "sitofp":
            return _from_integer(prelude, f"(-{value})" if source == "i1" else value, target)
        case "uitofp":
            return _from_integer(prelude, value if source == "i1" else f"({_unsigned(source)}){value}", target)
        case "fptosi" | "fptoui":
            return _saturated(prelude, name, widened(prelude, value, source), target)
        case "extsi":
            return f"(({prelude.spelling.types[target]}){'-' * (source == 'i1')}{value})"
        case "extui":
            return f"(({prelude.spelling.types[target]}){'' if source == 'i1' else f'({_unsigned(source)})'}{value})"
        case "trunci":
            return f"({value} & 1)" if target == "i1" else f"(({prelude.spelling.types[target]}){value})"
        case _:
            return _bitcast(prelude, value, source, target)


def _saturated(prelude: Prelude, name: str, value: str, target: str) -> str:
    if target == "i1":
        return f"({value} <= -1)" if name == "fptosi" else f"({value} >= 1)"
    return f"{prelude.use(f'pd_{name}_{target}')}({strip(value)})"


def _float_to(prelude: Prelude, value: str, source: str, target: str) -> str:
    """A value of a C floating-point type, converted to any type."""
    if target in NARROW:
        return f"{prelude.use(f'pd_{source}_to_{target}')}({strip(value)})"
    return value if source == target else f"(({prelude.spelling.types[target]}){value})"


def _from_integer(prelude: Prelude, value: str, target: str) -> str:
    between = {"bf16": "f64", "f16": "f32"}.get(target, target)
    return _float_to(prelude, f"(({prelude.spelling.types[between]}){value})", between, target)


def _bitcast(prelude: Prelude, value: str, source: str, target: str) -> str:
    if source in ("f32", "f64"):
        return f"{prelude.use(f'pd_to_bits_{source}')}({strip(value)})"
    if target in ("f32", "f64"):
        return f"{prelude.use(f'pd_from_bits_{target}')}({strip(value)})"
    return f"(({prelude.spelling.types[target]}){value})"
