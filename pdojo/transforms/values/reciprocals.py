"""Reciprocals: a division becomes a product with the divisor's reciprocal, which many divisions share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Self

from pdojo.transforms.api import (
    Access,
    Constant,
    Expr,
    Input,
    Leaf,
    Move,
    NotationError,
    Numerics,
    PatternRewriter,
    Program,
    Reason,
    Transformation,
    build_op,
    chain_ops,
    describe_access,
    locate,
    parse_index,
    sentence,
)
from pdojo.transforms.values.inlining import index_text, input_reason, precomputed
from pdojo.transforms.values.recomputation import Recomputation, recomputation, same_value

_DIVIDE = "arith.divf"
_MULTIPLY = "arith.mulf"


def _reciprocal_of(program: Program, site: Leaf, element: Access) -> Input | Reason:
    """The divisor whose reciprocal `element`, read at the site, holds; a Reason if that is not certain."""
    found = recomputation(program, site, element)
    if isinstance(found, Reason):
        return found
    if (value := divisor(found)) is not None:
        return value
    return Reason(f"'{locate(program, found.producer)}', which writes {describe_access(element)}, divides no 1")


def divisor(computed: Recomputation) -> Input | None:
    """The value whose reciprocal is computed; None if the computation is another one."""
    match computed.producer.function, computed.inputs:
        case "arith.divf", (Constant(1), value):
            return value
        case _:
            return None


def _with_function(site: Leaf, function: str, inputs: tuple[Input, Input], rewriter: PatternRewriter) -> None:
    """Give the statement another function of two inputs; hints of remaining accesses stay."""
    hints = [site.output.hints, *(i.hints for i in inputs if isinstance(i, Access))]
    rewriter.replace(
        site.op,
        build_op(
            (site.output.array, site.output.index),
            inputs,
            chain_ops(site),
            function=function,
            accumulate=site.accumulate,
            hints=hints,
            identifier=site.id,
        ),
    )


@dataclass(frozen=True)
class Reciprocal(Transformation[Leaf]):
    """Multiply by a reciprocal that an earlier statement computed, instead of dividing.

    `reciprocal@y{array=t index="{0}"}`:

    N t[{0}] = 1 / s[{0}]                  N t[{0}] = 1 / s[{0}]
    N M y[{0},{1}] = x[{1}] / s[{0}]  -->  N M y[{0},{1}] = x[{1}] * t[{0}]

    `insert_op` can add the statement that computes the reciprocal. Rounds twice, so kernels have to permit
    `reciprocal`; the reciprocal of a very small divisor overflows to infinity.

    Legal iff t[e(j)] was last written by a statement 1 / s, and s is the divisor of iteration j, not written since: the
    conditions of `inline_op`.
    """

    name: ClassVar[str] = "reciprocal"
    keeps_statements: ClassVar = False
    exchanges: ClassVar = "values"
    site: ClassVar = Leaf
    array: str
    index: str = ""
    input: int = 1
    """Position of the reciprocal in the product: 0 or 1."""

    @classmethod
    def candidates(cls, program: Program) -> Iterator[tuple[Leaf, Self]]:
        """Divisions, with earlier reciprocals of elements of the divisor's array."""
        for leaf in program.nest.leaves:
            if leaf.function != _DIVIDE:
                continue
            for producer in program.nest.leaves[: leaf.order]:
                if producer.function != _DIVIDE or producer.inputs[0] != Constant(1, producer.output.array.dtype):
                    continue
                element = precomputed(producer, leaf, (leaf.inputs[1],), producer.inputs[1:])
                if element is not None:
                    yield leaf, cls(element.array.name, index_text(element.index))

    def check(self, program: Program, site: Leaf) -> Reason | None:
        """Requires a division, and an element that holds the reciprocal of its divisor."""
        if site.function != _DIVIDE:
            return Reason("the op is no floating-point division")
        if self.input not in (0, 1):
            return Reason("'input' is 0 or 1")
        if (reason := input_reason(site, 1)) is not None:
            return reason
        array = program.nest.arrays.get(self.array)
        if array is None:
            return Reason(f"there is no array '{self.array}'")
        try:
            element = self._element(program, site)
        except NotationError as error:
            return Reason(f"'index' cannot be read: {sentence(error)}")
        if len(element.index) != len(array.shape):
            return Reason(
                f"'{array.name}' has {len(array.shape)} dimensions, the index '{self.index}' has {len(element.index)}"
            )
        value = _reciprocal_of(program, site, element)
        if isinstance(value, Reason):
            return value
        if not same_value(site.inputs[1], value):
            return Reason(f"{describe_access(element)} is not one over the divisor")
        return None

    def _element(self, program: Program, site: Leaf) -> Access:
        names = program.nest.index_names
        index: tuple[Expr, ...] = parse_index(self.index, site.extents, names) if self.index else ()
        return Access(program.nest.arrays[self.array], index)

    def numerics(self, program: Program, site: Leaf) -> Numerics:  # the same everywhere
        """Reciprocal rounding: the reciprocal is rounded, and so is the product."""
        return Numerics.RECIPROCAL

    def rewrite(self, program: Program, site: Leaf, rewriter: PatternRewriter) -> None:
        """Set another function and another operand."""
        factor, reciprocal = site.inputs[0], self._element(program, site)
        _with_function(site, _MULTIPLY, (factor, reciprocal) if self.input else (reciprocal, factor), rewriter)

    def inverse(self, program: Program, site: Leaf) -> Move:
        """Divide again."""
        return Divide(self.input).as_move(f"%{site.id}")


