"""What moves share that change the order of statement instances."""

from __future__ import annotations

from pdojo.dialect.analysis.collision import EQUAL, Relation
from pdojo.dialect.analysis.program import Conflict, Program
from pdojo.dialect.attributes import Numerics
from pdojo.dialect.nest import Buffer, Node, Scope
from pdojo.dialect.storage import private_scope
from pdojo.transforms.base import Reason


def same_iteration(node: Node) -> Relation:
    """Both instances in the same iteration of all scopes around the node."""
    return (EQUAL,) * (node.depth if isinstance(node, Scope) else len(node.chain))


def private_buffers(program: Program, scope: Scope) -> list[Buffer]:
    """The buffers of which each iteration of a threaded scope has its own copy."""
    if not scope.mapping.is_threaded:
        return []
    return [b for b in program.nest.buffers if any(b.reuse) and private_scope(program.nest, b) is scope]


def reassociates(happens: bool) -> Numerics:
    """The numerics class of a move that may change the order of accumulations."""
    return Numerics.REASSOCIATES if happens else Numerics.EXACT


def carried(text: str, conflict: Conflict) -> Reason:
    """A reason whose witness is a conflict."""
    return Reason(text, str(conflict))
