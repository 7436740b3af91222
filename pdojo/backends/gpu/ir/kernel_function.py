"""Conversion of a kernel to a host function: loops around launches, and memory that launches share."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, func, gpu
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Region, SSAValue

from pdojo.backends.common.addresses import refuse_indices, refuse_strides
from pdojo.backends.common.walk import LoopBounds
from pdojo.backends.gpu.homes import workspace_of
from pdojo.backends.gpu.ir.launch_body import LaunchBody
from pdojo.backends.gpu.launches import grid_limits, holds_grid, launch
from pdojo.backends.loops.loop_builder import LoopBuilder, entry_block
from pdojo.dialect.attributes import Mapping
from pdojo.dialect.functions import DTYPES
from pdojo.dialect.machines.machine import Machine
from pdojo.dialect.view.nest import Access, Buffer, Constant, Leaf, Nest, Node, Scope
from pdojo.dialect.view.storage import physical_shape
from pdojo.errors import LoweringError


def lower_kernel(nest: Nest, machine: Machine) -> func.FuncOp:
    """A function, with the kernel's name and arguments, that launches the kernel on a GPU.

    Raises LoweringError for kernels that the gpu dialect cannot express.
    """
    refuse_indices(nest, "the gpu dialect")
    refuse_strides(nest, "the gpu dialect")
    try:
        return _HostFunction(nest, machine).lower()
    except LoweringError as error:
        raise LoweringError(f"kernel '{nest.name}': {error}") from None


class _HostFunction(LoopBuilder):
    hardware = "a host"

    def __init__(self, nest: Nest, machine: Machine) -> None:
        super().__init__(nest, entry_block(nest))
        self.machine = machine
        self.memories: dict[Buffer, SSAValue] = {}

    def lower(self) -> func.FuncOp:
        self.memories.update(self.arguments())
        workspace = workspace_of(self.nest)
        for buffer in workspace.copies:
            raise LoweringError(
                f"each thread has its own copy of '{buffer.names[0]}' on the heap; move it to registers or the stack "
                "(set_location), or give every index an element (materialize_dims)"
            )
        allocated = list(workspace.offsets)
        for buffer in allocated:
            kind = MemRefType(DTYPES[buffer.dtype], physical_shape(self.nest, buffer))
            self.memories[buffer] = self.append(gpu.AllocOp(kind))
            self.memories[buffer].name_hint = buffer.names[0]
        self.nodes(self.nest.children)
        for buffer in allocated:
            self.builder.insert(gpu.DeallocOp(self.memories[buffer]))
        return self.function()

    def memory(self, access: Access, leaf: Leaf) -> SSAValue:
        return self.memories[access.array.buffer]

    def nodes(self, nodes: Sequence[Node]) -> None:
        """Append launches, and loops around them."""
        for node in nodes:
            if holds_grid(node) and not (isinstance(node, Scope) and node.mapping is Mapping.GRID):
                super().nodes([node])
            else:
                self._launch(node)

    def _launch(self, node: Node) -> None:
        found = launch(self.nest, node, self.machine)
        counts = [self._count(scope) for scope in found.grids]
        body = LaunchBody(self, found, self.memories, counts, self.machine.gpu.warp_size)
        one = self.constants.index(1)
        blocks, threads = self.indices.product(counts), self.constants.index(found.threads)
        shared = self.constants.typed(Constant(body.shared_bytes, "i32")) if body.shared_bytes else None
        launched = gpu.LaunchOp(
            Region(body.entry), [blocks, one, one], [threads, one, one], dynamicSharedMemorySize=shared
        )
        self.builder.insert(launched)

    def _count(self, scope: Scope) -> SSAValue | int:
        """The number of iterations of a grid scope; of type index if it depends on sizes."""
        limits = grid_limits(scope)
        if not limits:
            return scope.extent
        return self.append(arith.MaxSIOp(self.constants.index(1), self.upper(scope.extent, limits)))

    def statement(self, leaf: Leaf) -> None:
        """Never called: a statement outside of grids is a launch."""
        raise AssertionError(leaf)

    def vector(self, scope: Scope, leaf: Leaf, bounds: LoopBounds) -> None:
        """Never called: a vector scope outside of grids is a launch."""
        raise AssertionError(scope)
