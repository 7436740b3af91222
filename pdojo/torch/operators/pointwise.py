"""Elementwise operators: arithmetic, comparisons, bits, rounding, elementary functions."""

from __future__ import annotations

from functools import partial
from typing import Any

from pdojo import build
from pdojo.build import Array, bits
from pdojo.build.numbers import is_unsigned
from pdojo.dialect.element_types import is_float
from pdojo.torch.operators.registry import PROMOTION, Call, aten, pointwise, promoted


def _is_bool(*operands: Any) -> bool:
    return any(isinstance(each, Array) and each.dtype == "i1" for each in operands)


def _add(a: Any, b: Any, alpha: Any = 1) -> Array:
    if _is_bool(a, b):
        return a | b if alpha else a | (b & False)
    return a + b if alpha == 1 else a + b * alpha


def _sub(a: Any, b: Any, alpha: Any = 1) -> Array:
    return a - b if alpha == 1 else a - b * alpha


pointwise("add.Tensor", _add)
pointwise("add.Scalar", _add)
pointwise("sub.Tensor", _sub)
pointwise("sub.Scalar", _sub)
pointwise("rsub.Scalar", lambda a, b, alpha=1: _sub(b, a, alpha))
for _name in ("mul.Tensor", "mul.Scalar"):
    pointwise(_name, lambda a, b: a & b if _is_bool(a, b) else a * b)
pointwise("neg.default", lambda x: -x)
pointwise("abs.default", lambda x: abs(x))

# Functions of floating-point numbers; integers are converted.

_SAME = """exp exp2 expm1 log log2 log10 log1p sqrt rsqrt reciprocal sin cos tan sinh cosh tanh asin acos atan
asinh acosh atanh sigmoid atan2 erf erfc erfinv lgamma digamma i0"""
_FUNCTIONS = {
    **{name: name for name in _SAME.split()},
    **{f"special_{name}": name for name in ("erfcx", "i0e", "i1", "i1e")},
    **{f"special_modified_bessel_{name}": name for name in ("i0", "i1")},
}
for _name, _function in _FUNCTIONS.items():
    pointwise(f"{_name}.default", partial(build.map, _function), PROMOTION.INT_TO_FLOAT)
for _name in ("Tensor", "Scalar"):
    pointwise(f"div.{_name}", partial(build.map, "/"), PROMOTION.INT_TO_FLOAT)
    pointwise(f"copysign.{_name}", partial(build.map, "copysign"), PROMOTION.INT_TO_FLOAT)
pointwise("hypot.default", partial(build.map, "hypot"))
pointwise("ldexp.Tensor", partial(build.map, "ldexp"), PROMOTION.INT_TO_FLOAT)


# Division of whole numbers


def _check_divisor(call: Call, divisor: Any) -> None:
    """Leave integers divided by unknown ones to PyTorch, which raises an error for 0."""
    if isinstance(divisor, Array) and not is_float(divisor.dtype):
        call.refuse("PyTorch raises an error if a divisor is 0")
    if not isinstance(divisor, Array) and divisor == 0:
        call.refuse("the divisor is 0")


def _is_whole(*operands: Any) -> bool:
    return not any(isinstance(each, Array) and is_float(each.dtype) for each in operands)


@aten("div.Tensor_mode", "div.Scalar_mode", pointwise=True)
def divide(call: Call, x: Any, y: Any, *, rounding_mode: str | None = None) -> Array:
    """The quotient, rounded to 0 (`trunc`), down (`floor`) or not at all."""
    if rounding_mode is None:
        a, b = promoted(call, (x, y), PROMOTION.INT_TO_FLOAT)
        return a / b
    a, b = promoted(call, (x, y))
    if _is_whole(a, b):
        _check_divisor(call, b)
    if rounding_mode == "floor":
        return a // b
    return build.map("trunc_divide", a, b)


@aten("remainder.Tensor", "remainder.Scalar", "remainder.Scalar_Tensor", pointwise=True)
def remainder(call: Call, x: Any, y: Any) -> Array:
    """The remainder with the sign of the divisor, or 0 with that of the dividend."""
    a, b = promoted(call, (x, y))
    if _is_whole(a, b):
        _check_divisor(call, b)
    return build.map("remainder", a, b, zero_of_divisor=False)


@aten("fmod.Tensor", "fmod.Scalar", pointwise=True)
def fmod(call: Call, x: Any, y: Any) -> Array:
    """The remainder with the sign of the dividend."""
    a, b = promoted(call, (x, y))
    if _is_whole(a, b):
        _check_divisor(call, b)
    return build.map("rem", a, b)


# Powers


