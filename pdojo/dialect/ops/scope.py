"""Iteration scopes and their guards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import (
    AffineSetAttr,
    ArrayAttr,
    DictionaryAttr,
    IndexType,
    IntegerAttr,
    StringAttr,
)
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue
from xdsl.ir.affine import AffineConstraintExpr, AffineConstraintKind, AffineExpr, AffineSet
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import (
    NoTerminator,
    RecursiveMemoryEffect,
)

from pdojo.dialect.attributes import (
    LookupAttr,
    Mapping,
    MappingAttr,
)
from pdojo.dialect.syntax import (
    Dimension,
    IndexNames,
    names_of,
    parse_hints,
    parse_index_expression,
    print_hints,
    print_index_expression,
)

MOST_SCOPES = 64
"""Most scopes inside one another."""


@irdl_op_definition
class ScopeOp(IRDLOperation):
    """A one-dimensional iteration scope of static extent; its children run in order for each iteration."""

    name = "pdojo.scope"

    guard_ivs = var_operand_def(IndexType)
    """Induction variables of enclosing scopes in the guard: its first dimensions, before the scope's own variable."""
    extent = prop_def(IntegerAttr)
    """Number of iterations, at least 1."""
    mapping = prop_def(MappingAttr)
    """The instantiation of the iterations: a loop, lanes, threads and others."""
    intrinsic = opt_prop_def(StringAttr)
    """Name of the instruction that computes a scope mapped to a tensor unit (`m`); absent for other scopes."""
    guard = opt_prop_def(AffineSetAttr)
    """Conjunction of `e >= 0`; an iteration runs only if all hold. The dimensions are `guard_ivs`, the scope's own
    variable, and lookups."""
    lookups = opt_prop_def(ArrayAttr[LookupAttr])
    """The lookups in arrays of indices that the guard uses; one may use those before it. Absent if there are none."""
    hints = opt_prop_def(DictionaryAttr)
    """Facts that generated code may use; they never change meaning. Absent if there are none."""
    sizes = opt_prop_def(ArrayAttr[StringAttr])
    """The names of the sizes that symbols stand for; absent if there are none."""
    id = opt_prop_def(StringAttr)
    """Stable identifier, kept by moves; not printed in the pretty form."""
    body = region_def("single_block")
    """The children; the block argument is the induction variable."""

    traits = traits_def(NoTerminator(), RecursiveMemoryEffect())

    def __init__(
        self,
        extent: int,
        body: Region | Block | None = None,
        mapping: Mapping = Mapping.SEQUENTIAL,
        guard: Sequence[AffineExpr] = (),
        guard_ivs: Sequence[SSAValue] = (),
        id: str | None = None,  # the IR's own word for it
        hints: DictionaryAttr | None = None,
        intrinsic: str | None = None,
        sizes: Sequence[StringAttr] = (),
        lookups: Sequence[LookupAttr] = (),
    ) -> None:
        if not isinstance(body, Region):
            body = Region(body or Block(arg_types=[IndexType()]))
        properties: dict[str, Attribute | None] = {
            "extent": IntegerAttr(extent, IndexType()),
            "mapping": MappingAttr(mapping),
            "intrinsic": None if intrinsic is None else StringAttr(intrinsic),
            "guard": guard_attr(guard, len(guard_ivs) + 1 + len(lookups), len(sizes)),
            "lookups": ArrayAttr(lookups) if lookups else None,
            "sizes": ArrayAttr(sizes) if sizes else None,
            "hints": hints if hints is not None and hints.data else None,
            "id": None if id is None else StringAttr(id),
        }
        # IRDLOperation's constructor, which sorts its arguments by the definition, takes several times as long.
        present = {name: value for name, value in properties.items() if value is not None}
        Operation.__init__(self, operands=guard_ivs, properties=present, regions=[body])

    @property
    def block(self) -> Block:
        """The block of the body; xDSL's accessor of a region by name takes several times as long."""
        return self.regions[0].block

    @property
    def iv(self) -> BlockArgument:
        """The induction variable."""
        return self.block.args[0]

    @property
    def count(self) -> int:
        """Number of iterations."""
        return cast("IntegerAttr[IndexType]", self.properties["extent"]).value.data

    @property
    def guard_exprs(self) -> tuple[AffineExpr, ...]:
        """The left sides of `e >= 0`, over `(*guard_ivs, iv)` and lookups."""
        guard = self.guard
        return () if guard is None else tuple(c.lhs for c in guard.data.constraints)

    @classmethod
    def parse(cls, parser: Parser) -> ScopeOp:
        """Parse `%i = 512 : g hints {launch_bounds = 2 : i64} where (%i < 500, ...) { ... }`; `: m "name"`."""
        variable = parser.parse_argument(expect_type=False)
        parser.parse_punctuation("=")
        extent = parser.parse_integer(allow_boolean=False, allow_negative=False)
        mapping = Mapping.SEQUENTIAL
        if parser.parse_optional_punctuation(":"):
            mapping = parser.parse_str_enum(Mapping)
        intrinsic = parser.parse_optional_str_literal() if mapping is Mapping.TENSOR else None
        hints = parse_hints(parser)
        names = IndexNames(parser, own=variable.name.text[1:])
        guard: list[AffineExpr] = []
        if parser.parse_optional_keyword("where"):
            parser.parse_comma_separated_list(
                parser.Delimiter.PAREN, lambda: guard.extend(_parse_constraint(parser, names))
            )
        region = parser.parse_region([variable.resolve(IndexType())])
        constraints = [names.finish(g) for g in guard]
        sizes = [StringAttr(name) for name in names.sizes]
        facts = names.operands, None, hints, intrinsic, sizes, names.lookup_attrs()
        return cls(extent, region, mapping, constraints, *facts)

    def print(self, printer: Printer) -> None:
        """Print the form that `parse` reads."""
        printer.print_string(" ")
        printer.print_ssa_value(self.iv)
        printer.print_string(f" = {self.count}")
        if self.mapping.data is not Mapping.SEQUENTIAL:
            printer.print_string(f" : {self.mapping.data.value}")
        if self.intrinsic is not None:
            printer.print_string(" ")
            printer.print_attribute(self.intrinsic)
        print_hints(printer, self.hints)
        if self.guard is not None:
            printer.print_string(" where ")
            sizes = () if self.sizes is None else names_of(self.sizes)
            lookups = () if self.lookups is None else self.lookups.data
            entries = ((each.table.data, each.map.data.results) for each in lookups)
            dims: list[Dimension] = [*self.guard_ivs, self.iv, *entries]
            with printer.in_parens():
                printer.print_list(self.guard_exprs, lambda e: _print_constraint(printer, e, dims, sizes))
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False, print_empty_block=False)


