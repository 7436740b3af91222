"""xDSL's dialect `linalg`, completed: named contractions, convolutions, poolings and elementwise operations of MLIR.

xDSL 0.74 has a few of each. Tools of pdojo register `LINALG_COMPLETE`; stock `xdsl-opt` knows xDSL's operations only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import AnyFloat, DenseIntElementsAttr, FloatAttr, ShapedType
from xdsl.dialects.linalg import Linalg
from xdsl.dialects.linalg.abstract_ops import NamedOperation
from xdsl.ir import Attribute, Dialect, Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr, AffineMap
from xdsl.utils.exceptions import VerifyException

from pdojo.dialect.narrowing import is_integer_type
from pdojo.frontends.linalg.kinds import ElementwiseKindAttr, TypeFn, TypeFnAttr
from pdojo.frontends.linalg.mapped import CompletedGenericOp, CompletedReduceOp, MapOp
from pdojo.frontends.linalg.named import Body, BodyOf, CompletedOp, Maps, operation

Maker: TypeAlias = Callable[..., Operation]


def _letters(subscripts: str, order: str = "") -> Maps:
    """The maps of subscripts like `mk,kn->mn`; iterations are the letters of the output, then the others."""
    inputs, _, output = subscripts.partition("->")
    words = [*inputs.split(","), output]
    order = order or "".join(dict.fromkeys(output + inputs.replace(",", "")))
    maps = [AffineMap(len(order), 0, tuple(AffineDimExpr(order.index(x)) for x in word)) for word in words]
    return lambda op: maps


def _windows(image: str, window: str, output: str) -> Maps:
    """The maps of a convolution or pooling: letters of dimensions, of which `d`, `h`, `w` are spatial."""
    spatial = [x for x in image if x in "dhw"]
    taps = [x.upper() for x in spatial]
    order = [*output, *taps, *(x for x in image if x not in output)]

    def at(key: str) -> AffineExpr:
        return AffineDimExpr(order.index(key))

    def maps(op: NamedOperation) -> Sequence[AffineMap]:
        assert isinstance(op, CompletedOp)
        strides, dilations = _numbers(op.strides, len(spatial)), _numbers(op.dilations, len(spatial))
        places = {
            x: at(x) * stride + at(tap) * dilation
            for x, tap, stride, dilation in zip(spatial, taps, strides, dilations, strict=True)
        }
        read = [places.get(x) or at(x) for x in image]
        weights = [at(x.upper() if x in spatial else x) for x in window]
        rows = [read, weights, [at(x) for x in output]]
        return [AffineMap(len(order), 0, tuple(row)) for row in rows]

    return maps


def _numbers(attribute: DenseIntElementsAttr | None, count: int) -> Sequence[int]:
    found = [1] * count if attribute is None else [int(number) for number in attribute.get_values()]
    if len(found) != count:
        raise VerifyException(f"there are {len(found)} strides or dilations for {count} spatial dimensions")
    return found


def _with_zero_points(maps: Maps) -> Maps:
    """The maps of an operation with a zero point for each of its two factors."""

    def found(op: NamedOperation) -> Sequence[AffineMap]:
        a, b, output = maps(op)
        scalar = AffineMap(output.num_dims, 0, ())
        return [a, b, scalar, scalar, output]

    return found


def _identity(op: NamedOperation) -> Sequence[AffineMap]:
    output = op.outputs[0].type
    assert isinstance(output, ShapedType)
    return [AffineMap.identity(output.get_num_dims())] * len(op.operands)


def _cast(value: SSAValue, target: Attribute, *, unsigned: bool = False) -> SSAValue:
    """The element in the type in which the output accumulates, as MLIR's named operations cast it."""
    source = value.type
    if source == target:
        return value
    if isinstance(source, AnyFloat) and isinstance(target, AnyFloat):
        cast = arith.ExtFOp if source.bitwidth < target.bitwidth else arith.TruncFOp
        return cast(value, target).result
    if isinstance(target, AnyFloat):
        return (arith.UIToFPOp if unsigned else arith.SIToFPOp)(value, target).result
    assert is_integer_type(target)
    if isinstance(source, AnyFloat):
        return (arith.FPToUIOp if unsigned else arith.FPToSIOp)(value, target).result
    assert is_integer_type(source)
    widened = arith.ExtUIOp if unsigned else arith.ExtSIOp
    return (widened if source.bitwidth < target.bitwidth else arith.TruncIOp)(value, target).result