@dataclass(frozen=True)
class Divide(Transformation[Leaf]):
    """Divide by a value instead of multiplying by its reciprocal; `input` is the position of the reciprocal, 0 or 1.

    `divide@y{input=1}`:

    N t[{0}] = 1 / s[{0}]                  N t[{0}] = 1 / s[{0}]
    N M y[{0},{1}] = x[{1}] * t[{0}]  -->  N M y[{0},{1}] = x[{1}] / s[{0}]

    Legal iff the factor was last written by a statement 1 / s whose divisor was not written since.
    """

    name: ClassVar[str] = "divide"
    undoes: ClassVar = True
    keeps_statements: ClassVar = False
    site: ClassVar = Leaf
    input: int

    @classmethod
    def candidates(cls, program: Program) -> Iterator[tuple[Leaf, Self]]:
        """Products of elements of arrays that hold reciprocals."""
        for leaf in program.nest.leaves:
            if leaf.function != _MULTIPLY:
                continue
            for number, value in enumerate(leaf.inputs):
                writers = program.nest.writers[value.array.name] if isinstance(value, Access) else []
                if any(w.function == _DIVIDE for w in writers):
                    yield leaf, cls(number)

    def check(self, program: Program, site: Leaf) -> Reason | None:
        """Requires a product that rounds, with a reciprocal as a factor."""
        if site.function != _MULTIPLY or site.contracted:
            return Reason("the op is no floating-point product that is rounded")
        if (reason := input_reason(site, self.input)) is not None:
            return reason
        factor = site.inputs[self.input]
        if not isinstance(factor, Access):
            return Reason("the input is no element of an array")
        value = _reciprocal_of(program, site, factor)
        if isinstance(value, Reason):
            return value
        return None

    def numerics(self, program: Program, site: Leaf) -> Numerics:  # the same everywhere
        """The class of `reciprocal`."""
        return Numerics.RECIPROCAL

    def rewrite(self, program: Program, site: Leaf, rewriter: PatternRewriter) -> None:
        """Set another function and another operand."""
        factor = site.inputs[self.input]
        assert isinstance(factor, Access)
        value = _reciprocal_of(program, site, factor)
        assert not isinstance(value, Reason)
        _with_function(site, _DIVIDE, (site.inputs[1 - self.input], value), rewriter)

    def inverse(self, program: Program, site: Leaf) -> Move:
        """Multiply by the reciprocal again."""
        factor = site.inputs[self.input]
        assert isinstance(factor, Access)
        return Reciprocal(factor.array.name, index_text(factor.index), self.input).as_move(f"%{site.id}")