def guard_attr(guard: Sequence[AffineExpr], dims: int, sizes: int = 0) -> AffineSetAttr | None:
    """The guard property for left sides of `e >= 0` over some dimensions and sizes."""
    if not guard:
        return None
    zero = AffineExpr.constant(0)
    constraints = tuple(AffineConstraintExpr(AffineConstraintKind.ge, e, zero, canonicalize=False) for e in guard)
    return AffineSetAttr(AffineSet(dims, sizes, constraints))


def _parse_constraint(parser: Parser, names: IndexNames) -> list[AffineExpr]:
    """One comparison, as left sides of `e >= 0`."""
    left = parse_index_expression(parser, names)
    relation = _parse_relation(parser)
    right = parse_index_expression(parser, names)
    return {
        "<": [right - left - 1],
        "<=": [right - left],
        ">": [left - right - 1],
        ">=": [left - right],
        "==": [left - right, right - left],
    }[relation]


def _parse_relation(parser: Parser) -> str:
    equals = "=" if parser.parse_optional_punctuation("=") else ""
    if equals:
        parser.parse_punctuation("=", " in '=='")
        return "=="
    for sign in ("<", ">"):
        if parser.parse_optional_punctuation(sign):
            return sign + ("=" if parser.parse_optional_punctuation("=") else "")
    parser.raise_error("expected one of < <= > >= ==")


def _print_constraint(
    printer: Printer, expression: AffineExpr, dims: Sequence[Dimension], sizes: Sequence[str]
) -> None:
    """Print `c - e >= 0` as `e <= c`."""
    from pdojo.dialect.affine import Atom, Size, var
    from pdojo.dialect.affine_maps import from_affine, to_affine

    count = len(dims)
    # Outermost variables first, so that the text depends on the program only and not on the order of the operands.
    own = sorted((d for d in dims if isinstance(d, SSAValue)), key=_nesting)
    ordered: list[Dimension] = [*own, *(d for d in dims if not isinstance(d, SSAValue))]
    # The extents are not needed: no division is simplified away by printing.
    symbols = [Size(name, 0, 1 << 40) for name in sizes]
    variables = [var(ordered.index(d)) for d in dims]
    plain = from_affine(expression, variables, [1 << 40] * count, [size.expression for size in symbols])
    negative = all(c < 0 for _, c in plain.terms)
    side = -(plain - plain.constant) if negative else plain - plain.constant
    positions: dict[Atom, int] = {d: d for d in range(count)}
    positions |= {size: position for position, size in enumerate(symbols)}
    print_index_expression(printer, to_affine(side, positions), _placed(dims, ordered), sizes)
    printer.print_string(f" <= {plain.constant}" if negative else f" >= {-plain.constant}")


def _placed(dims: Sequence[Dimension], ordered: Sequence[Dimension]) -> list[Dimension]:
    """The dimensions in another order; places of lookups are expressions of the new ones."""
    new = [AffineExpr.dimension(ordered.index(d)) for d in dims]
    return [
        each if isinstance(each, SSAValue) else (each[0], tuple(e.replace_dims_and_symbols(new, []) for e in each[1]))
        for each in ordered
    ]


def _nesting(variable: SSAValue) -> int:
    """The number of operations around the scope body that `variable` belongs to."""
    depth = 0
    around = variable.owner.parent_op() if isinstance(variable.owner, Block) else None
    while around is not None:
        depth, around = depth + 1, around.parent_op()
    return depth
