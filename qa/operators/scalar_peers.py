"""Functions of elements in PyTorch and ONNX: names of the functions, and of their parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pdojo.math.composites import COMPOSITES
from pdojo.model.element_types import numpy_type
from qa.operators.peers import AbsentError, Call, Node, Operand, Table

_FLAG = {True: "tanh", False: "none"}

_ATEN = {
    **{
        name: name
        for name in """exp exp2 expm1 log log2 log1p sqrt rsqrt sin cos tanh atan erf abs ceil floor trunc maximum
        minimum relu silu mish hardswish hardsigmoid sigmoid fmax fmin reciprocal log10 tan sinh cosh asinh acosh
        atanh asin acos atan2 hypot sign erfc erfinv lgamma digamma i0 gelu elu leaky_relu softplus threshold""".split()
    },
    **{name: f"special_{name}" for name in ("erfcx", "i0e", "i1", "i1e")},
    **{f"{name}_gradient": f"{name}_backward" for name in ("tanh", "sigmoid", "silu", "gelu", "threshold")},
    **{"is_nan": "isnan", "is_inf": "isinf", "sign_bit": "signbit", "log_sigmoid": "log_sigmoid_forward"},
    "ldexp": "ldexp.Tensor",
    **{"clip": "clamp", "remainder": "remainder.Tensor", "round_decimals": "round.decimals", "roundeven": "round"},
    **{"add": "add.Tensor", "subtract": "sub.Tensor", "multiply": "mul.Tensor", "divide": "div.Tensor"},
    **{"pow": "pow.Tensor_Tensor", "copysign": "copysign.Tensor", "fmod": "fmod.Tensor", "where": "where.self"},
    **{"equal": "eq.Tensor", "not_equal": "ne.Tensor", "less": "lt.Tensor", "less_equal": "le.Tensor"},
    **{"greater": "gt.Tensor", "greater_equal": "ge.Tensor"},
    **{f"bitwise_{name}": f"bitwise_{name}.Tensor" for name in ("and", "or", "xor")},
    **{f"{side}_shift": f"bitwise_{side}_shift.Tensor" for side in ("left", "right")},
}
"""Operators of ATen, with their overloads if these are not the default."""
_ORDERED: Mapping[str, str] = {
    **{"elu": "alpha scale input_scale", "leaky_relu": "slope", "softplus": "beta threshold", "clip": "lower upper"},
    **{"threshold": "bound value", "threshold_gradient": "bound"},
}
"""Parameters that are arguments of ATen's operators in this order."""
_LIMITS = {"hardswish": (0, 5e37), "remainder": (1e-37, 1e38)}
"""The least and the greatest sizes of operands for which PyTorch's own formulas do not overflow."""
_NODES = {
    **{
        name: name.capitalize()
        for name in """relu sigmoid mish softplus softsign reciprocal tan sinh cosh asinh acosh atanh asin acos exp log
        sqrt sin cos tanh atan erf abs ceil floor pow equal less greater where sign""".split()
    },
    **{"add": "Add", "subtract": "Sub", "multiply": "Mul", "divide": "Div", "maximum": "Max", "minimum": "Min"},
    **{"roundeven": "Round", "less_equal": "LessOrEqual", "greater_equal": "GreaterOrEqual", "fmod": "Mod"},
    **{f"bitwise_{name.lower()}": f"Bitwise{name}" for name in ("And", "Or", "Xor")},
    **{"left_shift": "BitShift", "right_shift": "BitShift"},
    **{"elu": "Elu", "selu": "Selu", "celu": "Celu", "gelu": "Gelu", "silu": "Swish", "shrink": "Shrink"},
    "swiglu": "SwiGLU",
    **{"leaky_relu": "LeakyRelu", "hardsigmoid": "HardSigmoid", "hardswish": "HardSwish"},
    **{"threshold": "ThresholdedRelu", "is_nan": "IsNaN", "is_inf": "IsInf"},
}
_ATTRIBUTES: Mapping[str, Mapping[str, str]] = {
    **{"leaky_relu": {"slope": "alpha"}, "elu": {"alpha": "alpha"}, "celu": {"alpha": "alpha"}},
    **{"selu": {"alpha": "alpha", "scale": "gamma"}, "silu": {"slope": "alpha"}, "threshold": {"bound": "alpha"}},
    **{"hardsigmoid": {"alpha": "alpha", "beta": "beta"}, "shrink": {"bias": "bias", "bound": "lambd"}},
    "swiglu": {"slope": "alpha"},
    "is_inf": {"positive": "detect_positive", "negative": "detect_negative"},
}
"""Attributes of ONNX's nodes by parameters."""
_SET: Mapping[str, Mapping[str, Any]] = {
    **{"fmod": {"fmod": 1}, "left_shift": {"direction": "LEFT"}, "right_shift": {"direction": "RIGHT"}}
}
"""Attributes that have no parameter."""
_FIXED = {
    "PyTorch": {"remainder": {"zero_of_divisor": False}, "sign": {"keeps_nan": False}},
    "ONNX": {"threshold": {"keeps_nan": False}},
}
"""The values of parameters that peers lack, if they are not the defaults."""


