"""Verification of a kernel: structure, names, types, bounds and placement of mappings (cheap, after every move).

Messages name the array, the scope and the position in the tree; the parsers add the source position.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pdojo.dialect.attributes import Mapping
from pdojo.dialect.exception import fail
from pdojo.dialect.ops import KernelOp
from pdojo.dialect.verification.mappings import misplaced_mapping
from pdojo.dialect.verification.statements import verify_statement
from pdojo.dialect.verification.structure import verify_body, verify_declarations, verify_interface, verify_operation
from pdojo.dialect.view.binding import binding_problem
from pdojo.dialect.view.build import nest_of
from pdojo.dialect.view.nest import Leaf, Nest, Node, Scope, leaves_of


def verify_kernel(kernel: KernelOp) -> None:
    """Raise `KernelVerifyException` with one precise message if the kernel is malformed."""
    verify_interface(kernel)
    verify_body(kernel)
    try:
        nest = nest_of(kernel)
    except ValueError as error:
        fail(kernel, str(error))
    _verify_tree(nest)


def verify_nest(nest: Nest) -> None:
    """`verify_kernel` for a kernel whose view exists already.

    Nodes that were accepted before are skipped if they and all scopes around them are unchanged; so are the header and
    the declarations.
    """
    if not nest.is_named:
        verify_interface(nest.kernel)
    if not nest.is_declared or not nest.sound.issuperset(nest.buffers):
        verify_declarations(nest.kernel, {buffer.op for buffer in nest.sound if buffer.op is not None})
    nodes = list[Node]()
    _add_unsettled(nest.children, nodes)
    for node in nodes:
        if not node.sound or not leaves_of(node):
            verify_operation(node.op, len(node.chain) - isinstance(node, Scope))
    _verify_ids(nest)
    _verify_nodes(nodes)
    nest.sound.update(nest.buffers)
    nest.is_declared = nest.is_named = True
    for node in nodes:
        node.sound = True
        if isinstance(node, Scope):
            node.settled = True
    _verify_binding(nest)


def _add_unsettled(nodes: Iterable[Node], found: list[Node]) -> None:
    """Add the nodes to verify: those with an unaccepted subtree, and grid siblings, whose place depends on them."""
    for node in nodes:
        if isinstance(node, Leaf):
            if not node.sound:
                found.append(node)
        elif not node.settled:
            found.append(node)
            _add_unsettled(node.children, found)
        elif node.mapping is Mapping.GRID:
            found.append(node)


def _verify_tree(nest: Nest) -> None:
    _verify_ids(nest)
    _verify_nodes([*nest.scopes, *nest.leaves])
    _verify_binding(nest)


def _verify_binding(nest: Nest) -> None:
    if (found := binding_problem(nest)) is not None:
        node, problem = found
        fail(node.op, problem.text)


def _verify_nodes(nodes: Sequence[Node]) -> None:
    for scope in nodes:
        if isinstance(scope, Scope):
            _verify_scope(scope)
    for leaf in nodes:
        if isinstance(leaf, Leaf) and not leaf.sound:
            verify_statement(leaf)


def _verify_ids(nest: Nest) -> None:
    if len(nest.by_id) == len(nest.scopes) + len(nest.leaves):
        return
    seen: set[str] = set()
    for node in (*nest.scopes, *nest.leaves):
        identifier = node.id
        if identifier and identifier in seen:
            fail(node.op, f"identifier '{identifier}' is used twice")
        seen.add(identifier)


def _verify_scope(scope: Scope) -> None:
    problem = misplaced_mapping(scope)
    if problem is not None:
        fail(scope.op, problem.text)
