"""Scopes and accesses in messages."""

from __future__ import annotations

from collections.abc import Sequence

from pdojo.dialect.affine import Expr
from pdojo.dialect.attributes import Mapping
from pdojo.dialect.view.nest import Access, Scope


def describe_scope(scope: Scope) -> str:
    """`scope {1} of extent 512:v` for messages."""
    suffix = "" if scope.mapping is Mapping.SEQUENTIAL else f":{scope.mapping.value}"
    suffix += f"({scope.intrinsic})" if scope.intrinsic else ""
    return f"scope {{{scope.depth}}} of extent {scope.extent}{suffix}"


def describe_access(access: Access) -> str:
    """`x[{0},{1}*16+{2}]` for messages."""
    return describe_element(access.array.name, access.index)


def describe_element(array: str, index: Sequence[Expr]) -> str:
    """`x[{0},{1}*16+{2}]` for messages."""
    return f"{array}[{','.join(e.render('{{{}}}'.format) for e in index)}]"
