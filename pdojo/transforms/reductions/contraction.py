"""Contraction: a product and the sum that uses it become one operation that rounds once, and back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Self

from pdojo.math.functions import FUSED
from pdojo.transforms.api import (
    Access,
    Array,
    DictionaryAttr,
    Expr,
    Input,
    InsertPoint,
    Leaf,
    Mapping,
    Memory,
    Move,
    Node,
    Numerics,
    PatternRewriter,
    Program,
    Promises,
    Reason,
    ScopeOp,
    StatementOp,
    Transformation,
    accesses_of,
    bounds_within,
    build_op,
    chain_ops,
    describe_scope,
    fresh_id,
    named_around,
    parse_index,
    racing_scope,
    slot_index,
)

_DIFFERENCES = ("math.fms", "math.fnma")
"""The differences whose first, and second, operand is a product."""


@dataclass(frozen=True)
class Contract(Transformation[Leaf]):
    """Fuse a product and the sum that uses it into one operation that rounds once.

    `contract@z`:

    t[0] = x[0] * y[0]
    z[0] += t[0]        -->  z[0] fma= x[0] * y[0]

    Also turns `z += x * y` into `z fma= x * y`, `z = t + w` into `z = fma(x, y, w)`, `z = t - w` into
    `z = fms(x, y, w)`, `z = w - t` into `z = fnma(x, y, w)`, and `z *= x` with `z += w` into `z = fma(z, x, w)`. Legal
    if the sum or difference directly follows, is the product's only reader and has its type; there is no cast in
    between, and the statement does not depend on other iterations of itself.
    """

    name: ClassVar[str] = "contract"
    keeps_statements: ClassVar = False
    finishes: ClassVar = True
    exchanges: ClassVar = "values"

    @classmethod
    def candidates(cls, program: Program) -> Iterator[tuple[Leaf, Self]]:
        """Floating-point sums and differences."""
        for leaf in program.nest.leaves:
            if _is_sum(leaf):
                yield leaf, cls()

    def check(self, program: Program, site: Leaf) -> Reason | None:
        """Requires a sum of a product, in one statement or two."""
        if not _is_sum(site):
            return Reason("the op is not a floating-point sum or difference with two roundings")
        if site.accumulate is not None and site.function == "arith.mulf":
            return None
        product = program.nest.previous_sibling(site)
        if _in_place(site, product):
            return None
        if not site.reads or (site.accumulate is not None and site.function is not None):
            return Reason("the op adds something else than a product")
        if not isinstance(product, Leaf) or product.function != "arith.mulf" or product.accumulate is not None:
            return Reason("no product precedes immediately")
        term = next((access for access in site.reads if access.key == product.output.key), None)
        if term is None:
            names = " and ".join(f"'{access.array.name}'" for access in site.reads)
            return Reason(f"the product before does not write an element that the sum reads (it reads {names})")
        if term.array.intent is not None or len(accesses_of(program.nest, term.array.buffer)) != 2:
            return Reason(f"'{term.array.name}' is used elsewhere; the product needs a single reader")
        if term.hints.data or product.output.hints.data:
            return Reason(f"accesses to '{term.array.name}' have hints, which would be lost; clear them first")
        return None

    def argues(self, program: Program, site: Leaf) -> bool:
        """True if a product of other arrays, all of one type, precedes: the sum reads its operands one statement later.

        Only the sum comes between, which writes none of them, and the product's temporary is used no more.
        """
        product, into = program.nest.previous_sibling(site), site.output.array
        if site.function == "arith.mulf" or not isinstance(product, Leaf) or _in_place(site, product):
            return False
        operands = (*product.inputs, *site.inputs)
        alike = all(isinstance(i, Access) and i.array.dtype == into.dtype for i in operands)
        return alike and all(access.array.buffer is not into.buffer for access in product.reads)

    promises: ClassVar = Promises(conditions=argues, grows=False)

    def numerics(self, program: Program, site: Leaf) -> Numerics:  # the same everywhere
        """One rounding instead of two."""
        return Numerics.CONTRACTS

    def rewrite(self, program: Program, site: Leaf, rewriter: PatternRewriter) -> None:
        """Give the sum the product's operands."""
        product = site if site.function == "arith.mulf" else program.nest.previous_sibling(site)
        assert isinstance(product, Leaf)
        in_place = product is not site and _in_place(site, product)
        if site.accumulate is None or in_place:
            place = 1 if in_place else _position(site, product)
            inputs = [*_factors(product), site.inputs[1 - place]]
            function = _DIFFERENCES[place] if site.function == "arith.subf" else "math.fma"
            hints = [site.output.hints, *(i.hints for i in inputs if isinstance(i, Access))]
            output = (site.output.array, site.output.index)
            fused = build_op(output, inputs, chain_ops(site), function=function, hints=hints, identifier=site.id)
        else:
            hints = [site.op.access_hints[0], *product.op.access_hints[1:]]
            fused = _fused(site, product, chain_ops(site), hints, contracted=True)
        rewriter.replace(site.op, fused)
        if product is not site:
            rewriter.erase(product.op)

    def inverse(self, program: Program, site: Leaf) -> Move:
        if site.function == "arith.mulf":
            return Expand().as_move(f"%{site.id}")
        product = program.nest.previous_sibling(site)
        assert isinstance(product, Leaf)
        if _in_place(site, product):
            index = ",".join(e.render("{{{}}}".format) for e in site.output.index)
            return Expand(site.output.array.name, index).as_move(f"%{site.id}")
        index = ",".join(e.render("{{{}}}".format) for e in product.output.index)
        term = _position(site, product) if site.function == "arith.addf" else 0
        return Expand(product.output.array.name, index, term).as_move(f"%{site.id}")


