"""The scalar functions of statements, one record each: what it takes, means and costs, and how backends write it.

A function is named by the operation that computes it (`arith.addf`, `math.exp`); comparisons carry their predicate
(`arith.cmpf.olt`). Integers are signless: signedness belongs to the function. NumPy and the recipes are imported at
their first use, because every tool reads this table at its start.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass
from enum import Enum, auto
from functools import cache
from importlib import import_module
from typing import Any, TypeAlias

Deferred: TypeAlias = Callable[[], Callable[..., Any]]
"""A function that imports another one, and returns it."""


class Signature(Enum):
    """Relation of a function's operand types and result type."""

    FLOAT = auto()
    """All operands and the result have one floating-point type."""
    INTEGER = auto()
    """All operands and the result have one integer type."""
    COMPARE_FLOAT = auto()
    """Operands of one floating-point type, result i1."""
    COMPARE_INTEGER = auto()
    """Operands of one integer type, result i1."""
    SELECT = auto()
    """(i1, T, T) to T."""
    CAST = auto()
    """One operand and a result of another type."""


class Bit(Enum):
    """Meaning of a function of integers for i1, whose signed values are 0 and -1."""

    AND = auto()
    OR = auto()
    XOR = auto()
    AND_NOT = auto()
    """The first operand and not the second one."""
    FIRST = auto()
    """The first operand."""


@dataclass(frozen=True, slots=True)
class UlpBound:
    """The greatest error over all arguments, in units in the last place of the exact result, keyed by format."""

    f32: float
    f64: float


@dataclass(frozen=True, slots=True)
class Moderate:
    """A shorter recipe that gives the same bits for arguments of moderate size."""

    recipe: Deferred
    f32: tuple[float, float]
    """Two magnitudes in f32: the greatest of a moderate argument, and one from which results are 0 and +inf."""
    f64: tuple[float, float]
    """The same in f64."""

    def bound(self, dtype: str) -> float:
        """The greatest magnitude of a moderate argument in a format."""
        return (self.f64 if dtype == "f64" else self.f32)[0]

    def far(self, dtype: str) -> float:
        """The magnitude from which results are 0 (negative arguments) and +inf (positive ones) in a format."""
        return (self.f64 if dtype == "f64" else self.f32)[1]


@dataclass(frozen=True, slots=True)
class Function:
    """A function of statements. The defaults are right for a function that backends write by code of their own."""

    name: str
    signature: Signature
    arity: int
    """The number of operands."""
    _: KW_ONLY
    call: str | None = None
    """The name before a parenthesis in the notation; functions of other types may share it."""
    sign: str | None = None
    """The sign between the operands, or before the only one, in the notation."""

    numpy: Deferred | None = None
    """The meaning on NumPy arrays of one type; casts, comparisons and `select` are not of one type."""
    unsigned: bool = False
    """Whether the meaning is of unsigned integers."""
    bit: Bit | None = None
    """The meaning for i1."""
    bound: UlpBound | None = None
    """The error of a function with a recipe; other functions round once, and backends agree on all bits."""
    recipe: Deferred | None = None
    """The code for f32 and f64, a function of `pdojo.math.values.Real` values."""
    moderate: Moderate | None = None
    """The code for f32 and f64 if the only argument is of moderate size; None if it is not shorter."""
    approximates: str | None = None
    """The function whose shorter form this is; in exact arithmetic the two are one function."""

    c: str | None = None
    """An operator of C, or a function of its library without the suffix for float."""
    llvm: str | None = None
    """An instruction of LLVM (`fadd`), or an intrinsic (`llvm.sqrt`)."""
    snitch: str | None = None
    """An instruction of the floating-point unit of Snitch cores, without the suffix for the type."""

    cycles: float = 1.0
    """Cycles of a CPU core for one pass of a vector through its pipelines, roughly."""
    instructions: float = 1.0
    """Instructions of a GPU, roughly."""
    kind: str | None = None
    """The kind of operation that features of programs count; None: `elementary` in the dialect `math`, else `other`."""

    @property
    def mnemonic(self) -> str:
        """The name without its dialect."""
        return self.name.partition(".")[2]

    @property
    def denotes(self) -> str:
        """The function in exact arithmetic: for a shorter form, the function that it approximates."""
        return self.approximates or self.name

    @property
    def is_exact(self) -> bool:
        """Whether all backends give the same bits as NumPy."""
        return self.bound is None


