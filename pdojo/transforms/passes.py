"""Every transformation as an xDSL pass: `pdojo-tile-scope{at="t#1:0" size=16}`; without `at`, at every legal place."""

from __future__ import annotations

from dataclasses import MISSING, Field, dataclass, field, fields, make_dataclass
from functools import cache
from typing import Any, ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, PatternRewriteWalker, RewritePattern

from pdojo.dialect.canonical import canonicalize
from pdojo.dialect.flow.program import Program
from pdojo.dialect.machines.registry import machine_of
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.rules.validate import validate
from pdojo.errors import IllegalMove, LocationError
from pdojo.transforms.apply import apply
from pdojo.transforms.base import Transformation
from pdojo.transforms.legality.judge import Legality
from pdojo.transforms.registry import transformation
from pdojo.transforms.site import kernel_of, sites_at


class Everywhere(RewritePattern):
    """Makes a move wherever it is legal, in xDSL's rewrite walks; one object decides for the whole walk."""

    def __init__(self, move: Transformation[Any]) -> None:
        self.move = move
        self.legality = Legality()

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        """Rewrite if `op` is a site and the move is legal."""
        kernel = kernel_of(op)
        if kernel is None:
            return
        program = Program(kernel, machine_of(kernel), self.legality.known)
        for site in sites_at(program, self.move.site, op):
            try:
                self.legality.make(self.legality.ask(program, self.move, site, foresees=False))
            except IllegalMove:
                continue
            self.move.rewrite(program, site, rewriter)
            return


@dataclass(frozen=True)
class TransformationPass(ModulePass):
    """Base of the passes that `pass_for` makes; the fields of the transformation become the pass's options."""

    transformation: ClassVar[type[Transformation[Any]]]

    at: str = ""
    """Location; if empty, the pass visits each place once and applies the move if it is legal there."""
    kernel: str = ""
    """Symbol of the kernel; may be left out if the module has one kernel."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Apply the move. Raises LocationError or IllegalMove if it is refused, InvalidKernel for an invalid kernel.

        Moves keep the meaning of valid kernels only, so validity is checked once per run.
        """
        options = {f.name: getattr(self, f.name) for f in fields(self.transformation)}
        missing = [f"{name}=..." for name, value in options.items() if value is None]
        if missing:
            raise IllegalMove(f"pass '{self.name}' needs a value for {' and '.join(missing)}")
        wanted = self.transformation(**options)
        kernels = [k for k in op.walk() if isinstance(k, KernelOp) and self.kernel in ("", k.sym_name.data)]
        if self.kernel and not kernels:
            raise LocationError(f"pass '{self.name}': there is no kernel '{self.kernel}'")
        for kernel in kernels:
            canonicalize(kernel)
            validate(Program(kernel, machine_of(kernel)))
        if not self.at:
            for kernel in kernels:
                PatternRewriteWalker(Everywhere(wanted), apply_recursively=False).rewrite_region(kernel.body)
            return
        if len(kernels) != 1:
            listed = ", ".join(k.sym_name.data for k in op.walk() if isinstance(k, KernelOp)) or "none"
            raise LocationError(f"location '{self.at}' needs kernel=NAME: the module's kernels are {listed}")
        program = Program(kernels[0], machine_of(kernels[0]))
        result = apply(program, wanted.as_move(self.at)).program.kernel
        block = kernels[0].parent_block()
        assert block is not None
        block.insert_op_before(result, kernels[0])
        kernels[0].detach()
        kernels[0].erase()


_KINDS: dict[str, Any] = {"int": int, "int | str": int | str}
"""Per type of a parameter, the type of its option; a word for all others."""


@cache
def pass_for(name: str) -> type[ModulePass]:
    """The pass of the transformation `name`."""
    wrapped = transformation(name)
    options: list[tuple[str, Any, Field[Any]]] = []
    for parameter in fields(wrapped):
        kind = _KINDS.get(str(parameter.type), str)
        default = None if parameter.default is MISSING else parameter.default
        option: Any = field(default=default)
        options.append((parameter.name, kind | None if default is None else kind, option))
    return make_dataclass(
        f"{wrapped.__name__}Pass",
        options,
        bases=(TransformationPass,),
        frozen=True,
        namespace={"name": f"pdojo-{name.replace('_', '-')}", "transformation": wrapped, "__doc__": wrapped.__doc__},
    )
