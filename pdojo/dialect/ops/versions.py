"""Versions of a kernel for parts of the ranges of its sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import ArrayAttr, StringAttr, SymbolNameConstraint
from xdsl.ir import Operation
from xdsl.irdl import IRDLOperation, irdl_op_definition, prop_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import SymbolOpInterface, SymbolTable, SymbolUserOpInterface
from xdsl.utils.exceptions import VerifyException

from pdojo.dialect.affine_maps import from_affine
from pdojo.dialect.index_maps import strides_of
from pdojo.dialect.narrowing import is_memref
from pdojo.dialect.ops.kernel import KernelOp
from pdojo.dialect.sizes import with_sizes
from pdojo.dialect.syntax import names_of


class VersionSymbols(SymbolUserOpInterface):
    """The symbols of versions must be kernels with one interface."""

    def verify(self, op: Operation) -> None:
        """Raise VerifyException if they are not."""
        assert isinstance(op, VersionsOp)
        kernels = op.found()
        for kernel in kernels:
            # A list may stand before its kernels.
            kernel.verify()
        for kernel in kernels[1:]:
            if (what := _difference(kernels[0], kernel)) is not None:
                name, first = kernel.sym_name.data, kernels[0].sym_name.data
                raise VerifyException(f"the {what} of version '{name}' are not those of '{first}'")


@irdl_op_definition
class VersionsOp(IRDLOperation):
    """A kernel with versions, `pdojo.versions @f = @f_1, @f_2`: a call runs the first whose ranges have its sizes."""

    name = "pdojo.versions"

    sym_name = prop_def(SymbolNameConstraint())
    """The symbol of the kernel that callers see."""
    kernels = prop_def(ArrayAttr[StringAttr])
    """The symbols of the versions, in the order in which a call tries them."""

    traits = traits_def(SymbolOpInterface(), VersionSymbols())

    def __init__(self, name: str, kernels: Sequence[str]) -> None:
        super().__init__(
            properties={"sym_name": StringAttr(name), "kernels": ArrayAttr(StringAttr(each) for each in kernels)}
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The symbols of the versions."""
        return names_of(self.kernels)

    def found(self) -> list[KernelOp]:
        """The versions. Raises VerifyException for a symbol that is no kernel with sizes."""
        kernels: list[KernelOp] = []
        for name in self.names:
            kernel = SymbolTable.lookup_symbol(self, name)
            if not isinstance(kernel, KernelOp):
                raise VerifyException(f"version '{name}' is no kernel of this module")
            if kernel.sizes is None:
                raise VerifyException(f"version '{name}' has no sizes, by which a call would choose")
            kernels.append(kernel)
        return kernels

    def verify_(self) -> None:
        """Check that the versions are named once; `VersionSymbols` looks at their kernels."""
        if not self.names:
            raise VerifyException(f"kernel '{self.sym_name.data}' has no version")
        if len(set(self.names)) < len(self.names):
            raise VerifyException(f"kernel '{self.sym_name.data}' has a version twice")

    @classmethod
    def parse(cls, parser: Parser) -> VersionsOp:
        """Parse `@f = @f_1, @f_2`."""
        name = parser.parse_symbol_name()
        parser.parse_punctuation("=")
        kernels = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_symbol_name)
        return cls(name.data, [kernel.data for kernel in kernels])

    def print(self, printer: Printer) -> None:
        """Print the form that `parse` reads."""
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        printer.print_string(" = ")
        printer.print_list(self.names, printer.print_symbol_name)


def _difference(first: KernelOp, other: KernelOp) -> str | None:
    """The first thing in which the interfaces of two versions differ; None if nothing does."""
    facts = zip(_facts(first), _facts(other), strict=True)
    found = (what for (what, one), (_, same) in facts if one != same)
    constants = {
        size.name: size.low for k in (first, other) for size in k.known_sizes().values() if size.low == size.high
    }
    shapes = (_shapes(each, constants) for each in (first, other))
    return next(found, None) or (None if next(shapes) == next(shapes) else "shapes or ranges of indices")


def _facts(kernel: KernelOp) -> list[tuple[str, object]]:
    """The interface of a kernel, but for the shapes of its arrays."""
    types = [t.element_type for t in kernel.body.block.arg_types if is_memref(t)]
    indices = {name: (each.dtype, each.low, each.outside) for name, each in kernel.index_arrays().items()}
    return [
        ("sizes", (*kernel.known_sizes(),)),
        ("arrays", kernel.arg_names),
        ("intents", kernel.arg_intents),
        ("constant inputs", kernel.constant_names),
        ("element types", types),
        ("strides", [strides_of(t) for t in kernel.body.block.arg_types if is_memref(t)]),
        ("alignments", kernel.arg_alignments),
        ("numerics", kernel.permitted),
        ("indices", indices),
    ]


def _shapes(kernel: KernelOp, constants: Mapping[str, int]) -> list[list[str]]:
    """The shapes of the interface's arrays, and the greatest indices, for known values of some sizes."""
    sizes = [size.expression for size in kernel.known_sizes().values()]
    maps = () if kernel.arg_extents is None else kernel.arg_extents.data
    shapes = ([from_affine(e, (), (), sizes) for e in each.data.results] for each in maps)
    rows = [*shapes, [each.last for each in kernel.index_arrays().values()]]
    return [[with_sizes(each, constants).render(str) for each in row] for row in rows]
