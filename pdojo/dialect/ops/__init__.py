"""The operations of the pdojo dialect: kernel, buffer, scope, statement (`pdojo.op`), call and versions."""

from xdsl.ir import Dialect

from pdojo.dialect.attributes import IndexValueAttr, IntentAttr, LookupAttr, MappingAttr, MemoryAttr, NumericsAttr
from pdojo.dialect.ops.call import CallOp
from pdojo.dialect.ops.kernel import (
    DEFAULT_NUMERICS,
    BufferOp,
    KernelOp,
    Swizzle,
    reuse_attr,
    slots_in,
    spell_slots,
    swizzle_attr,
    tables_attr,
)
from pdojo.dialect.ops.scope import MOST_SCOPES, ScopeOp, guard_attr
from pdojo.dialect.ops.statement import StatementOp, hints_attr
from pdojo.dialect.ops.versions import VersionsOp

PDOJO = Dialect(
    "pdojo",
    [KernelOp, BufferOp, ScopeOp, StatementOp, CallOp, VersionsOp],
    [MappingAttr, MemoryAttr, IntentAttr, NumericsAttr, IndexValueAttr, LookupAttr],
)
"""The dialect, as registered with xDSL."""

__all__ = [
    "DEFAULT_NUMERICS",
    "MOST_SCOPES",
    "PDOJO",
    "BufferOp",
    "CallOp",
    "KernelOp",
    "ScopeOp",
    "StatementOp",
    "Swizzle",
    "VersionsOp",
    "guard_attr",
    "hints_attr",
    "reuse_attr",
    "slots_in",
    "spell_slots",
    "swizzle_attr",
    "tables_attr",
]