def _sum_of_products(properties: Mapping[str, Attribute]) -> tuple[Body, int]:
    unsigned = properties.get("cast") == TypeFnAttr(TypeFn.CAST_UNSIGNED)

    def combine(a: SSAValue, b: SSAValue, total: SSAValue) -> Operation:
        factors = [_cast(value, total.type, unsigned=unsigned) for value in (a, b)]
        return _added(total, _multiplied(*factors))

    return combine, 2


def _quantized(properties: Mapping[str, Attribute]) -> tuple[Body, int]:
    """Products of differences from zero points, which are scalars behind the factors."""

    def combine(a: SSAValue, b: SSAValue, of_a: SSAValue, of_b: SSAValue, total: SSAValue) -> Operation:
        wide = [_cast(value, total.type) for value in (a, of_a, b, of_b)]
        subtract = _maker(arith.SubfOp, arith.SubiOp, total)
        return _added(total, _multiplied(subtract(*wide[:2]).results[0], subtract(*wide[2:]).results[0]))

    return combine, 4


def _added(a: SSAValue, b: SSAValue) -> Operation:
    return _maker(arith.AddfOp, arith.AddiOp, a)(a, b)


def _multiplied(a: SSAValue, b: SSAValue) -> SSAValue:
    return _maker(arith.MulfOp, arith.MuliOp, a)(a, b).results[0]


def _maker(of_floats: Maker | None, of_integers: Maker | None, output: SSAValue) -> Maker:
    found = of_floats if isinstance(output.type, AnyFloat) else of_integers
    if found is None:
        raise ValueError(f"there is no such function of {output.type}")
    return found


def _pooled(of_floats: Maker | None, of_integers: Maker) -> Body:
    def combine(a: SSAValue, window: SSAValue, total: SSAValue) -> Operation:
        # Unsigned numbers, of which there are no floats, are widened as such.
        return _maker(of_floats, of_integers, total)(total, _cast(a, total.type, unsigned=of_floats is None))

    return combine


def _pointwise(of_floats: Maker | None, of_integers: Maker | None = None) -> Body:
    def combine(*elements: SSAValue) -> Operation:
        *operands, previous = elements
        make = _maker(of_floats, of_integers, previous)
        return make(*[_cast(operand, previous.type) for operand in operands])

    return combine


def _selected(condition: SSAValue, a: SSAValue, b: SSAValue, previous: SSAValue) -> Operation:
    return arith.SelectOp(condition, a, b)


def _copied(properties: Mapping[str, Attribute]) -> tuple[Body, int]:
    unsigned = properties.get("cast") == TypeFnAttr(TypeFn.CAST_UNSIGNED)

    def combine(a: SSAValue, previous: SSAValue) -> SSAValue:
        return _cast(a, previous.type, unsigned=unsigned)

    return combine, 1


def _square(a: SSAValue, previous: SSAValue) -> Operation:
    return arith.MulfOp(a, a) if isinstance(a.type, AnyFloat) else arith.MuliOp(a, a)


def _reciprocal(a: SSAValue, previous: SSAValue) -> Operation:
    if not isinstance(a.type, AnyFloat):
        raise ValueError(f"there is no reciprocal of {a.type}")  # noqa: TRY004  # xDSL's parser reports ValueError
    return arith.DivfOp(arith.ConstantOp(FloatAttr(1.0, a.type)), a)