@aten("pow.Tensor_Scalar", "pow.Scalar", "pow.Tensor_Tensor", pointwise=True)
def power(call: Call, x: Any, exponent: Any) -> Array:
    """Powers; of integers only if the exponent is a number from 0."""
    a, b = promoted(call, (x, exponent))
    if _is_whole(a, b) and not (isinstance(a, Array) and not isinstance(b, Array) and b >= 0):
        call.refuse("kernels raise integers only to constant powers of at least 0")
    return build.power(a, b)


# Rounding. Integers stay as they are.

for _name in ("ceil", "floor", "trunc"):
    pointwise(f"{_name}.default", lambda x, name=_name: build.map(name, x) if is_float(x.dtype) else x)
pointwise("round.default", lambda x: build.map("roundeven", x) if is_float(x.dtype) else x)


pointwise("round.decimals", partial(build.map, "round_decimals"))

# Comparisons and logic

for _name, _sign in {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}.items():
    for _overload in ("Tensor", "Scalar"):
        pointwise(f"{_name}.{_overload}", lambda a, b, sign=_sign: build.map(sign, a, b), PROMOTION.NO_OPMATH)


def _truth(x: Any) -> Any:
    return build.cast(x, "i1") if isinstance(x, Array) else bool(x)


for _name, _sign in {"and": "&", "or": "|", "xor": "^"}.items():
    pointwise(
        f"logical_{_name}.default",
        lambda a, b, sign=_sign: build.map(sign, _truth(a), _truth(b)),
        PROMOTION.NO_OPMATH,
    )
    for _overload in ("Tensor", "Scalar", "Scalar_Tensor"):
        pointwise(f"bitwise_{_name}.{_overload}", lambda a, b, sign=_sign: build.map(sign, a, b))
pointwise("logical_not.default", lambda x: ~_truth(x), PROMOTION.NO_OPMATH)
pointwise("bitwise_not.default", lambda x: ~x)


for _name, _sign in {"left": "<<", "right": ">>"}.items():
    for _overload in ("Tensor", "Tensor_Scalar", "Scalar_Tensor"):
        pointwise(f"bitwise_{_name}_shift.{_overload}", partial(bits.shift, _sign))
    pointwise(f"__{_name[0]}shift__.Tensor", partial(bits.shift, _sign))
    pointwise(f"__{_name[0]}shift__.Scalar", partial(bits.shift, _sign))

for _name in ("isnan", "isinf"):
    pointwise(
        f"{_name}.default",
        lambda x, name=f"is_{_name[2:]}": build.map(name, x) if x.is_float else build.constant(0, "i1", x.shape),
    )


for _name in ("sign", "sgn"):
    pointwise(f"{_name}.default", lambda x: x if _is_bool(x) else build.map("sign", x, keeps_nan=False))


def _sign_bit(x: Array) -> Array:
    if is_unsigned(x.dtype):
        return build.constant(0, "i1", x.shape)
    return build.sign_bit(x) if is_float(x.dtype) else x < 0


pointwise("signbit.default", _sign_bit, PROMOTION.NO_OPMATH)

# Choices


@aten("where.self", pointwise=True)
def where(call: Call, condition: Array, x: Any, y: Any) -> Array:
    """The elements of `x` where the condition is true, those of `y` elsewhere."""
    a, b = promoted(call, (x, y), PROMOTION.NO_OPMATH)
    return build.where(build.cast(condition, "i1"), a, b)


pointwise("maximum.default", lambda a, b: a | b if _is_bool(a, b) else build.maximum(a, b), PROMOTION.NO_OPMATH)
pointwise("minimum.default", lambda a, b: a & b if _is_bool(a, b) else build.minimum(a, b), PROMOTION.NO_OPMATH)


pointwise("fmax.default", lambda a, b: a | b if _is_bool(a, b) else build.map("fmax", a, b), PROMOTION.NO_OPMATH)
pointwise("fmin.default", lambda a, b: a & b if _is_bool(a, b) else build.map("fmin", a, b), PROMOTION.NO_OPMATH)


@aten("clamp.default", "clamp.Tensor", pointwise=True)
def clamp(call: Call, x: Array, min: Any = None, max: Any = None) -> Array:
    """Elements from `min` to `max`; NaN stays NaN, and a bound that is NaN makes all elements NaN."""
    u, low, high = promoted(call, (x, min, max), PROMOTION.DEFAULT)
    return build.clip(u, low, high)


pointwise("nextafter.default", bits.next_after, PROMOTION.NO_OPMATH)
aten("frexp.Tensor", pointwise=True)(lambda call, x: bits.frexp(x))