def _deferred(module: str, name: str) -> Deferred:
    return cache(lambda: getattr(import_module(module), name))


def _np(name: str) -> Deferred:
    return _deferred("numpy", name)


def _own(name: str) -> Deferred:
    """A function that NumPy lacks."""
    return _deferred("pdojo.math.references", name)


def _elementary(
    name: str,
    module: str,
    bound: UlpBound,
    cycles: float,
    instructions: float = 1.0,
    *,
    numpy: Deferred | None = None,
    arity: int = 1,
    call: str | None = None,
    c: str | None = None,
    kind: str | None = None,
    approximates: str | None = None,
    moderate: Moderate | None = None,
) -> Function:
    """The record of `math.NAME`, whose recipe is the function of that name in a module of `pdojo.math.recipes`."""
    return Function(
        f"math.{name}",
        Signature.FLOAT,
        arity,
        call=call or name,
        numpy=numpy or _np(name),
        bound=bound,
        recipe=_deferred(f"pdojo.math.recipes.{module}", name),
        moderate=moderate,
        c=c,
        cycles=cycles,
        instructions=instructions,
        kind=kind,
        approximates=approximates,
    )


def _approximate(
    of: str,
    bound: UlpBound,
    cycles: float,
    instructions: float,
    numpy: Deferred,
    moderate: Moderate | None = None,
) -> Function:
    """The record of the shorter form of `math.OF`; a library of C computes that function."""
    return _elementary(
        f"{of}_approx",
        "approximate",
        bound,
        cycles,
        instructions,
        numpy=numpy,
        c=of,
        approximates=f"math.{of}",
        moderate=moderate,
    )


def _moderate(module: str, name: str, f32: tuple[float, float], f64: tuple[float, float]) -> Moderate:
    """The recipe of that name in a module of `pdojo.math.recipes`, for the magnitudes of `Moderate`."""
    return Moderate(_deferred(f"pdojo.math.recipes.{module}", name), f32, f64)