_MAPPED = {
    "matmul": _letters("mk,kn->mn"),
    "batch_matmul": _letters("bmk,bkn->bmn"),
    "batch_reduce_matmul": _letters("bmk,bkn->mn", order="bmnk"),
}
"""Contractions whose maps a program may choose."""
_CONTRACTIONS = {
    "batch_matvec": "bmk,bk->bm",
    "batch_vecmat": "bk,bkn->bn",
    "dot": "k,k->",
    "matvec": "mk,k->m",
    "vecmat": "k,kn->n",
    "matmul_transpose_a": "km,kn->mn",
    "matmul_transpose_b": "mk,nk->mn",
    "batch_matmul_transpose_a": "bkm,bkn->bmn",
    "batch_matmul_transpose_b": "bmk,bnk->bmn",
    "mmt4d": "mkab,nkcb->mnac",
    "batch_mmt4d": "xmkab,xnkcb->xmnac",
}
_CONVOLUTIONS = """
conv_1d_nwc_wcf conv_1d_ncw_fcw conv_2d_nhwc_hwcf conv_2d_nhwc_fhwc conv_2d_nchw_fchw conv_2d_ngchw_fgchw
conv_2d_ngchw_gfchw conv_2d_nhwgc_gfhwc conv_3d_ndhwc_dhwcf conv_3d_ncdhw_fcdhw depthwise_conv_1d_nwc_wc
depthwise_conv_1d_ncw_cw depthwise_conv_1d_nwc_wcm depthwise_conv_2d_nhwc_hwc depthwise_conv_2d_nchw_chw
depthwise_conv_2d_nhwc_hwcm depthwise_conv_3d_ndhwc_dhwc depthwise_conv_3d_ncdhw_cdhw depthwise_conv_3d_ndhwc_dhwcm
"""
_QUANTIZED = """
conv_2d_nhwc_hwcf conv_2d_nhwc_fhwc conv_2d_nchw_fchw conv_2d_ngchw_gfchw conv_2d_nhwgc_gfhwc conv_3d_ndhwc_dhwcf
depthwise_conv_2d_nhwc_hwc depthwise_conv_2d_nhwc_hwcm
"""
"""Convolutions that MLIR has with zero points, too: with `_q` at the end."""
_POOLINGS: dict[str, Body] = {
    "sum": _pooled(arith.AddfOp, arith.AddiOp),
    "max": _pooled(arith.MaximumfOp, arith.MaxSIOp),
    "min": _pooled(arith.MinimumfOp, arith.MinSIOp),
    "max_unsigned": _pooled(None, arith.MaxUIOp),
    "min_unsigned": _pooled(None, arith.MinUIOp),
}
_KINDS = {
    **dict.fromkeys(("nwc", "nhwc"), tuple(_POOLINGS)),
    **dict.fromkeys(("ncw", "nchw"), ("sum", "max")),
    "ndhwc": ("sum", "max", "min"),
}
"""The poolings that MLIR has of each layout of images."""
_POINTWISE: dict[str, Body] = {
    "abs": _pointwise(math.AbsFOp),
    "ceil": _pointwise(math.CeilOp),
    "div": _pointwise(arith.DivfOp, arith.DivSIOp),
    "div_unsigned": _pointwise(None, arith.DivUIOp),
    "erf": _pointwise(math.ErfOp),
    "floor": _pointwise(math.FloorOp),
    "negf": _pointwise(arith.NegfOp),
    "powf": _pointwise(math.PowFOp),
    "reciprocal": _reciprocal,
    "round": _pointwise(math.RoundOp),
    "rsqrt": _pointwise(math.RsqrtOp),
    "square": _square,
    "tanh": _pointwise(math.TanhOp),
}


_FUNCTIONS: dict[str, Body] = _POINTWISE | {
    "add": _pointwise(arith.AddfOp, arith.AddiOp),
    "exp": _pointwise(math.ExpOp),
    "log": _pointwise(math.LogOp),
    "max_signed": _pointwise(arith.MaximumfOp, arith.MaxSIOp),
    "max_unsigned": _pointwise(None, arith.MaxUIOp),
    "min_signed": _pointwise(arith.MinimumfOp, arith.MinSIOp),
    "min_unsigned": _pointwise(None, arith.MinUIOp),
    "mul": _pointwise(arith.MulfOp, arith.MuliOp),
    "select": _selected,
    "sqrt": _pointwise(math.SqrtOp),
    "sub": _pointwise(arith.SubfOp, arith.SubiOp),
}
"""The functions of `linalg.elementwise`."""
_BINARY = frozenset("add div div_unsigned max_signed max_unsigned min_signed min_unsigned mul powf sub".split())