def _is_sum(leaf: Leaf) -> bool:
    """Whether a statement adds or subtracts floating-point numbers and rounds the result."""
    if leaf.accumulate is None:
        return leaf.function in ("arith.addf", "arith.subf")
    return leaf.accumulate == "arith.addf" and not leaf.contracted


def _in_place(site: Leaf, product: Node | None) -> bool:
    """Whether a sum adds a term of other memory to an element that the statement before multiplies, or assigns."""
    if site.accumulate is None or site.function is not None or not isinstance(product, Leaf):
        return False
    (term,) = site.inputs
    other = not isinstance(term, Access) or term.array.buffer is not site.output.array.buffer
    factor = product.inputs[0]
    plain = product.accumulate is None and product.function == "arith.mulf"
    plain = plain and not (isinstance(factor, Access) and factor.key == product.output.key)
    multiplied = product.accumulate == "arith.mulf" and product.function is None
    hinted = bool(product.output.hints.data)
    return other and not hinted and product.output.key == site.output.key and (plain or multiplied)


def _factors(product: Leaf) -> list[Input]:
    """The operands of a product; the first one of `z *= x` is z."""
    return [product.output, *product.inputs] if product.accumulate is not None else [*product.inputs]


def _position(site: Leaf, product: Leaf) -> int:
    """The position of the product among the sum's operands."""
    return next(k for k, i in enumerate(site.inputs) if isinstance(i, Access) and i.key == product.output.key)


def _fused(
    site: Leaf, product: Leaf, chain: tuple[ScopeOp, ...], hints: list[DictionaryAttr], *, contracted: bool
) -> StatementOp:
    return build_op(
        (site.output.array, site.output.index),
        product.inputs,
        chain,
        function="arith.mulf",
        accumulate=site.accumulate,
        hints=hints,
        identifier=site.id,
        contracted=contracted,
    )


_CONSTANT = (Mapping.UNROLL, Mapping.BLOCK, Mapping.WARP)