_FLOAT, _INTEGER = Signature.FLOAT, Signature.INTEGER
_ARITHMETIC = (
    Function("arith.negf", _FLOAT, 1, sign="-", numpy=_np("negative"), c="-", llvm="fneg", snitch="fsgnjn", kind="add"),
    Function("arith.addf", _FLOAT, 2, sign="+", numpy=_np("add"), c="+", llvm="fadd", snitch="fadd", kind="add"),
    Function("arith.subf", _FLOAT, 2, sign="-", numpy=_np("subtract"), c="-", llvm="fsub", snitch="fsub", kind="add"),
    Function("arith.mulf", _FLOAT, 2, sign="*", numpy=_np("multiply"), c="*", llvm="fmul", snitch="fmul", kind="mul"),
    Function(
        "arith.divf",
        _FLOAT,
        2,
        sign="/",
        numpy=_np("divide"),
        c="/",
        llvm="fdiv",
        snitch="fdiv",
        kind="div",
        cycles=10.0,
        instructions=9.0,
    ),
    Function(
        "arith.remf", _FLOAT, 2, call="rem", numpy=_np("fmod"), c="fmod", llvm="frem", cycles=40.0, instructions=30.0
    ),
    Function(
        "arith.maximumf",
        _FLOAT,
        2,
        call="max",
        numpy=_own("maximum"),
        llvm="llvm.maximum",
        snitch="fmax",
        kind="max",
    ),
    Function(
        "arith.minimumf",
        _FLOAT,
        2,
        call="min",
        numpy=_own("minimum"),
        llvm="llvm.minimum",
        snitch="fmin",
        kind="max",
    ),
    Function("arith.maxnumf", _FLOAT, 2, call="maxnum", numpy=_own("maxnum"), llvm="llvm.maxnum", snitch="fmax"),
    Function("arith.minnumf", _FLOAT, 2, call="minnum", numpy=_own("minnum"), llvm="llvm.minnum", snitch="fmin"),
)
_ELEMENTARY = (
    Function("math.absf", _FLOAT, 1, call="abs", numpy=_np("abs"), c="fabs", llvm="llvm.fabs", snitch="fsgnjx"),
    Function("math.ceil", _FLOAT, 1, call="ceil", numpy=_np("ceil"), c="ceil", llvm="llvm.ceil"),
    Function("math.floor", _FLOAT, 1, call="floor", numpy=_np("floor"), c="floor", llvm="llvm.floor"),
    Function("math.roundeven", _FLOAT, 1, call="roundeven", numpy=_np("rint"), c="rint", llvm="llvm.roundeven"),
    Function("math.trunc", _FLOAT, 1, call="trunc", numpy=_np("trunc"), c="trunc", llvm="llvm.trunc"),
    _elementary(
        "exp",
        "exp",
        UlpBound(1.0, 1.0),
        14.0,
        8.0,
        moderate=_moderate("exp", "exp_moderate", (87.0, 104.0), (708.0, 746.0)),
    ),
    _elementary(
        "exp2",
        "exp",
        UlpBound(1.0, 1.0),
        12.0,
        moderate=_moderate("exp", "exp2_moderate", (126.0, 151.0), (1022.0, 1076.0)),
    ),
    _elementary("expm1", "exp", UlpBound(1.25, 1.5), 20.0),
    _elementary("log", "log", UlpBound(1.0, 1.0), 18.0, 12.0),
    _elementary("log2", "log", UlpBound(1.0, 1.25), 18.0),
    _elementary("log1p", "log", UlpBound(1.5, 1.75), 22.0),
    Function(
        "math.sqrt",
        _FLOAT,
        1,
        call="sqrt",
        numpy=_np("sqrt"),
        c="sqrt",
        llvm="llvm.sqrt",
        snitch="fsqrt",
        kind="div",
        cycles=12.0,
        instructions=8.0,
    ),
    _elementary("rsqrt", "root", UlpBound(1.5, 1.5), 20.0, 6.0, numpy=_own("rsqrt"), kind="div"),
    _elementary("sin", "trig", UlpBound(0.51, 1.0), 25.0, 20.0),
    _elementary("cos", "trig", UlpBound(0.51, 1.0), 25.0, 20.0),
    _elementary("atan", "atan", UlpBound(2.5, 2.5), 26.0, 24.0, numpy=_np("arctan")),
    _elementary("tanh", "exp", UlpBound(1.75, 2.0), 24.0, 16.0),
    _elementary("erf", "erf", UlpBound(1.25, 1.5), 28.0, 24.0, numpy=_own("erf")),
    _approximate(
        "exp",
        UlpBound(2.25, 1.0),
        10.0,
        8.0,
        _np("exp"),
        _moderate("approximate", "exp_approx_moderate", (86.0, 89.0), (708.0, 746.0)),
    ),
    _approximate("tanh", UlpBound(4.0, 2.0), 12.0, 16.0, _np("tanh")),
    _approximate("erf", UlpBound(4.0, 1.5), 14.0, 24.0, _own("erf")),
    _elementary("powf", "power", UlpBound(0.51, 1.25), 40.0, 40.0, numpy=_np("power"), arity=2, call="pow", c="pow"),
    Function(
        "math.copysign",
        _FLOAT,
        2,
        call="copysign",
        numpy=_np("copysign"),
        c="copysign",
        llvm="llvm.copysign",
        snitch="fsgnj",
    ),
    Function("math.fma", _FLOAT, 3, call="fma", c="fma", llvm="llvm.fma", snitch="fmadd", kind="mul"),
    Function("math.fms", _FLOAT, 3, call="fms", snitch="fmsub", kind="mul"),
    Function("math.fnma", _FLOAT, 3, call="fnma", snitch="fnmsub", kind="mul"),
)
_INTEGERS = (
    Function("arith.addi", _INTEGER, 2, sign="+", numpy=_np("add"), bit=Bit.XOR, c="+", llvm="add", kind="add"),
    Function("arith.subi", _INTEGER, 2, sign="-", numpy=_np("subtract"), bit=Bit.XOR, c="-", llvm="sub", kind="add"),
    Function("arith.muli", _INTEGER, 2, sign="*", numpy=_np("multiply"), bit=Bit.AND, c="*", llvm="mul", kind="mul"),
    Function("arith.divsi", _INTEGER, 2, sign="/", numpy=_own("divide"), bit=Bit.AND, cycles=20.0),
    Function("arith.divui", _INTEGER, 2, call="udiv", numpy=_own("divide"), bit=Bit.AND, unsigned=True, cycles=20.0),
    Function("arith.remsi", _INTEGER, 2, call="rem", numpy=_own("remainder"), bit=Bit.AND_NOT, cycles=20.0),
    Function(
        "arith.remui",
        _INTEGER,
        2,
        call="urem",
        numpy=_own("remainder"),
        bit=Bit.AND_NOT,
        unsigned=True,
        cycles=20.0,
    ),
    Function("arith.floordivsi", _INTEGER, 2, call="floordiv", numpy=_own("floor_divide"), bit=Bit.AND),
    Function("arith.maxsi", _INTEGER, 2, call="max", numpy=_np("maximum"), bit=Bit.AND, llvm="llvm.smax"),
    Function(
        "arith.maxui", _INTEGER, 2, call="umax", numpy=_np("maximum"), bit=Bit.OR, unsigned=True, llvm="llvm.umax"
    ),
    Function("arith.minsi", _INTEGER, 2, call="min", numpy=_np("minimum"), bit=Bit.OR, llvm="llvm.smin"),
    Function(
        "arith.minui", _INTEGER, 2, call="umin", numpy=_np("minimum"), bit=Bit.AND, unsigned=True, llvm="llvm.umin"
    ),
    Function("arith.andi", _INTEGER, 2, sign="&", numpy=_np("bitwise_and"), bit=Bit.AND, c="&", llvm="and"),
    Function("arith.ori", _INTEGER, 2, sign="|", numpy=_np("bitwise_or"), bit=Bit.OR, c="|", llvm="or"),
    Function("arith.xori", _INTEGER, 2, sign="^", numpy=_np("bitwise_xor"), bit=Bit.XOR, c="^", llvm="xor"),
    Function("arith.shli", _INTEGER, 2, sign="<<", numpy=_own("shift_left"), bit=Bit.AND_NOT),
    Function("arith.shrsi", _INTEGER, 2, sign=">>", numpy=_own("shift_right"), bit=Bit.FIRST),
    Function("arith.shrui", _INTEGER, 2, call="ushr", numpy=_own("shift_right"), bit=Bit.AND_NOT, unsigned=True),
    Function("math.absi", _INTEGER, 1, call="abs", numpy=_np("abs"), bit=Bit.FIRST),
)
_SELECT = Function("arith.select", Signature.SELECT, 3, call="select", kind="select")