def _elementwise(properties: Mapping[str, Attribute]) -> tuple[Body, int]:
    kind = properties.get("kind")
    name = kind.data if isinstance(kind, ElementwiseKindAttr) else ""
    if not name:
        raise ValueError("'linalg.elementwise' needs a kind, such as kind = #linalg.elementwise_kind<add>")
    return _FUNCTIONS[name], _count(name)


def _count(function: str) -> int:
    return 3 if function == "select" else 2 if function in _BINARY else 1


def _of(combine: Body, inputs: int = 2) -> BodyOf:
    return lambda properties: (combine, inputs)


def _all_written(op: NamedOperation, maps: Sequence[AffineMap]) -> None:
    """Every iteration has an element of the output."""
    missing = {*range(maps[-1].num_dims)} - maps[-1].used_dims()
    if missing:
        raise VerifyException(
            f"indexing map {len(maps) - 1}, {maps[-1]}: the output lacks d{min(missing)}, and nothing is summed"
        )


def _needed(op: NamedOperation) -> Sequence[AffineMap]:
    raise VerifyException(f"'{op.name}' needs indexing_maps = [...]")


def _contracts(op: NamedOperation, maps: Sequence[AffineMap]) -> None:
    """Every iteration indexes the output or both factors, and some iteration indexes both factors alone."""
    left, right, output = (found.used_dims() for found in maps)
    single = {*range(maps[0].num_dims)} - output - (left & right)
    if single:
        raise VerifyException(f"iteration d{min(single)} indexes neither the output nor both inputs")
    if not left & right - output:
        raise VerifyException("no iteration is summed: each indexes the output")


def _operations() -> Iterator[type[Operation]]:
    for name, maps in _MAPPED.items():
        yield operation(name, maps, _sum_of_products, leading=["indexing_maps"], taken=["cast"])
    for name, subscripts in _CONTRACTIONS.items():
        yield operation(name, _letters(subscripts), _sum_of_products)
    yield operation("contract", _needed, _sum_of_products, check=_contracts, leading=["indexing_maps"], taken=["cast"])
    for name in ("matmul", "batch_matmul"):
        yield operation(f"quantized_{name}", _with_zero_points(_MAPPED[name]), _quantized)
    for axes in ("w", "hw", "dhw"):
        yield operation(f"conv_{len(axes)}d", _windows(axes, axes, axes), _sum_of_products)
    for name in _CONVOLUTIONS.split():
        *_, image, window = name.split("_")
        output = image + "m" * window.endswith("m") if name.startswith("depthwise") else image.replace("c", "f")
        yield operation(name, _windows(image, window, output), _sum_of_products)
        if name in _QUANTIZED.split():
            yield operation(f"{name}_q", _with_zero_points(_windows(image, window, output)), _quantized)
    for image, kinds in _KINDS.items():
        window = "".join(x for x in image if x in "dhw")
        for kind in kinds:
            yield operation(f"pooling_{image}_{kind}", _windows(image, window, image), _of(_POOLINGS[kind]))
    for name, combine in _POINTWISE.items():
        yield operation(name, _identity, _of(combine, _count(name)))
    yield operation("elementwise", _identity, _elementwise, check=_all_written, leading=["kind", "indexing_maps"])
    yield operation("copy", _identity, _copied, taken=["cast"])
    yield from (CompletedGenericOp, CompletedReduceOp, MapOp)


_THEIRS = frozenset("add exp fill log max min mul select sqrt sub broadcast index transpose yield".split())
"""Operations of xDSL that stay. Its other ones cast nothing, need what MLIR leaves out, or mean something else."""


def _completed() -> dict[str, type[Operation]]:
    theirs = {op.name: op for op in Linalg.operations if op.name.removeprefix("linalg.") in _THEIRS}
    return {op.name: op for op in _operations()} | theirs


LINALG_COMPLETE = Dialect("linalg", [*_completed().values()], [*Linalg.attributes, ElementwiseKindAttr, TypeFnAttr])
"""The dialect of xDSL with the operations that it lacks."""