def _constant_in_registers(site: Leaf, array: Array, index: tuple[Expr, ...]) -> bool:
    """Whether only unrolled scopes, or threads over which it is distributed, index the register array."""
    slots = zip(index, array.buffer.reuse, strict=True)
    depths = {d for e, count in slots for d in slot_index(e, count, site.chain).variables()}
    return all(site.chain[d].mapping in _CONSTANT for d in depths)


@dataclass(frozen=True)
class Expand(Transformation[Leaf]):
    """Round product and sum separately again; with `into`, through an array that has no other use.

    `expand@z`:

    N z[0] fma= x[{0}] * y[{0}]  -->  N z[0] += x[{0}] * y[{0}]

    Also turns `z = fma(x, y, w)` into `t = x * y` and `z = t + w`, or `z = w + t` with `term` 1; `fms` becomes
    `z = t - w`, `fnma` `z = w - t`. With z itself as `into`, `fma` becomes `z = x * y` and `z += w`.
    """

    name: ClassVar[str] = "expand"
    undoes: ClassVar = True
    keeps_statements: ClassVar = False
    promises: ClassVar = Promises(conditions=True, adds=0)
    into: str = ""
    index: str = ""
    term: int = 0

    @classmethod
    def candidates(cls, program: Program) -> Iterator[tuple[Leaf, Self]]:
        """Contracted statements."""
        for leaf in program.nest.leaves:
            if leaf.contracted:
                yield leaf, cls()

    def check(self, program: Program, site: Leaf) -> Reason | None:
        """Requires a contracted statement, and a temporary of the right type without other uses."""
        is_function = site.function in FUSED and site.accumulate is None
        if not site.contracted and not is_function:
            return Reason("the op is not contracted")
        if self.term not in ((0, 1) if is_function and site.function == "math.fma" else (0,)):
            return Reason("'term' is 0 or 1, and for 'z = fma(x, y, w)' only: the place of the product in the sum")
        if not self.into:
            if is_function:
                return Reason("no temporary for the product is named: into=NAME")
            return Reason("'index' needs 'into'") if self.index else None
        if is_function and site.function == "math.fma" and self._is_own(program, site):
            return self._overwritten(site)
        return self._temporary_reason(program, site)

    def _temporary_reason(self, program: Program, site: Leaf) -> Reason | None:
        """The reason why `into` is no temporary that can hold the product; None if it is."""
        array = program.nest.arrays.get(self.into)
        if array is None or array.buffer.op is None or array.dtype != site.output.array.dtype:
            return Reason(f"'{self.into}' is no temporary of type {site.output.array.dtype}")
        if accesses_of(program.nest, array.buffer):
            return Reason(f"'{self.into}' is used elsewhere")
        index = self._index(program, site)
        if len(index) != len(array.shape):
            return Reason(f"'{self.into}' has {len(array.shape)} dimensions, the index '{self.index}' has {len(index)}")
        for expression, extent in zip(index, array.buffer.extents, strict=True):
            low, high = bounds_within(site, expression, extent)
            if low < 0 or high >= extent.bounds(())[1]:
                return Reason(f"the index '{self.index}' leaves the extents of '{self.into}'")
        return self._misplaced(program, site, array, index)

    def _overwritten(self, site: Leaf) -> Reason | None:
        """The reason why the product cannot be where the sum is; None if it can."""
        term = site.inputs[2]
        if isinstance(term, Access) and term.array.buffer is site.output.array.buffer:
            return Reason(f"the sum reads '{self.into}', which the product would overwrite")
        return None if self.term == 0 else Reason("'term' is 0 for a product in place")

    def _misplaced(self, program: Program, site: Leaf, array: Array, index: tuple[Expr, ...]) -> Reason | None:
        """The reason why the array cannot hold the product at the statement; None if it can."""
        if site.parent is not None and site.parent.mapping is Mapping.VECTOR:
            return Reason("a vector scope wraps exactly one op")
        if array.buffer.memory is Memory.REGISTER and not _constant_in_registers(site, array, index):
            return Reason(f"'{self.into}' is in registers, which only constants index")
        scope = racing_scope(program, site, index, array.buffer.reuse)
        if scope is not None:
            return Reason(f"iterations of {describe_scope(scope)} would share elements of '{self.into}'")
        return None

    def _index(self, program: Program, site: Leaf) -> tuple[Expr, ...]:
        names = {**program.nest.tables, **named_around(site)}
        return parse_index(self.index, site.extents, names) if self.index else ()

    def numerics(self, program: Program, site: Leaf) -> Numerics:  # the same everywhere
        """The class of `contract`."""
        return Numerics.CONTRACTS

    def rewrite(self, program: Program, site: Leaf, rewriter: PatternRewriter) -> None:
        """Replace the statement by one with two roundings, or by two statements."""
        chain = chain_ops(site)
        if not self.into:
            rewriter.replace(site.op, _fused(site, site, chain, list(site.op.access_hints), contracted=False))
            return
        array, index = program.nest.arrays[self.into], self._index(program, site)
        empty = DictionaryAttr({})
        factors = site.inputs[:2]
        if site.function == "math.fma" and self._is_own(program, site):
            self._expand_in_place(program, site, rewriter)
            return
        product = build_op(
            (array, index),
            factors,
            chain,
            function="arith.mulf",
            hints=[empty, *(i.hints for i in factors if isinstance(i, Access))],
            identifier=fresh_id(program.nest.by_id, f"{site.id}.p"),
        )
        total = self._sum(site, Access(array, index, empty), chain)
        rewriter.insert(product, InsertPoint.before(site.op))
        rewriter.replace(site.op, total)

    def _is_own(self, program: Program, site: Leaf) -> bool:
        """Whether `into` is the element that the statement writes."""
        return self.into == site.output.array.name and self._index(program, site) == site.output.index

    def _expand_in_place(self, program: Program, site: Leaf, rewriter: PatternRewriter) -> None:
        """Replace `z = fma(x, y, w)` by `z = x * y` (`z *= y` if x is z) and `z += w`."""
        first, second, term = site.inputs
        multiplies = isinstance(first, Access) and first.key == site.output.key
        factors = [second] if multiplies else [first, second]
        output, empty, chain = (site.output.array, site.output.index), DictionaryAttr({}), chain_ops(site)
        product = build_op(
            output,
            factors,
            chain,
            function=None if multiplies else "arith.mulf",
            accumulate="arith.mulf" if multiplies else None,
            hints=[empty, *(i.hints for i in factors if isinstance(i, Access))],
            identifier=fresh_id(program.nest.by_id, f"{site.id}.p"),
        )
        hints = [site.output.hints, *(i.hints for i in (term,) if isinstance(i, Access))]
        total = build_op(output, [term], chain, accumulate="arith.addf", hints=hints, identifier=site.id)
        rewriter.insert(product, InsertPoint.before(site.op))
        rewriter.replace(site.op, total)

    def _sum(self, site: Leaf, product: Access, chain: tuple[ScopeOp, ...]) -> StatementOp:
        """The sum or difference of the product and the statement's third operand."""
        terms: list[Input] = [product]
        function = None
        if site.accumulate is None:
            is_difference = site.function in _DIFFERENCES
            place = _DIFFERENCES.index(site.function) if is_difference else self.term
            terms.insert(1 - place, site.inputs[2])
            function = "arith.subf" if is_difference else "arith.addf"
        return build_op(
            (site.output.array, site.output.index),
            terms,
            chain,
            function=function,
            accumulate=site.accumulate,
            hints=[site.output.hints, *(i.hints for i in terms if isinstance(i, Access))],
            identifier=site.id,
        )

    def inverse(self, program: Program, site: Leaf) -> Move:  # the same everywhere
        return Contract().as_move(f"%{site.id}")