def _checked(side: str, name: str, named: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """All parameters. Raises AbsentError for a value of a parameter that the peer has no name for."""
    defaults: Mapping[str, Any] = COMPOSITES[name].parameters if name in COMPOSITES else {}
    values = {**defaults, **given}
    for parameter, value in values.items():
        fixed = _FIXED[side].get(name, {}).get(parameter, defaults[parameter])
        if parameter not in named and value != fixed:
            raise AbsentError(f"{side} has no {parameter} of {value}")
    return values


def _call(name: str) -> Any:
    operator = _ATEN[name] if "." in _ATEN[name] else f"{_ATEN[name]}.default"
    order = _ORDERED.get(name, "").split()

    def call(*operands: Operand, **given: Any) -> Call:
        named = {**dict.fromkeys(order), **dict.fromkeys(("approximate", "decimals"))}
        values = _checked("PyTorch", name, named, given)
        if name == "softplus" and values["threshold"] is None:
            raise AbsentError("PyTorch has a threshold")
        if name == "clip" and values["lower"] is None and values["upper"] is None:
            raise AbsentError("PyTorch needs a bound")
        if name in _LIMITS and not all(np.all(_fits(each.values, *_LIMITS[name])) for each in operands):
            raise AbsentError("PyTorch overflows on the way")
        keywords = {"approximate": _FLAG[values["approximate"]]} if "approximate" in values else {}
        keywords |= {"decimals": values["decimals"]} if "decimals" in values else {}
        read = (0,) if name == "log_sigmoid" else None
        return Call(operator, [*operands, *(values[each] for each in order)], keywords, read)

    return call


def _fits(values: NDArray[Any], low: float, high: float) -> NDArray[Any]:
    """Which numbers are 0, of a size between the bounds, or not finite."""
    return (values == 0) | ~np.isfinite(values) | ((abs(values) >= low) & (abs(values) <= high))


def _quotient(mode: str) -> Any:
    def quotient(x: Operand, y: Operand) -> Call:
        return Call("div.Tensor_mode", [x, y], {"rounding_mode": mode})

    return quotient


def _node(name: str) -> Any:
    attributes = _ATTRIBUTES.get(name, {})

    def node(*operands: Operand, **given: Any) -> Node:
        values = _checked("ONNX", name, {**attributes, "approximate": ""}, given)
        made = {own: _number(values[parameter]) for parameter, own in attributes.items()}
        made |= {"approximate": _FLAG[values["approximate"]]} if "approximate" in values else {}
        return Node(_NODES[name], operands, {**made, **_SET.get(name, {})}, opset=28 if name == "swiglu" else 24)

    return node


def _number(value: float) -> float:
    """An attribute: truth values are integers, and all other parameters are floating-point numbers."""
    return int(value) if isinstance(value, bool) else float(value)


def calls() -> Table:
    """Calls of ATen by the names of composites."""
    found = {name: [_call(name)] for name in _ATEN}
    return {**found, **{f"{mode}_divide": [_quotient(mode)] for mode in ("floor", "trunc")}}


def nodes() -> Table:
    """Nodes of ONNX by the names of composites."""
    return {**{name: [_node(name)] for name in _NODES}, "clip": [_clip]}


def _clip(x: Operand, *, lower: float | None = None, upper: float | None = None) -> Node:
    bounds = [None if each is None else np.array(each).astype(numpy_type(x.dtype)) for each in (lower, upper)]
    return Node("Clip", [x, *bounds], opset=13)