def _comparisons(kind: str, signature: Signature, predicates: str, signs: dict[str, str]) -> Iterator[Function]:
    for predicate in predicates.split():
        # Comparisons without a sign of their own are called by their predicate.
        sign = signs.get(predicate)
        call = predicate if sign is None else None
        yield Function(f"arith.{kind}.{predicate}", signature, 2, call=call, sign=sign)


_COMPARISONS = (
    *_comparisons(
        "cmpf",
        Signature.COMPARE_FLOAT,
        "oeq ogt oge olt ole one ord ueq ugt uge ult ule une uno",
        {"olt": "<", "ole": "<=", "ogt": ">", "oge": ">=", "oeq": "==", "une": "!="},
    ),
    *_comparisons(
        "cmpi",
        Signature.COMPARE_INTEGER,
        "eq ne slt sle sgt sge ult ule ugt uge",
        {"slt": "<", "sle": "<=", "sgt": ">", "sge": ">=", "eq": "==", "ne": "!="},
    ),
)
_CASTS = tuple(
    Function(f"arith.{name}", Signature.CAST, 1, call=call, kind="cast")
    for name, call in {
        "extf": "cast", "truncf": "cast", "sitofp": "cast", "uitofp": "ucast", "fptosi": "cast", "fptoui": "ucast",
        "extsi": "cast", "extui": "ucast", "trunci": "cast", "bitcast": "bitcast",
    }.items()
)  # fmt: skip
FUNCTIONS: dict[str, Function] = {
    function.name: function for function in (*_ARITHMETIC, *_ELEMENTARY, *_INTEGERS, *_COMPARISONS, _SELECT, *_CASTS)
}
"""Every function of statements, keyed by name."""
FUSED: dict[str, int | None] = {"math.fma": None, "math.fms": 2, "math.fnma": 0}
"""The operand that functions negate before they multiply the first two and add the third one, with one rounding."""
APPROXIMATIONS: dict[str, str] = {f.approximates: f.name for f in FUNCTIONS.values() if f.approximates is not None}
"""The shorter forms of functions, keyed by the name of the function."""
