"""Single pieces of the notation: the texts from which moves restore a statement or a declaration."""

from __future__ import annotations

import re

from pdojo.dialect.notation.parser import parse_notation
from pdojo.dialect.notation.printer import header_lines, scope_text, tree_lines
from pdojo.dialect.ops import BufferOp, KernelOp, ScopeOp, StatementOp
from pdojo.dialect.view.nest import Nest, Node, Scope
from pdojo.errors import NotationError

_POSITION = re.compile(r"[^\n]*:\d+:\d+: error: ([^\n]*)")


def fragment_text(node: Node) -> str:
    """One line: a statement, and the enclosing scopes that contain nothing else. `{k}` counts from the root."""
    (line,) = tree_lines([node])
    return line


def parse_fragment(nest: Nest, parent: Scope | None, declaration: str, text: str) -> KernelOp:
    """A kernel with the declarations of `nest` and one more, whose only line is `text`, in the scopes around it.

    An empty `declaration` adds none. Raises NotationError, without a position, if `text` is no such line.
    """
    if any("\n" in piece for piece in (declaration, text)):
        raise NotationError("a declaration and a statement are one line each")
    around = " ".join(scope_text(s) for s in (parent.chain if parent else ()))
    header = [*header_lines(nest), *([declaration] if declaration else [])]
    try:
        (kernel,) = parse_notation("\n".join([*header, "", f"{around} {text}"]), "<fragment>")
    except NotationError as error:
        raise NotationError(sentence(error)) from None
    return kernel


def sentence(error: NotationError) -> str:
    """The message of an error, without the position."""
    match = _POSITION.match(str(error))
    return match[1] if match else str(error)


def declared(kernel: KernelOp, nest: Nest) -> BufferOp | None:
    """The buffer of a fragment that `nest` lacks."""
    buffers = list(kernel.buffers())
    return buffers[-1] if len(buffers) > len(list(nest.kernel.buffers())) else None


def statement_of(kernel: KernelOp, depth: int) -> tuple[ScopeOp | StatementOp, ...]:
    """The scopes and the statement of a fragment's line, outermost first; the line stands inside `depth` scopes."""
    path: list[ScopeOp | StatementOp] = []
    ops = [op for op in kernel.body.block.ops if not isinstance(op, BufferOp)]
    while ops:
        (op,) = ops
        assert isinstance(op, ScopeOp | StatementOp)
        path.append(op)
        ops = list(op.body.block.ops) if isinstance(op, ScopeOp) else []
    return tuple(path[depth:])
