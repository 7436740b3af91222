"""xDSL's dialect `linalg`, completed: named contractions, convolutions, poolings and elementwise operations of MLIR.

xDSL 0.74 has a few of each. Tools of pdojo register `LINALG_COMPLETE`; stock `xdsl-opt` knows xDSL's operations only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import ClassVar, TypeAlias

from xdsl.builder import Builder
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import (
    AffineMapAttr,
    AnyFloat,
    ArrayAttr,
    DenseIntElementsAttr,
    FloatAttr,
    ShapedType,
)
from xdsl.dialects.linalg import Linalg
from xdsl.dialects.linalg.abstract_ops import NamedOperation
from xdsl.dialects.linalg.attrs import IteratorTypeAttr
from xdsl.dialects.linalg.ops import YieldOp
from xdsl.ir import Attribute, BlockArgument, Dialect, Operation, Region, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr, AffineMap
from xdsl.irdl import irdl_op_definition, opt_prop_def
from xdsl.utils.exceptions import VerifyException

from pdojo.dialect.narrowing import is_integer_type

Maps: TypeAlias = Callable[[NamedOperation], Sequence[AffineMap]]
Maker: TypeAlias = Callable[..., Operation]
Body: TypeAlias = Callable[..., SSAValue | Operation]
"""The new element of the output, computed from the elements of the inputs and the previous element."""


class _CompletedOp(NamedOperation):
    """A named operation with its maps and its body; the body is written only in the generic form."""

    PRINT_ATTRS_IN_FRONT: ClassVar[bool] = True
    MAPS: ClassVar[Maps]
    COMBINE: ClassVar[Body]
    INPUTS: ClassVar[int]

    strides = opt_prop_def(DenseIntElementsAttr)
    dilations = opt_prop_def(DenseIntElementsAttr)
    indexing_maps = opt_prop_def(ArrayAttr[AffineMapAttr])

    @classmethod
    def get_hidden_region(cls, inputs: Sequence[SSAValue], outputs: Sequence[SSAValue]) -> Region:
        """The body of an operation without one in its text. Raises ValueError for operands that it does not take."""
        if (len(inputs), len(outputs)) != (cls.INPUTS, 1):
            raise ValueError(f"'{cls.name}' has {len(inputs)} inputs and {len(outputs)} outputs")

        @Builder.implicit_region(cls.body_arg_types((*inputs, *outputs)))
        def hidden_region(args: tuple[BlockArgument, ...]) -> None:
            YieldOp(SSAValue.get(cls.COMBINE(*args)))

        return hidden_region

    def get_default_indexing_maps(self) -> Sequence[AffineMap]:
        """The index of an element of each operand over the iterations."""
        if self.indexing_maps is not None:
            return [attribute.data for attribute in self.indexing_maps.data]
        return type(self).MAPS(self)

    def get_iterator_types(self) -> ArrayAttr[IteratorTypeAttr]:
        """Parallel dimensions index the output; the others are reduced."""
        *_, output = self.get_default_indexing_maps()
        parallel, reduction = IteratorTypeAttr.parallel(), IteratorTypeAttr.reduction()
        return ArrayAttr(parallel if d in output.used_dims() else reduction for d in range(output.num_dims))


def _named(name: str, maps: Maps, combine: Body, inputs: int = 2) -> type[Operation]:
    methods = {"MAPS": staticmethod(maps), "COMBINE": staticmethod(combine)}
    # xDSL takes constants with annotations only.
    members = {"name": f"linalg.{name}", "INPUTS": inputs, "__annotations__": {"INPUTS": ClassVar[int]}, **methods}
    return irdl_op_definition(type(name, (_CompletedOp,), members))


def _letters(subscripts: str) -> Maps:
    """The maps of subscripts like `mk,kn->mn`; iterations are the letters of the output, then the others."""
    inputs, _, output = subscripts.partition("->")
    words = [*inputs.split(","), output]
    order = "".join(dict.fromkeys(output + inputs.replace(",", "")))
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
        assert isinstance(op, _CompletedOp)
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


def _sum_of_products(a: SSAValue, b: SSAValue, total: SSAValue) -> Operation:
    left, right = _cast(a, total.type), _cast(b, total.type)
    if isinstance(total.type, AnyFloat):
        return arith.AddfOp(total, arith.MulfOp(left, right))
    return arith.AddiOp(total, arith.MuliOp(left, right))


def _maker(of_floats: Maker | None, of_integers: Maker | None, output: SSAValue) -> Maker:
    operation = of_floats if isinstance(output.type, AnyFloat) else of_integers
    if operation is None:
        raise ValueError(f"there is no such function of {output.type}")
    return operation


def _pooled(of_floats: Maker | None, of_integers: Maker) -> Body:
    def combine(a: SSAValue, window: SSAValue, total: SSAValue) -> Operation:
        # Unsigned numbers, of which there are no floats, are widened as such.
        return _maker(of_floats, of_integers, total)(total, _cast(a, total.type, unsigned=of_floats is None))

    return combine


def _pointwise(of_floats: Maker | None, of_integers: Maker | None = None) -> Body:
    def combine(*elements: SSAValue) -> Operation:
        *operands, previous = elements
        operation = _maker(of_floats, of_integers, previous)
        return operation(*[_cast(operand, previous.type) for operand in operands])

    return combine


def _square(a: SSAValue, previous: SSAValue) -> Operation:
    return arith.MulfOp(a, a) if isinstance(a.type, AnyFloat) else arith.MuliOp(a, a)


def _reciprocal(a: SSAValue, previous: SSAValue) -> Operation:
    if not isinstance(a.type, AnyFloat):
        raise ValueError(f"there is no reciprocal of {a.type}")  # noqa: TRY004  # xDSL's parser reports ValueError
    return arith.DivfOp(arith.ConstantOp(FloatAttr(1.0, a.type)), a)


_CONTRACTIONS = {
    "batch_matmul": "bmk,bkn->bmn",
    "batch_matvec": "bmk,bk->bm",
    "batch_vecmat": "bk,bkn->bn",
    "batch_reduce_matmul": "bmk,bkn->mn",
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


def _operations() -> Iterator[type[Operation]]:
    for name, subscripts in _CONTRACTIONS.items():
        yield _named(name, _letters(subscripts), _sum_of_products)
    for axes in ("w", "hw", "dhw"):
        yield _named(f"conv_{len(axes)}d", _windows(axes, axes, axes), _sum_of_products)
    for name in _CONVOLUTIONS.split():
        *_, image, window = name.split("_")
        output = image + "m" * window.endswith("m") if name.startswith("depthwise") else image.replace("c", "f")
        yield _named(name, _windows(image, window, output), _sum_of_products)
    for image, kinds in _KINDS.items():
        window = "".join(x for x in image if x in "dhw")
        for kind in kinds:
            yield _named(f"pooling_{image}_{kind}", _windows(image, window, image), _POOLINGS[kind])
    for name, combine in _POINTWISE.items():
        yield _named(name, _identity, combine, inputs=2 if name in ("div", "div_unsigned", "powf") else 1)


def _completed() -> dict[str, type[Operation]]:
    # xDSL's `pooling_nchw_max` takes the greatest of elements and window, and forgets the previous element.
    theirs = {op.name: op for op in Linalg.operations if op.name != "linalg.pooling_nchw_max"}
    return {op.name: op for op in _operations()} | theirs


LINALG_COMPLETE = Dialect("linalg", [*_completed().values()], [*Linalg.attributes])
"""The dialect of xDSL with the operations that it lacks."""
