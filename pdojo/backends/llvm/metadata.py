"""LLVM metadata of loads and stores for the optimiser."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from xdsl.dialects import llvm
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation


def alias_scopes(module: ModuleOp) -> tuple[str, ...]:
    """The names in `alias_scope` attributes, in order of occurrence."""
    found: dict[str, None] = {}
    for op in module.walk():
        scope = op.attributes.get("alias_scope")
        if isinstance(scope, StringAttr):
            found[scope.data] = None
    return tuple(found)


class Metadata:
    """The metadata of one module: buffers never alias, so an access to a buffer aliases no other buffer's scope."""

    def __init__(self, module: ir.Module, scopes: tuple[str, ...]) -> None:
        self._streams: Any = module.add_metadata([ir.IntType(32)(1)])
        domain: Any = module.add_metadata(["pdojo"])
        nodes: dict[str, Any] = {name: module.add_metadata([name, domain]) for name in scopes}
        self._own: dict[str, Any] = {name: module.add_metadata([node]) for name, node in nodes.items()}
        self._others: dict[str, Any] = {}
        for name in scopes:
            others = [node for other, node in nodes.items() if other != name]
            if others:
                self._others[name] = module.add_metadata(others)

    def attach(self, op: Operation, instruction: ir.Instruction) -> None:
        """Convert a memory operation's attributes to metadata."""
        scope = op.attributes.get("alias_scope")
        if isinstance(scope, StringAttr):
            instruction.set_metadata("alias.scope", self._own[scope.data])
            if scope.data in self._others:
                instruction.set_metadata("noalias", self._others[scope.data])
        streams = "nontemporal" in op.attributes or (isinstance(op, llvm.StoreOp) and op.nontemporal is not None)
        if streams:
            instruction.set_metadata("nontemporal", self._streams)
