"""A kernel with constants as two ordinary kernels: one that runs at binding, and one that runs in every call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from pdojo.backends.common.placement import ALIGNMENT
from pdojo.dialect.affine import IndexArray, Size
from pdojo.dialect.attributes import Intent
from pdojo.dialect.index_maps import shape_map
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.view.binding import binding_nests
from pdojo.dialect.view.build import nest_of
from pdojo.dialect.view.nest import Buffer, Nest, Node
from pdojo.dialect.view.nodes import buffers_of


@dataclass(frozen=True)
class SplitKernel:
    """The two kernels; the constant temporaries are arguments of both, by their names."""

    binding: KernelOp
    """`NAME_bind`: its inputs are the constant inputs that it reads, its outputs are the constants that calls read."""
    calling: KernelOp
    """`NAME_call`: it lacks constant inputs that only the binding part reads, and has the constants as inputs."""


def split_kernel(nest: Nest) -> SplitKernel | None:
    """The kernel as two; None if it has no constant temporaries, or if calls would have nothing to do."""
    early = binding_nests(nest)
    late = [root for root in nest.children if root not in early]
    if not early or not late:
        return None
    kept = [buffer for buffer in _used(nest, late) if buffer.constant and buffer.op is not None]
    given = [buffer for buffer in _used(nest, early) if buffer.op is None]
    read, indices = _used(nest, late), nest.index_arrays
    own = [b for b in nest.buffers if b.op is None and (not b.constant or b in read or b.names[0] in indices)]
    binding = _Part(nest, early, f"{nest.name}_bind").kernel(given, kept, Intent.OUT)
    calling = _Part(nest, late, f"{nest.name}_call", [*nest.sizes.values()], [*indices.values()])
    return SplitKernel(binding, calling.kernel(own, kept, Intent.IN))


def binding_note(nest: Nest, machine: Machine) -> str:
    """A sentence on the part of binding in a kernel's times; '' if the kernel has no constant temporaries."""
    names = ", ".join(f"'{b.names[0]}'" for b in nest.buffers if b.constant and b.op is not None)
    if not names:
        return ""
    if machine.backend == "llvm":
        return f"the times are those of calls after binding, which computes {names} once"
    return f"every call computes the constants {names}: binding has no gain on {machine.name}"


def _used(nest: Nest, roots: Sequence[Node]) -> list[Buffer]:
    found = frozenset[Buffer]().union(*map(buffers_of, roots))
    return [buffer for buffer in nest.buffers if buffer in found]


@dataclass(frozen=True)
class _Part:
    nest: Nest
    roots: Sequence[Node]
    name: str
    sizes: Sequence[Size] = ()
    """The sizes that its callers give; binding depends on none."""
    indices: Sequence[IndexArray] = ()
    """The interface arrays whose entries are indices."""

    def kernel(self, interface: Sequence[Buffer], constants: Sequence[Buffer], intent: Intent) -> KernelOp:
        """A kernel of the top-level nests `roots`, whose arguments are an interface, and constants with an intent."""
        rows = [(buffer, buffer.intent or intent) for buffer in (*interface, *constants)]
        whole = self.nest.kernel
        kernel = KernelOp(
            self.name,
            [(b.names[0], found, self._value(b).type) for b, found in rows],
            None,
            None if whole.numerics is None else whole.permitted,
            None if whole.machine is None else whole.machine.data,
            [b.alignment if b.op is None else max(b.alignment, ALIGNMENT) for b, _ in rows],
            list(whole.known_tables().values()),
            [b.names[0] for b, found in rows if b.constant and found is Intent.IN],
            self.sizes,
            [shape_map(b.extents, self.sizes) for b, _ in rows],
            self.indices,
        )
        arguments = zip(rows, kernel.body.block.args, strict=True)
        values: dict[SSAValue, SSAValue] = {self._value(b): argument for (b, _), argument in arguments}
        used = _used(self.nest, self.roots)
        declared = (op for buffer in used if buffer not in constants for op in (buffer.guests, buffer.op))
        for op in (op for op in declared if op is not None):
            copy = op.clone(values)
            # A constant that only the binding part reads is an ordinary temporary of that part.
            copy.properties.pop("constant", None)
            kernel.body.block.add_op(copy)
        kernel.body.block.add_ops(root.op.clone(values) for root in self.roots)
        return kernel

    def _value(self, buffer: Buffer) -> SSAValue:
        return self.nest.arrays[buffer.names[0]].value


@dataclass(frozen=True)
class PdojoSplitConstantsPass(ModulePass):
    """Replace every kernel with constant temporaries by two: `NAME_bind` computes them, `NAME_call` reads them.

    The constants are arguments of both, by their names. Run `NAME_bind` whenever the constant inputs change.
    """

    name = "pdojo-split-constants"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite the module."""
        for kernel in [k for k in op.body.block.ops if isinstance(k, KernelOp)]:
            if (parts := split_kernel(nest_of(kernel))) is not None:
                Rewriter.insert_op((parts.binding, parts.calling), InsertPoint.before(kernel))
                Rewriter.erase_op(kernel)
